"""`fanout explain`: explain what blocks the fleet or a subject, and what unblocks it."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import click

from fanout.api.explanation_view import ExplainedConflict, ExplanationView
from fanout.api.view_base import dump_view
from fanout.cli.declarations import build_not_found, check_policies
from fanout.cli.input.completion import complete_subjects
from fanout.cli.input.name_lookup import (
    build_ambiguous_name,
    find_named_variants,
    find_orphaned,
    find_variant_of,
    read_input,
    target_names,
    unique_names,
)
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, selector_option, with_settings
from fanout.cli.input.variant_files import open_variant_files
from fanout.cli.output.explanation_text import ExplanationLayout
from fanout.cli.output.pass_output import report_refused_records
from fanout.cli.output.printer import build_list, print_value, write_stdout
from fanout.cli.output.text_layout import text_width
from fanout.cli.process_exit import ExitCode, invalid_setting
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.cli.startup import Program, open_program
from fanout.cli.terminal import is_colored
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import InvalidInput, Stopped
from fanout.plan.rendered_variant import RenderedVariant
from fanout.present.explanation.explanation_notes import describe_conflict, has_conflicts
from fanout.present.explanation.policy_explanation import PolicyExplainer, open_explainers
from fanout.present.policy_entry import select_policies
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.pass_scope import PassMode
from fanout.selection.label_selector import parse_selector
from fanout.values import replace


@click.command(cls=VerbCommand)
@click.argument(
    "subject",
    metavar="[POLICY[/STAGE[/VARIANT]]]",
    required=False,
    default="",
    shell_complete=complete_subjects,
)
@selector_option("policies")
@with_settings(READ_OPTIONS, formats=REPORT_FORMATS)
def command(settings: Settings, subject: str, selector: str) -> ExitCode:
    """Explain what blocks a rollout, and how to unblock it.

    Explains a policy, a stage or a variant, and prints the commands that unblock it. Without a
    name, explains everything that is blocked in the fleet, the most urgent first. VARIANT can be
    the name of the variant, its target, its path or its repository:path. A name without a policy is
    looked up in all policies.

    Exits with code 3 if any part of the named resource failed or must be repaired, or if fanout
    cannot process its policy (state Stopped).
    """
    labels = parse_selector(selector)
    if subject and selector:
        raise invalid_setting(
            "a name and a selector exclude each other", "use one of them", "--selector"
        )
    with open_program(settings, check=False) as program:
        _, errors = read_input(program)
        errors += report_refused_records(program.world.records, settings.color)
        layout = ExplanationLayout(
            settings.now(), text_width(), is_colored(settings.color, sys.stdout), settings.commands
        )
        if subject:
            lines, explanations, failed = _explain_subject(program, subject, layout)
        else:
            mode = PassMode(namespace=settings.namespace)
            observed = select_policies(program.observe(mode), labels)
            explainers = open_explainers(observed, settings.commands)
            explanations = [it.explain_policy() for it in explainers]
            names = {own: shown for it in explainers for own, shown in it.names.items()}
            lines = replace(layout, names=names).format_fleet(explanations)
            failed = any(it.fix_count for it in explainers)
        if settings.output is OutputFormat.TABLE:
            write_stdout("".join(f"{line}\n" for line in lines), is_colored=layout.is_colored)
        else:
            views = [dump_view(it) for it in explanations]
            is_single = bool(subject) and len(views) == 1
            print_value(views[0] if is_single else build_list(views), settings.output)
    return ExitCode.SOME_FAILED if errors or failed else ExitCode.OK


def _explain_subject(
    program: Program, subject: str, layout: ExplanationLayout
) -> tuple[Iterator[str], list[ExplanationView], bool]:
    """Return the lines for people, the explanations, and whether part of the subject failed."""
    policy, _, remainder = subject.partition("/")
    stage, _, variant = remainder.partition("/")
    namespace = program.settings.namespace
    try:
        check_policies([policy], program.read_declared(), namespace)
    except InvalidInput:
        observed = program.observe(PassMode(namespace=namespace))
        # What is no policy may be a variant of any of them.
        item, stage, variant = _find_single_variant(
            observed.policies, subject, program.read_declared()
        )
        if item is None:
            raise
        observed = replace(observed, policies=(item,))
    else:
        observed = program.observe(PassMode(only=frozenset([policy]), namespace=namespace))
    lines: list[Iterator[str]] = []
    explanations, failed = [], False
    for explainer in open_explainers(observed, program.settings.commands):
        item = explainer.item
        item_stage, item_variant = _find_part(item, stage, variant, program.read_declared())
        explanation = _explain(program, explainer, item_stage, item_variant)
        explanations.append(explanation)
        lines.append(replace(layout, names=explainer.names).format_explanation(explanation))
        # A target without a variant is in no stage.
        names = {it.spec.name for it in item.variants if it.spec.stage == item_stage}
        if item_variant:
            names = {it.spec.name for it in find_named_variants(item.variants, item_variant)}
        failed |= item.error is not None or any(
            it.needs_fix and (not item_stage or it.subject in names) for it in item.problems
        )
    return chain.from_iterable(lines), explanations, failed


def _find_part(
    item: PolicyResult, stage: str, variant: str, declared: DeclaredObjects
) -> tuple[str, str]:
    """Return the stage and the variant that a subject names. Raises InvalidInput."""
    policy = item.resolved_policy.upstream_policy
    stages = [rule.name for rule in policy.spec.stages] if policy is not None else []
    if not stage or policy is None or stage in stages:
        return stage, variant
    name = f"{stage}/{variant}" if variant else stage
    matches = find_named_variants(item.variants, name)
    if len(matches) == 1 and item.decision is not None:
        return matches[0].spec.stage, matches[0].spec.name
    if matches:
        raise build_ambiguous_name(name, matches, (), "")
    if find_orphaned(item, declared, name):
        return "", name
    raise build_not_found("stage", [stage], stages)


def _find_single_variant(
    policies: Sequence[PolicyResult], name: str, declared: DeclaredObjects
) -> tuple[PolicyResult | None, str, str]:
    """Return the only variant of this name in any policy, with its policy and stage.

    Orphaned ones are found too. Raises InvalidInput for several, Stopped for a failed target.
    """
    matches = [
        (item, variant) for item in policies for variant in find_named_variants(item.variants, name)
    ]
    preferred = [it for it in matches if name in unique_names(it[1])] or matches
    if len(preferred) == 1:
        item, variant = preferred[0]
        is_hand_written = item.resolved_policy.upstream_policy is None
        return item, variant.spec.stage, "" if is_hand_written else variant.spec.name
    if preferred:
        raise build_ambiguous_name(name, [variant for _, variant in preferred], (), "")
    for item in policies:
        _refuse_failed(item, name)
    orphaned = [(item, it) for item in policies for it in find_orphaned(item, declared, name)]
    return (orphaned[0][0], "", orphaned[0][1]) if len(orphaned) == 1 else (None, "", "")


def _explain(
    program: Program, explainer: PolicyExplainer, stage: str, variant: str
) -> ExplanationView:
    item = explainer.item
    if item.error is not None or item.decision is None:
        return explainer.explain_policy()
    if item.resolved_policy.upstream_policy is None and item.variants:
        [rendered] = item.variants
        return explainer.explain_variant(rendered, _find_conflicts(program, item, rendered))
    if variant:
        orphaned = find_orphaned(item, program.read_declared(), variant)
        if len(orphaned) == 1 and not find_named_variants(item.variants, variant):
            return explainer.explain_orphaned(orphaned[0])
        _refuse_failed(item, variant)
        try:
            rendered = find_variant_of(item, variant, stage)
        except InvalidInput as error:
            if error.reason == "NotInStage":
                own_stage = find_variant_of(item, variant).spec.stage
                path = f"{item.resolved_policy.name}/{own_stage}/{variant}"
                error.remedy = f"run `fanout explain {path}`"
            raise
        return explainer.explain_variant(rendered, _find_conflicts(program, item, rendered))
    return explainer.explain_stage(stage) if stage else explainer.explain_policy()


def _find_conflicts(
    program: Program, item: PolicyResult, variant: RenderedVariant
) -> Iterable[ExplainedConflict]:
    """Return the conflicts of the variant's draft, decided or not, by merging it again."""
    # The draft's trailers have only keys and winners of conflicts; the values take another
    # merge. A draft without conflicts is spared it.
    if not (variant.selected.has_current_draft and has_conflicts(variant)):
        return ()
    conflicts = open_variant_files(program, variant.spec.name).conflicts
    return [describe_conflict(item, variant, it.key, str(it)) for it in conflicts]


def _refuse_failed(item: PolicyResult, name: str) -> None:
    """Raise Stopped with the failure of the target of this name that has no variant."""
    allows_short = not find_named_variants(item.variants, name)
    for failure in item.resolved_policy.failures:
        if failure.target == name or (allows_short and name in target_names(failure.target)):
            raise Stopped(failure.problem, reason=failure.reason)

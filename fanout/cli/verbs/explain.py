"""`fanout explain`: explain what blocks a subject, and who can unblock it."""

from collections.abc import Iterator, Sequence

import click

from fanout.api.gate_vocabulary import Verdict
from fanout.cli.declarations import build_not_found, check_policies
from fanout.cli.input.completion import complete_subjects
from fanout.cli.input.name_lookup import (
    build_ambiguous_name,
    explain_orphaned,
    find_named_variants,
    find_orphaned,
    find_variant_of,
    target_names,
    unique_names,
)
from fanout.cli.input.options import with_settings
from fanout.cli.input.variant_files import open_variant_files
from fanout.cli.output.explanation_remarks import (
    build_conflict_remarks,
    build_policy_remarks,
    build_stage_remarks,
    build_variant_remarks,
    has_conflicts,
    shorten_explanation,
)
from fanout.cli.output.pass_output import report_file_errors
from fanout.cli.output.printer import print_value, write_stdout
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.cli.startup import Program, open_program
from fanout.cluster.declared_objects import DeclaredObjects
from fanout.errors import InvalidInput, Stopped
from fanout.gates.evaluation_results import VariantState
from fanout.gates.explanation import Explanation, explain_policy, explain_stage, explain_variant
from fanout.package.merge.merge_conflicts import MergeConflict
from fanout.plan.records.policy_status import format_instant
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.pass_scope import PassMode
from fanout.values import replace


@click.command()
@click.argument("subject", metavar="POLICY[/STAGE[/VARIANT]]", shell_complete=complete_subjects)
@with_settings(formats=REPORT_FORMATS)
def command(settings: Settings, subject: str) -> ExitCode:
    """Explain what blocks a rollout, and who can unblock it.

    A variant can be named by its name, its target, its path, or repository:path. Give it without a
    policy if no policy has that name, and always if it has no policy. Exits with code 3 if the
    policy is stopped, or if something that is explained failed or needs a person.
    """
    with open_program(settings) as program:
        faults = report_file_errors(program.read_declared())
        policies, stage, variant = _find_subject(program, subject)
        explanations = [_explain(program, item, stage, variant) for item in policies]
    if settings.output is OutputFormat.TABLE:
        write_stdout(
            "".join(
                f"{line}\n"
                for explanation in explanations
                for line in _format_lines(shorten_explanation(explanation), 0)
            )
        )
    else:
        print_value(
            [_serialize_explanation(explanation) for explanation in explanations], settings.output
        )
    failed = any(item.error is not None or _has_failed(item, stage, variant) for item in policies)
    return ExitCode.SOME_FAILED if faults or failed else ExitCode.OK


def _find_subject(program: Program, subject: str) -> tuple[Sequence[PolicyResult], str, str]:
    """Return the policies of this name with their stage and variant.

    Without a policy of this name, the variant of this name is returned with its policy.
    Raises InvalidInput if nothing has the name.
    """
    policy, _, remainder = subject.partition("/")
    stage, _, variant = remainder.partition("/")
    namespace = program.settings.namespace
    try:
        check_policies([policy], program.read_declared(), namespace)
    except InvalidInput:
        policies = program.observe(PassMode(namespace=namespace)).policies
        item, stage, variant = _find_single_variant(policies, subject, program.read_declared())
        if item is None:
            raise
        return [item], stage, variant
    mode = PassMode(only=frozenset([policy]), namespace=namespace)
    return program.observe(mode).policies, stage, variant


def _find_single_variant(
    policies: Sequence[PolicyResult], name: str, declared: DeclaredObjects
) -> tuple[PolicyResult | None, str, str]:
    """Return the only variant of this name in any policy, with its policy and stage.

    Orphaned variants are found too. Raises InvalidInput if several have the name, and
    Stopped for a target without a variant, with the reason.
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


_PASSED_STATES = (VariantState.READY.value, Verdict.PASSED.value)


def _has_failed(item: PolicyResult, stage: str, variant: str) -> bool:
    """Return whether part of the subject failed. A target without a variant is in no stage."""
    names = {variant.spec.name for variant in item.variants if variant.spec.stage == stage}
    if variant:
        names = {variant.spec.name for variant in find_named_variants(item.variants, variant)}
    return any(it.needs_fix and (not stage or it.subject in names) for it in item.problems)


def _explain(program: Program, item: PolicyResult, stage: str, variant: str) -> Explanation:
    if stage and item.resolved_policy.upstream_policy is not None:
        stages = [rule.name for rule in item.resolved_policy.upstream_policy.spec.stages]
        if stage not in stages:
            raise build_not_found("stage", [stage], stages)
    if item.error is not None or item.facts is None or item.decision is None:
        problem = item.error
        reason = problem.reason if problem else "Unknown"
        return Explanation(f"policy {item.resolved_policy.name}", reason, str(problem))
    if variant:
        orphaned = find_orphaned(item, program.read_declared(), variant)
        if len(orphaned) == 1 and not find_named_variants(item.variants, variant):
            return explain_orphaned(item, orphaned[0])
        rendered = _find_variant(item, stage, variant)
        explanation = explain_variant(item.facts, item.decision, rendered.spec.name)
        return _with_remarks(
            explanation, build_variant_remarks(item, rendered, _find_conflicts(program, rendered))
        )
    if stage:
        return _with_remarks(
            explain_stage(item.facts, item.decision, stage), build_stage_remarks(item, stage)
        )
    explanation = _with_remarks(
        explain_policy(item.facts, item.decision), build_policy_remarks(item)
    )
    # A hand-written variant is explained as its own policy, so its conflicts are listed here.
    if item.resolved_policy.upstream_policy is None:
        for rendered in item.variants:
            remarks = build_conflict_remarks(item, rendered, _find_conflicts(program, rendered))
            explanation = _with_remarks(explanation, tuple(remarks))
    return explanation


def _find_conflicts(program: Program, variant: RenderedVariant) -> tuple[MergeConflict, ...]:
    """Return the conflicts of the variant's draft, decided or not, by merging it again."""
    # The draft's trailers have only keys and winners of conflicts; the values take another
    # merge. A draft without conflicts is spared it.
    is_current = variant.selected.has_current_draft and has_conflicts(variant)
    return open_variant_files(program, variant.spec.name).conflicts if is_current else ()


def _with_remarks(explanation: Explanation, remarks: tuple[Explanation, ...]) -> Explanation:
    return replace(explanation, children=(*explanation.children, *remarks))


def _find_variant(item: PolicyResult, stage: str, name: str) -> RenderedVariant:
    """Return the variant of this name.

    Raises Stopped for a target that has none, with the reason.
    """
    _refuse_failed(item, name)
    try:
        return find_variant_of(item, name, stage)
    except InvalidInput as error:
        if error.reason == "NotInStage":
            own_stage = find_variant_of(item, name).spec.stage
            error.remedy = f"say `fanout explain {item.resolved_policy.name}/{own_stage}/{name}`"
        raise


def _refuse_failed(item: PolicyResult, name: str) -> None:
    """Raise Stopped with the failure of the target of this name that has no variant."""
    allows_short = not find_named_variants(item.variants, name)
    for failure in item.resolved_policy.failures:
        if failure.target == name or (allows_short and name in target_names(failure.target)):
            raise Stopped(failure.problem, reason=failure.reason)


def _format_lines(explanation: Explanation, depth: int) -> Iterator[str]:
    marks = {"passed": "+", "Ready": "+", "failed": "x", "Failed": "x"}
    details = [explanation.sentence]
    if explanation.since and format_instant(explanation.since) not in explanation.sentence:
        details.append(f"since {format_instant(explanation.since)}")
    if explanation.until and format_instant(explanation.until) not in explanation.sentence:
        details.append(f"can change at {format_instant(explanation.until)}")
    if explanation.actor:
        details.append(f"who can act: {explanation.actor}")
    mark = (
        "-"
        if explanation.waits and explanation.state in _PASSED_STATES
        else marks.get(explanation.state, "-")
    )
    head = f"{'  ' * depth}{mark} {explanation.subject}: {explanation.state}"
    yield f"{head}: {'; '.join(details)}"
    for child in explanation.children:
        yield from _format_lines(child, depth + 1)


def _serialize_explanation(explanation: Explanation) -> dict[str, object]:
    body: dict[str, object] = {
        "subject": explanation.subject,
        "state": explanation.state,
        "sentence": explanation.sentence,
        "since": format_instant(explanation.since) if explanation.since else "",
        "until": format_instant(explanation.until) if explanation.until else "",
        "who": explanation.actor,
        "waits": explanation.waits,
        "children": [_serialize_explanation(child) for child in explanation.children],
    }
    return {name: value for name, value in body.items() if value}

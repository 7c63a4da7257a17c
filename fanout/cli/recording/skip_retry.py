"""Skip and retry: a decision about variants in the rollout of one revision."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from fanout.api.gate_vocabulary import Action
from fanout.cli.input.name_lookup import (
    find_evaluated_policy,
    refuse_no_stage,
    require_candidate,
    select_variants,
)
from fanout.cli.input.options import with_settings
from fanout.cli.output.pass_output import print_report
from fanout.cli.output.printer import write_stdout
from fanout.cli.process_exit import ExitCode, exit_code_after
from fanout.cli.recording.decision_effect import compare_evaluations
from fanout.cli.recording.record_options import (
    build_subject,
    by_option,
    evaluate_without,
    find_equal_decision,
    format_recorded,
    reason_option,
    record_and_run,
    resolve_author,
    subject_options,
)
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.startup import open_program
from fanout.cli.terminal import print_message
from fanout.errors import InvalidInput
from fanout.gates.active_decisions import DecisionStatus
from fanout.gates.gate_wording import format_count
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_records import RecordEntry
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PolicyResult

ChosenVariants = tuple[list[RenderedVariant], Sequence[str]]
"""Variants that a decision is to name, and sentences about those it leaves out."""
VariantChooser = Callable[
    [PolicyResult, str, tuple[str, ...], list[RenderedVariant], str], ChosenVariants
]
"""Choice of variants from policy, stage, given names, their variants and the revision.

Raises InvalidInput if no variant remains.
"""


def build_command(action: Action, help_text: str, choose: VariantChooser) -> click.Command:
    """Build the command that records a Decision of this action; `help_text` is its help.

    `choose` selects the variants and returns notes on the others.
    """

    @click.command(help=help_text)
    @subject_options
    @click.option("--revision", default="", help="The revision; by default the candidate.")
    @reason_option
    @by_option
    @with_settings(formats=(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML))
    def command(
        settings: Settings,
        policy: str,
        stage: str,
        by: str | None,
        **options: tuple[str, ...] | str,
    ) -> ExitCode:
        author = resolve_author(by)
        with open_program(settings) as program:
            item = find_evaluated_policy(program, policy)
            refuse_no_stage(item, stage)
            spec = build_subject(item, stage, tuple(options["variants"]))
            named_variants = tuple(spec.get("variants", ()))
            revision = _require_known(item, str(options["revision"])) or require_candidate(
                item, stage
            )
            spec |= {"action": action.value, "revision": revision, "reason": options["reason"]}
            variants = select_variants(item, stage, named_variants)
            try:
                chosen, notes = choose(item, stage, named_variants, variants, revision)
                names, earlier = sorted(variant.spec.name for variant in chosen), None
            except InvalidInput:
                # Run again, the verb finds its variants no longer failed or not yet skipped: that
                # is its effect.
                earlier = _find_earlier(
                    item, spec, named_variants or [it.spec.name for it in variants], author
                )
                if earlier is None:
                    raise
                names, notes = list(earlier.spec["variants"]), ()
            spec |= {"variants": names}
            earlier_name = earlier.name if earlier else ""
            name, report = record_and_run(program, item, spec, author, earlier_name)
        if settings.output is OutputFormat.TABLE:
            subject = format_count(len(names), "variant")
            write_stdout(
                format_recorded(
                    name, f" for {subject} at {revision}", is_repeated=bool(earlier_name)
                )
            )
        effect = compare_evaluations(
            evaluate_without(item, earlier), report, stage, revision, names
        )
        print_report(report, settings, effect.sentence)
        for note in notes:
            print_message(note, settings.color)
        was_applied = (
            earlier is not None
            and item.decision_statuses(settings.now())[earlier_name] is DecisionStatus.APPLIED
        )
        return exit_code_after(report.fix_count_of(names), effect=effect.happened or was_applied)

    return command


def _find_earlier(
    item: PolicyResult, spec: Mapping[str, Any], names: Sequence[str], author: CommitIdentity
) -> RecordEntry | None:
    """Return the equal decision that an earlier run has recorded, applied by now or not.

    It may be about some of the named variants only: those that it applied to at that time.
    """
    assert item.facts is not None, "a policy that is judged has its facts"
    for record in reversed(item.records):
        is_subset = set(record.spec.get("variants", ())) <= set(names)
        if record.spec.get("action") == spec["action"] and is_subset:
            equal_spec = {**spec, "variants": record.spec.get("variants", ())}
            return find_equal_decision(
                item,
                equal_spec,
                author,
                item.facts.now,
                (DecisionStatus.ACTIVE, DecisionStatus.APPLIED),
            )
    return None


def _require_known(item: PolicyResult, revision: str) -> str:
    """Return the revision.

    Raises InvalidInput unless the policy allows it or has published it.
    """
    published = {
        variant.observed.published.revision
        for variant in item.variants
        if variant.observed.published is not None
    }
    known_revisions = dict.fromkeys([*item.revisions, *sorted(published)])
    if revision and revision not in known_revisions:
        raise InvalidInput(
            f"{revision} is not a revision of {item.title}",
            reason="NotFound",
            remedy=f"there are: {', '.join(known_revisions)}",
        )
    return revision

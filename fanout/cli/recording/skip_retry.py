"""Skip and retry: a decision about variants in the rollout of one revision."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from fanout.api.gate_vocabulary import Action
from fanout.api.text_fields import pluralize
from fanout.cli.command_errors import not_found
from fanout.cli.input.name_lookup import require_candidate, select_variants
from fanout.cli.input.options import VerbCommand
from fanout.cli.process_exit import ExitCode, exit_code_after
from fanout.cli.recording.decision_effect import compare_evaluations
from fanout.cli.recording.record_session import (
    RecordRequest,
    RecordSession,
    describe_record,
    open_record_session,
    print_decision,
    reason_option,
    revision_option,
    subject_options,
    with_request,
)
from fanout.cli.settings import REPORT_FORMATS, Settings
from fanout.errors import InvalidInput
from fanout.gates.active_decisions import DecisionStatus
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

    @click.command(cls=VerbCommand, help=help_text)
    @subject_options
    @revision_option("Revision to which the command applies.  [default: the candidate]")
    @reason_option
    @with_request(*REPORT_FORMATS)
    def command(settings: Settings, request: RecordRequest, revision: str) -> ExitCode:
        with open_record_session(settings, request) as session:
            item, stage = session.item, request.stage
            spec = session.build_subject(needs_stage=True)
            named_variants = tuple(spec.get("variants", ()))
            revision = _require_known(item, revision) or require_candidate(item, stage)
            spec |= {"action": action.value, "revision": revision, "reason": request.reason}
            variants = select_variants(item, stage, named_variants)
            try:
                chosen, notes = choose(item, stage, named_variants, variants, revision)
                names, earlier = sorted(variant.spec.name for variant in chosen), None
            except InvalidInput:
                # Run again, the verb finds its variants no longer failed or not yet skipped: that
                # is its effect.
                covered = named_variants or [it.spec.name for it in variants]
                earlier = _find_earlier(session, spec, covered)
                if earlier is None:
                    raise
                names, notes = list(earlier.spec.variants), ()
            earlier_name = earlier.name if earlier else ""
            name, report = session.record_and_run(spec | {"variants": names}, earlier_name)
        subject = f" for {pluralize(len(names), 'variant')} at {revision}"
        recorded = describe_record(settings, name, subject, is_repeated=earlier is not None)
        effect = compare_evaluations(item, earlier, report, stage, revision, names)
        print_decision(session.program, recorded, report, effect.message, notes)
        was_applied = (
            earlier is not None
            and item.decision_statuses(settings.now())[earlier_name] is DecisionStatus.APPLIED
        )
        return exit_code_after(report.fix_count_of(names), effect=effect.happened or was_applied)

    return command


def _find_earlier(
    session: RecordSession, spec: Mapping[str, Any], names: Sequence[str]
) -> RecordEntry | None:
    """Return the equal decision that an earlier run has recorded, applied by now or not.

    It may be about some of the named variants only: those that it applied to at that time.
    """
    for record in reversed(session.item.records):
        variants = record.spec.variants
        if record.action == spec["action"] and set(variants) <= set(names):
            statuses = (DecisionStatus.ACTIVE, DecisionStatus.APPLIED)
            return session.find_equal_decision({**spec, "variants": variants}, statuses)
    return None


def _require_known(item: PolicyResult, revision: str) -> str:
    """Return the revision. Raises InvalidInput unless the policy allows it or has published it."""
    published = {
        variant.observed.published.revision
        for variant in item.variants
        if variant.observed.published is not None
    }
    known_revisions = dict.fromkeys([*item.revisions, *sorted(published)])
    if revision and revision not in known_revisions:
        raise not_found(
            f"{revision} is not a revision of {item.title}",
            f"there are: {', '.join(known_revisions)}",
        )
    return revision

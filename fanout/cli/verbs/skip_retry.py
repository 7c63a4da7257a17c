"""`fanout skip` and `fanout retry`: decisions about variants in the rollout of one revision."""

from collections.abc import Callable, Sequence

import click

from fanout.api.gate_vocabulary import Action, VariantState
from fanout.api.text_fields import pluralize
from fanout.cli.input.name_lookup import require_candidate, select_variants
from fanout.cli.input.options import VerbCommand
from fanout.cli.process_exit import ExitCode, exit_code_after, not_found, nothing_to_do
from fanout.cli.recording.decision_effect import DecisionSubject
from fanout.cli.recording.record_session import (
    RecordRequest,
    open_record_session,
    reason_option,
    revision_option,
    subject_options,
    with_request,
)
from fanout.cli.settings import REPORT_FORMATS
from fanout.errors import InvalidInput
from fanout.gates.active_decisions import ActiveDecisions, DecisionStatus
from fanout.gates.gate_wording import format_names, label_stage
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PolicyResult

_VariantChooser = Callable[
    [PolicyResult, str, Sequence[str], str], tuple[list[RenderedVariant], Sequence[str]]
]
"""Choice of variants from policy, stage, given names and revision, with notes on the others.

Raises InvalidInput if no variant remains.
"""


def _build_command(action: Action, help_text: str, choose: _VariantChooser) -> click.Command:
    @click.command(cls=VerbCommand, help=help_text)
    @subject_options
    @revision_option("Revision to which the command applies.  [default: the candidate]")
    @reason_option
    @with_request(*REPORT_FORMATS)
    def command(request: RecordRequest, revision: str) -> ExitCode:
        with open_record_session(request) as session:
            item, stage = session.item, request.stage
            spec = session.build_subject(needs_stage=True)
            named_variants = spec.get("variants", ())
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
            revision = revision or require_candidate(item, stage)
            spec |= {"action": action.value, "revision": revision, "reason": request.reason}
            earlier = None
            try:
                chosen, notes = choose(item, stage, named_variants, revision)
                names = sorted(variant.spec.name for variant in chosen)
            except InvalidInput:
                # Run again, the verb finds its variants no longer failed or not yet skipped: that
                # is its effect. The decision of the earlier run may be about some of the variants
                # only: those that it applied to at that time.
                covered = set(
                    named_variants or (it.spec.name for it in select_variants(item, stage))
                )
                for record in reversed(item.records):
                    if record.action == action and covered.issuperset(record.spec.variants):
                        fields = {**spec, "variants": record.spec.variants}
                        statuses = (DecisionStatus.ACTIVE, DecisionStatus.APPLIED)
                        earlier = session.find_equal_decision(fields, statuses)
                        break
                if earlier is None:
                    raise
                names, notes = list(earlier.spec.variants), ()
            earlier_name = earlier.name if earlier else ""
            name, report = session.record_and_run(spec | {"variants": names}, earlier_name)
        subject = f" for {pluralize(len(names), 'variant')} at {revision}"
        decision = DecisionSubject(item, stage, revision)
        effect, happened = decision.compare_evaluations(report, names, earlier)
        session.print_decision(
            name, subject, report, effect, notes, is_repeated=earlier is not None
        )
        statuses_by_name = item.decision_statuses(request.settings.now()) if earlier else {}
        was_applied = statuses_by_name.get(earlier_name) is DecisionStatus.APPLIED
        return exit_code_after(report.fix_count_of(names), effect=happened or was_applied)

    return command


def _choose_unskipped(
    item: PolicyResult, stage: str, named_variants: Sequence[str], revision: str
) -> tuple[list[RenderedVariant], Sequence[str]]:
    """Return the named variants that are neither ready nor skipped at the revision."""
    if not named_variants:
        raise not_found(
            f"the variants to skip in {label_stage(stage)} are missing",
            "use --variant; run `fanout get variants` for the names",
        )
    assert item.decision is not None, "a policy that is judged is decided"
    assert item.facts is not None, "and its facts are known"
    decisions = ActiveDecisions(item.facts.records.decisions, item.facts.now)
    excluded: dict[str, list[str]] = {}
    skippable = []
    for variant in select_variants(item, stage, named_variants):
        name = variant.spec.name
        result = item.decision.variants[name]
        if decisions.skipped(stage, name, revision) is not None:
            excluded.setdefault(f"already skipped for {revision}", []).append(name)
        elif result.candidate == revision and result.state is VariantState.READY:
            excluded.setdefault(f"ready at {revision}", []).append(name)
        else:
            skippable.append(variant)
    notes = [
        f"{format_names(names)} {'is' if len(names) == 1 else 'are'} {why}"
        for why, names in excluded.items()
    ]
    if not skippable:
        raise nothing_to_do(f"nothing to skip: {'; '.join(notes)}", "run `fanout get variants`")
    return skippable, [f"{note} and not included" for note in notes]


def _choose_failed(
    item: PolicyResult, stage: str, named_variants: Sequence[str], revision: str
) -> tuple[list[RenderedVariant], Sequence[str]]:
    """Return the variants that failed at the revision, and named ones that were skipped for it."""
    assert item.decision is not None, "a policy that is judged is decided"
    results = item.decision.variants
    states = (VariantState.FAILED, *((VariantState.SKIPPED,) if named_variants else ()))
    stopped = [
        variant
        for variant in select_variants(item, stage, named_variants)
        if results[variant.spec.name].candidate == revision
        and results[variant.spec.name].state in states
    ]
    retried = [variant for variant in stopped if variant.render_failure is None]
    not_rendered = [variant.spec.name for variant in stopped if variant.render_failure is not None]
    notes = []
    if not_rendered:
        notes.append(
            f"{pluralize(len(not_rendered), 'variant')} cannot be rendered"
            f" ({format_names(not_rendered)}) and are retried by every sweep"
        )
    if not retried:
        subject = format_names(named_variants) if named_variants else label_stage(stage)
        detail = f": {notes[0]}" if notes else ""
        problem = f"no variant of {subject} has failed at {revision}{detail}"
        raise nothing_to_do(problem, "run `fanout explain`")
    return retried, notes


skip = _build_command(
    Action.SKIP,
    "Skip one revision for variants. Name each variant with --variant. A skipped variant counts "
    "neither as ready nor as failed, and blocks nothing. The rollout of the next revision includes "
    "the variant again. `fanout retry` ends a skip.",
    _choose_unskipped,
)
retry = _build_command(
    Action.RETRY,
    "Retry failed variants. Earlier failures no longer count, and deadlines and timeouts start "
    "again. Without --variant, retries all failed variants of the stage. A skipped variant that "
    "--variant names is included in the rollout again.",
    _choose_failed,
)

"""Conditions of policies, stages and variants, each made in one place.

`lastTransitionTime` is since when the present reason of a condition is on record: an instant that
is not on record is left out, so that the same observation always gives the same output.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.reasons import NEEDS_REPAIR, Reason
from fanout.api.results import Condition, Hold, VariantResult, build_ready, build_true
from fanout.api.text_fields import list_first, pluralize
from fanout.api.view_base import ConditionStatus, label_verdict
from fanout.errors import Conflict, Denied, FanoutError, InvalidInput, Unavailable, Waiting
from fanout.gates.gate_wording import describe_hold
from fanout.plan.changes.next_drafts import find_release_draft
from fanout.plan.edits.merge_disputes import limit_lines, rejected_lines_of_draft
from fanout.plan.observed_variant import missing_branch_hold
from fanout.plan.push_refusals import describe_refusal
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.variant_observation import unreadable_repository_hold
from fanout.plan.written_objects import PROGRESS_TYPES
from fanout.present.enforcement_conditions import EnforcementReport, report_enforcement
from fanout.present.policy_entry import PolicyEntry, StageEntry, VariantEntry, draft_time
from fanout.reconcile.edits.edit_detection import (
    describe_edits,
    describe_faults,
    describe_leftover_draft,
    describe_lost_tag,
    find_tag_problems,
)
from fanout.reconcile.pass_results import MERGED_EARLY, PolicyResult, describe_outdated_records
from fanout.reconcile.removal.orphaned_variants import summarize_orphans
from fanout.reconcile.selection.policy_resolution import repository_key
from fanout.values import Value, replace

# A variant with one of these has changed inputs of which no draft can be made, or written.
_UNDRAFTED = frozenset(
    {Reason.BASE_MISSING, Reason.PUSH_REFUSED, Reason.REQUIRED_INJECTION_MISSING}
)
_TRUE = ConditionStatus.TRUE
_STATUS_BY_VERDICT: Mapping[Verdict, ConditionStatus] = {
    Verdict.PASSED: ConditionStatus.TRUE,
    Verdict.FAILED: ConditionStatus.FALSE,
    Verdict.PENDING: ConditionStatus.UNKNOWN,
}


def complete_conditions(
    conditions: Sequence[Condition], policy_result: PolicyResult, since: datetime | None = None
) -> tuple[Condition, ...]:
    """Return the conditions with the generation that was observed; `since` is of the first one.

    An object that no API server stored has no generation.
    """
    declaration = policy_result.resolved_policy.declaration
    generation = declaration.metadata.generation if declaration is not None else None
    first = replace(conditions[0], last_transition_time=since or conditions[0].last_transition_time)
    return tuple(replace(it, observed_generation=generation) for it in (first, *conditions[1:]))


def add_progress(conditions: Sequence[Condition], *, has_failed: bool = False) -> list[Condition]:
    """Return the conditions with Stalled or Reconciling beside a Ready that is not true.

    kstatus takes the first for a failure, and the second for work that goes on by itself.
    """
    ready = conditions[0]
    is_stalled = any(it.type == "Stalled" for it in conditions)
    is_suspended = ready.reason in (Reason.SUSPENDED, VariantState.SUSPENDED.value)
    if ready.status is _TRUE or is_stalled or is_suspended:
        return [*conditions]
    kind = "Stalled" if has_failed or ready.reason in NEEDS_REPAIR else "Reconciling"
    return [ready, replace(ready, type=kind, status=_TRUE), *conditions[1:]]


def build_error_conditions(error: FanoutError) -> list[Condition]:
    """Build the conditions of what an error stops."""
    kind = "Stalled" if needs_person(error) else "Reconciling"
    return [build_ready(error.reason, str(error)), Condition(kind, _TRUE, error.reason, str(error))]


def needs_person(error: FanoutError) -> bool:
    """Return whether the error lasts until somebody corrects something.

    An error of the outside world may be gone at the next attempt, without a correction. A
    repository that does not exist is no such error: mostly its URL is wrong.
    """
    ends_by_itself = isinstance(error, Unavailable | Waiting | Conflict)
    return not ends_by_itself or error.reason == Reason.REMOTE_NOT_FOUND


class RepositoryReport(Value):
    """Findings of the pass over one policy about a repository that it uses."""

    failure: FanoutError | None = None
    enforcement: EnforcementReport | None = None


def summarize_repositories(policy_result: PolicyResult) -> Mapping[str, RepositoryReport]:
    """Return the findings about a policy's repositories, by key of the Repository."""
    uses: dict[str, RepositoryReport] = {}
    upstream = policy_result.resolved_policy.upstream
    # A policy that an error stopped may not have asked for its upstream.
    if upstream is not None and (policy_result.error is None or policy_result.upstream_failure):
        uses[repository_key(upstream)] = RepositoryReport(policy_result.upstream_failure)
    refusals: dict[str, FanoutError] = {
        it.repository: Denied(describe_refusal(it), reason=str(Reason.PUSH_REFUSED))
        for it in policy_result.refused_pushes.values()
    }
    for variant in policy_result.variants:
        key = repository_key(policy_result.resolved_policy.repositories[variant.spec.name])
        if key not in uses or (uses[key].enforcement is None and uses[key].failure is None):
            reports, state = report_enforcement([variant]), variant.observed.repository_state
            failure = state.failure or refusals.get(state.identity)
            if failure is None and not state.head:
                is_published = variant.observed.status_line.published is not None
                hold = missing_branch_hold(
                    state, variant.spec.repository, is_published=is_published
                )
                failure = InvalidInput(hold.message, reason=str(hold.reason))
            if key not in uses or reports or failure:
                uses[key] = RepositoryReport(failure, reports[0] if reports else None)
    return uses


def build_repository_conditions(uses: Iterable[RepositoryReport]) -> list[Condition]:
    """Build the conditions of a Repository; `uses` are those of all policies."""
    enforcement = None
    conditions = [
        build_ready(
            Reason.UNUSED, "no policy that can be evaluated uses the repository", is_ready=True
        )
    ]
    for use in uses:
        if use.failure is not None:
            conditions = build_error_conditions(use.failure)
            break
        conditions = [build_ready(Reason.LISTED, "the repository could be listed", is_ready=True)]
        enforcement = enforcement or use.enforcement
    return [*conditions, *([enforcement.as_condition()] if enforcement is not None else [])]


def has_unusable_repository(variants: Iterable[RenderedVariant]) -> bool:
    """Return whether a person must correct the repository of one of the variants."""
    return any(needs_person(error) for _, error in _find_unreadable(variants))


def _find_unreadable(
    variants: Iterable[RenderedVariant],
) -> list[tuple[RenderedVariant, FanoutError]]:
    """Return variants with unreadable repositories and the error, those of a person first."""
    unreadable = [
        (variant, failure)
        for variant in variants
        if (failure := variant.observed.package_location.repository_state.failure) is not None
    ]
    return sorted(unreadable, key=lambda it: not needs_person(it[1]))


def build_policy_conditions(entry: PolicyEntry) -> tuple[Condition, ...]:
    """Build the conditions of a policy: Ready, and those that are true beside it."""
    policy_result = entry.result
    if policy_result.error is not None:
        return complete_conditions(build_error_conditions(policy_result.error), policy_result)
    conditions = [
        _build_readiness(entry),
        # A condition type occurs once: the least enforced repositories stand for all.
        *(it.as_condition() for it in report_enforcement(policy_result.variants)[:1]),
        *(build_true(Reason.EXPRESSION_ERROR, it) for it in policy_result.template_warnings[:1]),
    ]
    return complete_conditions(conditions, policy_result, _policy_ready_since(entry))


def build_status_conditions(entry: PolicyEntry, problem: FanoutError | None) -> list[Condition]:
    """Build the conditions of a policy, also the `problem` of all; those of progress first."""
    item, decision = entry.result, entry.result.decision
    conditions = add_progress(
        build_policy_conditions(entry),
        has_failed=bool(item.resolved_policy.failures or find_failed_variants(item))
        or has_unusable_repository(item.variants),
    )
    suspensions = [
        replace(build_true(Reason.SUSPENDED, describe_hold(it)), last_transition_time=it.since)
        for it in (decision.holds if decision else ())
        if it.reason == Reason.SUSPENDED  # by its spec or a person
    ]
    conditions += suspensions[:1]
    if problem is not None:
        conditions.append(build_true(problem.reason, str(problem)))
    if outdated := item.policy_state.outdated:
        message = describe_outdated_records(outdated)
        conditions.append(build_true(Reason.RECORDS_UNREADABLE, message))
    return sorted(conditions, key=lambda it: it.type not in PROGRESS_TYPES)


def _build_readiness(entry: PolicyEntry) -> Condition:
    """Return the condition Ready: what a person must fix outranks what only waits."""
    policy_result, decision = entry.result, entry.result.decision
    decisions = decision.variants.values() if decision else ()
    holds = decision.holds if decision else ()
    ready_count = sum(map(_is_carried_out, decisions))
    ready_sentence = f"{ready_count} of {pluralize(len(decisions), 'variant')} ready"
    if failed_targets := policy_result.resolved_policy.failures:
        first = failed_targets[0]
        number = pluralize(len(failed_targets), "target")
        failed = f"{number} without a variant, {first.target} first: {first.problem}"
        return build_ready(Reason.TARGETS_FAILED, f"{failed}; {ready_sentence}")
    if failures := find_failed_variants(policy_result):
        hold = failures[0].holds[0] if failures[0].holds else None
        detail = f": {describe_hold(hold)}" if hold else ""
        reason = hold.reason if hold else Reason.VERIFICATION_FAILED
        failed = f"{pluralize(len(failures), 'variant')} failed, {failures[0].name} first"
        return build_ready(reason, f"{failed}{detail}; {ready_sentence}")
    undrafted = [(it, hold) for it in decisions if (hold := _find_undrafted_hold(it)) is not None]
    if undrafted:
        _, hold = undrafted[0]
        names = list_first([it.name for it, _ in undrafted], 1)
        undone = f"no draft can be made of the changed inputs of {names}: {describe_hold(hold)}"
        return build_ready(hold.reason, f"{undone}; {ready_sentence}")
    if unreadable := _find_unreadable(policy_result.variants):
        variant, failure = unreadable[0]
        hold = unreadable_repository_hold(failure, "")
        number = pluralize(len(unreadable), "variant")
        unread = f"{number} cannot be observed, {variant.spec.name} first: {hold.message}"
        return build_ready(hold.reason, f"{unread}; {ready_sentence}")
    is_refused = any(it.reason == Reason.PUSH_REFUSED for it in holds[:1])
    if policy_result.orphans and not is_refused:
        reason, orphan_summary, remedy = summarize_orphans(
            policy_result.resolved_policy.name, policy_result.orphans, policy_result.removals
        )
        # A policy that was deleted has no targets, of which any could be ready.
        parts = (orphan_summary, ready_sentence if decisions else "", remedy)
        return build_ready(reason, "; ".join(filter(None, parts)))
    if decisions and ready_count == len(decisions) and not is_refused:
        return build_ready(Reason.READY, ready_sentence, is_ready=True)
    if holds:
        return build_ready(holds[0].reason, f"{describe_hold(holds[0])}; {ready_sentence}")
    if not decisions:
        # All that is declared is carried out. Tools that wait for the policy would wait for ever.
        return build_ready(Reason.NO_TARGETS, "the policy selects no target", is_ready=True)
    return build_ready(Reason.PROGRESSING, ready_sentence)


def find_failed_variants(policy_result: PolicyResult) -> list[VariantResult]:
    """Return decisions of variants that failed, or that name a missing stage."""
    decisions = policy_result.decision.variants.values() if policy_result.decision else ()
    return [
        it
        for it in decisions
        if it.state is VariantState.FAILED
        or (it.stage and any(hold.reason == Reason.NOT_IN_STAGE for hold in it.holds))
    ]


def _policy_ready_since(entry: PolicyEntry) -> datetime | None:
    """Return since when the readiness of the policy has its present reason, if that is on record.

    Ready: when the last variant became ready. Failed: the first failure. Held: the first hold.
    Else: when the first of the variants that are not ready began. No record tells when targets
    fail, a repository stops to answer, or targets go.
    """
    decision, variants = entry.result.decision, entry.variants
    if decision is None or entry.result.resolved_policy.failures or entry.orphans:
        return None
    failed = [it for it in variants if it.decision.state is VariantState.FAILED]
    if failed:
        return _first(_ready_since(it, it.decision) for it in failed)
    if any(it.variant.observed.repository_state.failure is not None for it in variants):
        return None
    if any(_find_undrafted_hold(it.decision) is not None for it in variants):
        return None
    pending = [it for it in variants if it.decision.state is not VariantState.READY]
    if variants and not pending:
        recorded = [at for it in variants if (at := _ready_since(it, it.decision)) is not None]
        return max(recorded) if len(recorded) == len(variants) else None
    if decision.holds:
        return decision.holds[0].since
    return _first(_ready_since(it, it.decision) or _drafted_since(it.variant) for it in pending)


def _drafted_since(variant: RenderedVariant) -> datetime | None:
    draft = variant.observed.draft
    return draft_time(draft) if draft is not None else None


def _first(instants: Iterable[datetime | None]) -> datetime | None:
    return min((at for at in instants if at is not None), default=None)


def build_stage_conditions(stage: StageEntry) -> tuple[Condition, ...]:
    """Build the condition Passed of a stage, about its candidate, and those true beside it."""
    result = stage.result
    hold = result.holds[0] if result.holds else None
    label = label_verdict(result.verdict)
    message = f"{result.candidate or 'no candidate'}: {label}"
    conditions = [
        Condition(
            "Passed",
            _STATUS_BY_VERDICT[result.verdict],
            hold.reason if hold else label,
            describe_hold(hold) if hold else message,
        )
    ]
    if stage.conflicts:
        number = pluralize(stage.conflicts, "undecided merge conflict")
        conditions.append(build_true(Reason.MERGE_CONFLICT, f"{number} in drafts of this stage"))
    since = hold.since if hold else None
    if result.verdict is Verdict.PASSED:
        history = stage.policy.status.history.get((stage.name, result.candidate))
        since = history.stretch_start if history is not None else None
    return complete_conditions(conditions, stage.policy, since)


def build_variant_conditions(entry: VariantEntry) -> tuple[Condition, ...]:
    """Build the conditions of a variant: Ready, and those that are true beside it."""
    decision = entry.shown
    hold = _find_undrafted_hold(decision) or next(iter(decision.holds), None)
    published, state = entry.variant.observed.published, str(decision.state)
    message = f"it is {state}"
    if decision.state is VariantState.READY and published is not None:
        message = f"{published.revision} is published and verified"
    ready = build_ready(
        hold.reason if hold else state,
        describe_hold(hold) if hold else message,
        is_ready=_is_carried_out(decision),
    )
    conditions = (ready, *_list_true_conditions(entry))
    return complete_conditions(conditions, entry.policy, _ready_since(entry, decision))


def _is_carried_out(decision: VariantResult) -> bool:
    """Return whether what is declared for a variant is published and verified."""
    return decision.state is VariantState.READY and _find_undrafted_hold(decision) is None


def _find_undrafted_hold(decision: VariantResult) -> Hold | None:
    """Return the hold of a ready variant whose inputs have changed and cannot be drafted."""
    if decision.state is not VariantState.READY:
        return None
    return next((it for it in decision.holds if it.reason in _UNDRAFTED), None)


def _ready_since(entry: VariantEntry, decision: VariantResult) -> datetime | None:
    """Return since when the state of the variant is what it is, as far as is on record.

    Ready: its publication or the last of its checks. Verifying: its publication. Failed: the first
    check that failed. Else: its first hold.
    """
    published_at = entry.published_since
    held_since = decision.holds[0].since if decision.holds else None
    match decision.state:
        case VariantState.READY if published_at is not None:
            answered = (it.at for it in decision.checks if it.at is not None)
            return max([published_at, *answered])
        case VariantState.VERIFYING:
            return published_at
        case VariantState.FAILED:
            failed = (it.at for it in decision.checks if it.verdict is Verdict.FAILED)
            return min((at for at in failed if at is not None), default=held_since)
        case _:
            return held_since


def _list_true_conditions(entry: VariantEntry) -> Iterator[Condition]:
    """Yield the conditions that are true beside Ready, with what is on record of their instants."""
    observed, published = entry.variant.observed, entry.variant.observed.published
    if published is not None and published.out_of_band:
        yield Condition("OutOfBand", _TRUE, "OutOfBand", MERGED_EARLY, entry.published_since)
    # Rejected values are reported of the draft and of the published package.
    decided_parts: list[str] = []
    draft = find_release_draft(entry.variant)
    lines = rejected_lines_of_draft(draft) if draft is not None else ()
    if draft is not None and lines:
        revision = draft.trailers.revision
        if entry.undecided:
            number = pluralize(entry.undecided, "undecided merge conflict")
            message = _format_list(f"{number} in the draft of {revision}", lines)
            since = _drafted_since(entry.variant)
            yield Condition("MergeConflict", _TRUE, Reason.MERGE_CONFLICT, message, since)
        else:
            title = f"decided merge conflicts in the draft of {revision}"
            decided_parts.append(_format_list(title, lines))
    if published is not None and published.rejected:
        title = f"merge conflicts decided in {published.revision}, which is published"
        decided_parts.append(_format_list(title, published.rejected))
    if decided_parts:
        since = entry.published_since if observed.draft is None else None
        message = "\n".join(decided_parts)
        yield Condition("ConflictsDecided", _TRUE, Reason.CONFLICT_DECIDED, message, since)
    if observed.has_edits_in_force:
        yield Condition("Edited", _TRUE, "EditedDownstream", describe_edits(observed))
    if (hold := observed.revert_hold) is not None:
        yield Condition("Reverted", _TRUE, hold.reason, hold.message)
    # Several tags may be missing, and a condition type may occur only once in a status.
    problems: dict[str, list[str]] = {}
    if observed.missing_tag:
        problems[Reason.TAG_MISSING] = [describe_lost_tag(observed)]
    for reason, sentence in find_tag_problems(observed):
        problems.setdefault(reason, []).append(sentence)
    for problem, sentences in problems.items():
        yield build_true(problem, "; ".join(filter(None, sentences)))
    if leftover_draft := describe_leftover_draft(entry.variant):
        yield Condition("DraftLeft", _TRUE, Reason.DELETION_REFUSED, leftover_draft)
    if observed.published_faults:
        yield Condition("Broken", _TRUE, Reason.PACKAGE_BROKEN, describe_faults(observed))


def _format_list(title: str, lines: Sequence[str]) -> str:
    return "\n".join((f"{title}:", *limit_lines(lines)))

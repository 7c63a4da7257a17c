"""Conditions with the instants that records and commits tell.

`lastTransitionTime` is since when the present reason of a condition is on record: an instant that
is not on record is left out, so that the same observation always gives the same output.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from fanout.api.gate_vocabulary import Verdict
from fanout.api.results import Condition, StageResult
from fanout.gates.evaluation_results import VariantEvaluation, VariantState
from fanout.plan.rendered_variant import RenderedVariant
from fanout.present.conflict_views import draft_time
from fanout.present.variant_conditions import find_undrafted_hold
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import replace


def complete_conditions(
    conditions: Sequence[Condition], policy_result: PolicyResult, since: datetime | None = None
) -> tuple[Condition, ...]:
    """Return the conditions with the generation that was observed; `since` is of the first one.

    An object that no API server stored has no generation.
    """
    declaration = (
        policy_result.resolved_policy.upstream_policy
        or policy_result.resolved_policy.package_variant
    )
    generation = declaration.metadata.generation if declaration is not None else None
    first = replace(conditions[0], last_transition_time=since or conditions[0].last_transition_time)
    return tuple(replace(it, observed_generation=generation) for it in (first, *conditions[1:]))


def published_since(variant: RenderedVariant) -> datetime | None:
    """Return when the published package was published; None if that is not on record yet."""
    published = variant.observed.published
    return published.at if published is not None and not variant.observed.is_unrecorded else None


def ready_since(variant: RenderedVariant, decision: VariantEvaluation) -> datetime | None:
    """Return since when the state of the variant is what it is, as far as is on record.

    Ready: its publication or the last of its checks. Verifying: its publication. Failed: the first
    check that failed. Else: its first hold.
    """
    published_at = published_since(variant)
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


def policy_ready_since(policy_result: PolicyResult) -> datetime | None:
    """Return since when the readiness of the policy has its present reason, if that is on record.

    Ready: when the last variant became ready. Failed: the first failure. Held: the first hold.
    Else: when the first of the variants that are not ready began. No record tells when targets
    fail, a repository stops to answer, or targets go.
    """
    decision = policy_result.decision
    if decision is None or policy_result.resolved_policy.failures or policy_result.orphans:
        return None
    pairs = [(it, decision.variants[it.spec.name]) for it in policy_result.variants]
    failed = [it for it in pairs if it[1].state is VariantState.FAILED]
    if failed:
        return _first(ready_since(*it) for it in failed)
    if any(it.observed.repository_state.failure is not None for it in policy_result.variants):
        return None
    if any(find_undrafted_hold(it) is not None for _, it in pairs):
        return None
    pending = [it for it in pairs if it[1].state is not VariantState.READY]
    if pairs and not pending:
        instants = [ready_since(*it) for it in pairs]
        recorded = [at for at in instants if at is not None]
        return max(recorded) if len(recorded) == len(instants) else None
    if decision.holds:
        return decision.holds[0].since
    return _first(ready_since(*it) or _drafted_since(it[0]) for it in pending)


def _drafted_since(variant: RenderedVariant) -> datetime | None:
    draft = variant.observed.draft
    return draft_time(draft) if draft is not None else None


def _first(instants: Iterable[datetime | None]) -> datetime | None:
    return min((at for at in instants if at is not None), default=None)


def verdict_since(policy_result: PolicyResult, stage: StageResult) -> datetime | None:
    """Return since when the candidate has its verdict in the stage, as far as is on record."""
    if stage.verdict is Verdict.PASSED:
        history = policy_result.status.history.get((stage.name, stage.candidate))
        return history.stretch_start if history is not None else None
    return stage.holds[0].since if stage.holds else None

"""Conditions with the instants that records and commits tell.

`lastTransitionTime` is since when the present reason of a condition is on record: an instant that
is not on record is left out, so that the same observation always gives the same output.
"""

from datetime import datetime

from fanout.api.gate_vocabulary import Verdict
from fanout.gates.evaluation_results import StageEvaluation, VariantEvaluation, VariantState
from fanout.plan.records.policy_status import format_instant
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.report.view_meta import Plain


def complete_conditions(
    conditions: list[Plain], policy_result: PolicyResult, since: datetime | None = None
) -> list[Plain]:
    """Return the conditions with the generation that was observed; `since` is of the first one.

    An object that no API server stored has no generation.
    """
    declaration = (
        policy_result.resolved_policy.upstream_policy
        or policy_result.resolved_policy.package_variant
    )
    generation = declaration.metadata.generation if declaration is not None else None
    observed = {} if generation is None else {"observedGeneration": generation}
    first = {} if since is None else {"lastTransitionTime": format_instant(since)}
    return [
        {**condition, **(first if position == 0 else {}), **observed}
        for position, condition in enumerate(conditions)
    ]


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
    """Return when the last variant became ready if all are; else since when the policy is held."""
    decision = policy_result.decision
    if decision is None:
        return None
    states = [decision.variants[it.spec.name] for it in policy_result.variants]
    if states and all(it.state is VariantState.READY for it in states):
        pairs = zip(policy_result.variants, states, strict=True)
        instants = [ready_since(variant, state) for variant, state in pairs]
        recorded = [at for at in instants if at is not None]
        return max(recorded) if len(recorded) == len(instants) else None
    return decision.holds[0].since if decision.holds else None


def verdict_since(policy_result: PolicyResult, stage: StageEvaluation) -> datetime | None:
    """Return since when the candidate has its verdict in the stage, as far as is on record."""
    if stage.verdict is Verdict.PASSED:
        history = policy_result.status.history.get((stage.name, stage.candidate))
        return history.stretch_start if history is not None else None
    return stage.holds[0].since if stage.holds else None

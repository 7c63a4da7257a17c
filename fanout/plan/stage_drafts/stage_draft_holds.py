"""Holds of released variants on others in the draft of their stage."""

from collections.abc import Sequence

from fanout.api.gate_vocabulary import VariantState
from fanout.api.reasons import Reason
from fanout.api.results import Hold, VariantResult
from fanout.gates.evaluation_results import PolicyEvaluation
from fanout.plan import plan_wording
from fanout.plan.rendered_variant import RenderedVariant
from fanout.values import replace

_RELEASED = (VariantState.RELEASED, VariantState.PROPOSED)


def hold_back_stage_drafts(
    variants: Sequence[RenderedVariant], decision: PolicyEvaluation
) -> tuple[RenderedVariant, ...]:
    """Return all variants with holds on those that wait for their draft; empty without any.

    A stage draft is published as a whole, when all in it may be. Who is not released any more
    leaves it, and keeps nobody waiting, unless a forge merges the branch with all that is on it.
    """
    members: dict[tuple[str, str], list[VariantResult]] = {}
    for variant in variants:
        evaluation = decision.variants[variant.spec.name]
        has_forge = variant.observed.repository_state.forge is not None
        if _is_written(variant) and (evaluation.state in _RELEASED or has_forge):
            members.setdefault(_draft_key(variant), []).append(evaluation)
    waiting = {
        key: first
        for key, evaluations in members.items()
        if any(it.publish for it in evaluations)
        and (first := next((it for it in evaluations if not it.publish), None)) is not None
    }
    if not waiting:
        return ()
    return tuple(
        replace(variant, publish_hold=_pending_hold(waiting[_draft_key(variant)]))
        if _draft_key(variant) in waiting and decision.variants[variant.spec.name].publish
        else variant
        for variant in variants
    )


def _draft_key(variant: RenderedVariant) -> tuple[str, str]:
    return variant.observed.repository_state.identity, variant.observed.draft_ref


def _is_written(variant: RenderedVariant) -> bool:
    """Return whether the stage's draft has the variant as it is to be published."""
    return (
        variant.observed.shares_draft
        and variant.observed.draft is not None
        and variant.draft_content is None
    )


def _pending_hold(other: VariantResult) -> Hold:
    """Return the hold on the first variant of the draft that cannot be published yet."""
    first = other.holds[0] if other.holds else None
    return Hold(
        Reason.STAGE_DRAFT_PENDING,
        plan_wording.describe_shared_draft(other.name, first.message if first is not None else ""),
        who=first.who if first is not None else "",
        until=first.until if first is not None else None,
    )

"""Last phase of a variant in a pass: what the gates decided, and the step that follows."""

from enum import StrEnum

from fanout.gates.evaluation_results import VariantEvaluation, VariantState
from fanout.gates.gate_facts import CheckAnswer
from fanout.plan.rendered_variant import RenderedVariant
from fanout.values import frozen, replace


class VariantStep(StrEnum):
    """Step of a variant: the change that a pass makes in its repository."""

    KEEP = "keep"  # nothing
    WRITE = "write"  # a draft
    PUBLISH = "publish"  # merge and tag the open draft
    SETTLE = "settle"  # record a publication found in Git and remove its draft
    ADOPT = "adopt"  # the published package equals the rendering; only the digest differs
    REMOVE = "remove"  # remove an obsolete draft


@frozen
class DecidedVariant:
    """Rendered variant with the step that follows from the decision of the gates."""

    rendered: RenderedVariant
    step: VariantStep
    release: bool = False  # to be recorded before anything is pushed
    answers: tuple[CheckAnswer, ...] = ()  # of machine checks, to be recorded


def plan_step(
    variant: RenderedVariant, decision: VariantEvaluation, *, publish: bool
) -> DecidedVariant:
    """Choose the step of one variant; without `publish`, only its draft is updated."""
    planned = _choose_step(variant, decision, publish=publish)
    return replace(planned, answers=decision.answers) if decision.answers else planned


def _choose_step(
    variant: RenderedVariant, decision: VariantEvaluation, *, publish: bool
) -> DecidedVariant:
    # Suspension stops changes, not the record of a publication that has taken
    # place.
    if decision.state is VariantState.SUSPENDED:
        return DecidedVariant(
            variant, VariantStep.SETTLE if variant.observed.is_unrecorded else VariantStep.KEEP
        )
    if variant.draft_content is not None:
        # Equal content does not make an unmanaged package fanout's own: adoption is
        # published like any other draft.
        is_in_force = variant.draft_content.tree == variant.observed.path_state.tree and not (
            variant.observed.is_unmanaged or variant.observed.is_moving
        )
        return DecidedVariant(variant, VariantStep.ADOPT if is_in_force else VariantStep.WRITE)
    if publish and decision.publish:
        return DecidedVariant(variant, VariantStep.PUBLISH, release=decision.release)
    if variant.observed.is_unrecorded:
        return DecidedVariant(variant, VariantStep.SETTLE)
    # A draft with edits is kept: its branch is the only place that has them.
    if (
        variant.observed.draft is not None
        and variant.selected.is_in_force
        and not variant.observed.draft.has_edits
    ):
        return DecidedVariant(variant, VariantStep.REMOVE)
    return DecidedVariant(variant, VariantStep.KEEP, release=publish and decision.release)

"""Last phase of a variant in a pass: what the gates decided, and the step that follows."""

from enum import StrEnum

from fanout.api.gate_vocabulary import RELEASED_STATES, VariantState
from fanout.api.results import CheckAnswer, VariantResult
from fanout.gates.gate_facts import PolicyFacts, SetFacts
from fanout.plan.rendered_variant import RenderedVariant
from fanout.values import Value


class VariantStep(StrEnum):
    """Step of a variant: the change that a pass makes in its repository."""

    KEEP = "keep"  # nothing
    WRITE = "write"  # a draft
    PUBLISH = "publish"  # merge and tag the open draft
    MERGE = "merge"  # have the forge merge the pull request of its draft
    SETTLE = "settle"  # record a publication found in Git and remove its draft
    ADOPT = "adopt"  # the published package equals the rendering; only the digest differs
    REMOVE = "remove"  # remove an obsolete draft


class DecidedVariant(Value):
    """Rendered variant with the step that follows from the decision of the gates."""

    rendered: RenderedVariant
    step: VariantStep
    release: bool = False  # to be recorded before anything is pushed
    answers: tuple[CheckAnswer, ...] = ()  # of machine checks, to be recorded
    evaluation: VariantResult | None = None  # the decision; None: of no policy


_StepRelease = tuple[VariantStep, bool]  # step of a variant, and whether it is released


def plan_step(
    variant: RenderedVariant, decision: VariantResult, facts: PolicyFacts, *, publish: bool
) -> DecidedVariant:
    """Choose the step of one variant; without `publish`, only its draft is updated.

    A variant that is suspended by itself leaves the draft that it shares with others. Of a
    suspended policy everything stays.
    """
    # Suspension stops changes, not the record of a publication that has taken place.
    if decision.state is VariantState.SUSPENDED and (
        facts.suspended or not variant.observed.shares_draft
    ):
        step = VariantStep.SETTLE if variant.observed.is_unrecorded else VariantStep.KEEP
        is_released = False
    else:
        # What the forge has refused to merge is shown as that, and it is asked again.
        own = facts.sets.get(variant.spec.name, SetFacts())
        is_asked_again = own.is_asked_again and decision.holds[-1:] == (own.hold,)
        is_published = publish and (decision.publish or (is_asked_again and decision.let_through))
        step, is_released = _choose_step(
            variant, decision, publish=publish, is_published=is_published
        )
    return DecidedVariant(variant, step, is_released, decision.answers, decision)


def _choose_step(
    variant: RenderedVariant, decision: VariantResult, *, publish: bool, is_published: bool
) -> _StepRelease:
    """Choose the step, and whether it releases the variant."""
    observed, is_due = variant.observed, variant.draft_content is not None
    draft = observed.draft
    if variant.changes_nothing:
        # What is found in Git gets its tag first, and the digest of its inputs in the next pass.
        return VariantStep.SETTLE if observed.is_unrecorded else VariantStep.ADOPT, False
    if variant.is_declined:
        return VariantStep.KEEP, False
    # A draft with edits is kept: its branch is the only place that has them. Nor is one removed
    # that edits have broken.
    may_leave = draft is not None and not draft.has_edits and not observed.is_unrecorded
    if observed.shares_draft:
        # Only what is released is in a draft of a stage.
        is_released = decision.state in RELEASED_STATES
        if is_due and is_released and (publish or not decision.release):
            return VariantStep.WRITE, decision.release
        if may_leave and (is_due or not is_released):
            return VariantStep.REMOVE, False
    elif is_due:
        return VariantStep.WRITE, False
    if is_published:
        has_forge = observed.repository_state.forge is not None
        how = VariantStep.MERGE if has_forge else VariantStep.PUBLISH
        return how, decision.release
    if observed.is_unrecorded:
        return VariantStep.SETTLE, False
    if may_leave and variant.selected.is_in_force:
        return VariantStep.REMOVE, False
    return VariantStep.KEEP, publish and decision.release

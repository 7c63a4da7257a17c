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


def plan_step(
    variant: RenderedVariant, decision: VariantResult, facts: PolicyFacts, *, publish: bool
) -> DecidedVariant:
    """Choose the step of one variant; without `publish`, only its draft is updated.

    A variant that is suspended by itself leaves the draft that it shares with others. Of a
    suspended policy everything stays.
    """
    observed, draft = variant.observed, variant.observed.draft
    is_due = variant.draft_content is not None
    is_shared, is_unrecorded = observed.shares_draft, observed.is_unrecorded
    # Only what is released is in a draft of a stage.
    joins = decision.state in RELEASED_STATES and (publish or not decision.release)
    leaves = is_due or decision.state not in RELEASED_STATES
    # A draft with edits is kept: its branch is the only place that has them. Nor is one removed
    # that edits have broken.
    may_leave = draft is not None and not draft.has_edits and not is_unrecorded
    # What the forge has refused to merge is shown as that, and it is asked again.
    own = facts.sets.get(variant.spec.name, SetFacts())
    is_asked_again = own.is_asked_again and decision.holds[-1:] == (own.hold,)
    step, is_released = VariantStep.KEEP, False
    # Suspension stops changes, not the record of a publication that has taken place.
    if decision.state is VariantState.SUSPENDED and (facts.suspended or not is_shared):
        step = VariantStep.SETTLE if is_unrecorded else VariantStep.KEEP
    elif variant.changes_nothing:
        # What is found in Git gets its tag first, and the digest of its inputs in the next pass.
        step = VariantStep.SETTLE if is_unrecorded else VariantStep.ADOPT
    elif variant.is_declined:
        step = VariantStep.KEEP
    elif is_shared and is_due and joins:
        step, is_released = VariantStep.WRITE, decision.release
    elif is_shared and may_leave and leaves:
        step = VariantStep.REMOVE
    elif is_due and not is_shared:
        step = VariantStep.WRITE
    elif publish and (decision.publish or (is_asked_again and decision.let_through)):
        has_forge = observed.repository_state.forge is not None
        step = VariantStep.MERGE if has_forge else VariantStep.PUBLISH
        is_released = decision.release
    elif is_unrecorded:
        step = VariantStep.SETTLE
    elif may_leave and variant.selected.is_in_force:
        step = VariantStep.REMOVE
    else:
        is_released = publish and decision.release
    return DecidedVariant(variant, step, is_released, decision.answers, decision)

"""Reasons why automatic promotion leaves a draft with an open gate to a person.

Automatic promotion is switched on by an administrator, never goes back to an older
revision, and never publishes what a person has to review first. (Design §2.)
"""

from collections.abc import Sequence
from functools import cached_property

from fanout.api.reasons import Reason
from fanout.gates.active_decisions import ApplicableDecision
from fanout.gates.gate_evaluation import GateEvaluation
from fanout.gates.gate_facts import DraftFacts, Hold
from fanout.gates.gate_rules import StageRule
from fanout.gates.gate_wording import format_names, label_stage
from fanout.gates.record_facts import DecisionFacts
from fanout.gates.rollback_pins import Pin
from fanout.gates.stage_tally import TalliedVariant
from fanout.values import replace


class AutomaticPromotion:
    """Limits of automatic promotion in one stage for its candidate."""

    def __init__(self, evaluation: GateEvaluation, stage_rule: StageRule, candidate: str) -> None:
        self._evaluation = evaluation
        self._stage_rule = stage_rule
        self._candidate = candidate

    def blocked(self, variant: TalliedVariant, draft: DraftFacts, pin: Pin | None) -> Hold | None:
        """Return why automation leaves the draft to a person, or None.

        `pin` is the pin of the spec: going back to it is no downgrade that anybody must confirm.
        """
        review_hold = _review_hold(variant, draft)
        if review_hold is not None:
            return review_hold
        if not self._stage_rule.automatic:
            return self._automation_off
        if pin is None and self._is_downgrade(variant):
            return self._downgrade_hold
        return None if self._evaluation.policy_facts.sweep else self._sweep_awaited

    def _is_downgrade(self, variant: TalliedVariant) -> bool:
        publication = variant.facts.published
        if publication is None:
            return False
        ages = self._evaluation.ages
        if ages.are_comparable(self._candidate, publication.revision):
            return ages.is_older(self._candidate, publication.revision)
        # Commits have no order of their own. What the stage is on record to have left counts as
        # older.
        return (
            self._evaluation.verdicts[self._stage_rule.name].history(self._candidate).left
            is not None
        )

    @cached_property
    def _automation_off(self) -> Hold:
        stage_label = label_stage(self._stage_rule.name)
        sentence = f"nobody has switched automatic promotion on for {stage_label}"
        if self._stage_rule.opposing_policies:
            sentence = (
                f"PromotionPolicy {format_names(self._stage_rule.opposing_policies)} does not"
                " switch automatic promotion"
                f" on for {stage_label} as others do, and all that have autoPromotion must"
            )
        return Hold(
            Reason.AUTOMATION_OFF,
            sentence,
            "an administrator: PromotionPolicy.autoPromotion; whoever may decide: fanout promote",
        )

    @cached_property
    def _sweep_awaited(self) -> Hold:
        return Hold(
            Reason.SWEEP_AWAITED,
            "automatic promotion publishes in sweeps, and this pass is none",
            "the next sweep; whoever may decide: fanout promote",
        )

    @cached_property
    def _downgrade_hold(self) -> Hold:
        return Hold(
            Reason.WOULD_GO_BACK,
            f"it has a newer revision than {self._candidate}, and automation never goes back",
            "whoever may decide: fanout promote",
        )


def unreviewed_hold(
    variant: TalliedVariant, draft: DraftFacts, applicable_decisions: Sequence[ApplicableDecision]
) -> Hold | None:
    """Return what a person has to review first, unless a decision lists this tree."""
    if any(draft.tree in it.decision.trees for it in applicable_decisions):
        return None
    return _review_hold(variant, draft)


def not_covered_hold(
    hold: Hold | None, applicable_decisions: Sequence[ApplicableDecision]
) -> Hold | None:
    """Extend a hold by the decision that would have covered this draft had it existed.

    The draft was rewritten, or first written, after the decision.
    """
    if hold is None or not applicable_decisions:
        return hold
    decision = applicable_decisions[-1].decision
    not_covered = (
        f"decision {decision.name} of {decision.by} is about drafts of {decision.revision} among"
        " which this one"
        " is not"
    )
    return replace(hold, sentence=f"{hold.sentence}; {not_covered}")


def _review_hold(variant: TalliedVariant, draft: DraftFacts) -> Hold | None:
    """Return why a person has to review the draft before anybody publishes it, or None."""
    if variant.facts.published is not None and variant.facts.published.reverted is not None:
        return variant.facts.published.reverted
    return _ADOPTION_HOLD if draft.adopts else None


def conflict_hold(
    draft: DraftFacts, applicable_decisions: Sequence[ApplicableDecision]
) -> Hold | None:
    """Return the hold of a draft with undecided merge conflicts, whoever publishes it.

    A decision among `applicable_decisions` accepts the draft as it is if it accepts
    conflicts, names the variant and lists the draft's tree, which shows that its author has
    seen the result.

    (Design §4.)
    """
    if not draft.conflict_count or any(
        _accepts_conflicts(it.decision, draft) for it in applicable_decisions
    ):
        return None
    conflict_count = draft.conflict_count
    conflicts = "1 merge conflict" if conflict_count == 1 else f"{conflict_count} merge conflicts"
    return Hold(
        Reason.MERGE_CONFLICT,
        f"{conflicts} in its draft: upstream and local changed the same, and nobody has decided",
        "whoever maintains the package: a commit on the draft that changes the file, `fanout"
        " resolve`, or `fanout promote` with --variant and --accept-conflicts",
    )


def _accepts_conflicts(decision: DecisionFacts, draft: DraftFacts) -> bool:
    # A stage-wide decision cannot accept: nobody looks at the conflicts of a whole stage.
    accepts_by_name = decision.accept_conflicts and bool(decision.variants)
    return accepts_by_name and draft.tree in decision.trees


_ADOPTION_HOLD = Hold(
    Reason.ADOPTION_AWAITS,
    "it is the first draft for a package that fanout did not write, and that is never published"
    " automatically",
    "whoever may decide: fanout promote",
)

"""Reasons why automatic promotion leaves a draft with an open gate to a person.

Automatic promotion is switched on by an administrator, never goes back to an older
revision, and never publishes what a person has to review first (docs/concepts/promotion.md).
"""

from collections.abc import Sequence
from functools import cached_property

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.api.text_fields import pluralize
from fanout.gates import gate_wording
from fanout.gates.gate_evaluation import GateEvaluation
from fanout.gates.gate_facts import DraftFacts
from fanout.gates.gate_rules import StageRule
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
        """Return why automation leaves the draft to a person, or None; `pin` is of the spec."""
        review_hold = _review_hold(variant, draft)
        if review_hold is not None:
            return review_hold
        if not self._stage_rule.automatic:
            return self._automation_off
        publication = variant.facts.published
        if pin is None and publication is not None:
            ages, candidate = self._evaluation.ages, self._candidate
            is_downgrade = ages.is_older(candidate, publication.revision)
            if not ages.are_comparable(candidate, publication.revision):
                # Commits have no order: what the stage is on record to have left counts as older.
                verdicts = self._evaluation.verdicts[self._stage_rule.name]
                is_downgrade = verdicts.history(candidate).left is not None
            if is_downgrade:
                return self._downgrade_hold
        return None if self._evaluation.policy_facts.sweep else _SWEEP_HOLD

    @cached_property
    def _automation_off(self) -> Hold:
        sentence = gate_wording.describe_automation_off(
            gate_wording.label_stage(self._stage_rule.name), self._stage_rule.opposing_policies
        )
        return Hold(Reason.AUTOMATION_OFF, sentence, gate_wording.format_automation_actor())

    @cached_property
    def _downgrade_hold(self) -> Hold:
        newer = f"its published revision is newer than {self._candidate}"
        sentence = f"{newer}; automation never downgrades"
        return Hold(Reason.WOULD_GO_BACK, sentence, gate_wording.ANY_PROMOTER)


def unreviewed_hold(
    variant: TalliedVariant, draft: DraftFacts, decisions: Sequence[DecisionFacts]
) -> Hold | None:
    """Return what a person has to review first, unless a decision lists this tree."""
    if any(draft.tree in it.trees for it in decisions):
        return None
    return _review_hold(variant, draft)


def not_covered_hold(hold: Hold | None, decisions: Sequence[DecisionFacts]) -> Hold | None:
    """Extend a hold by the decision that came before its draft was written or rewritten."""
    if hold is None or not decisions:
        return hold
    decision = decisions[-1]
    not_covered = (
        f"decision {decision.name} by {decision.by} covers other drafts of {decision.revision}, not"
        " this one"
    )
    return replace(hold, message=f"{hold.message}; {not_covered}")


def _review_hold(variant: TalliedVariant, draft: DraftFacts) -> Hold | None:
    """Return why a person has to review the draft before anybody publishes it, or None."""
    if variant.facts.published is not None and variant.facts.published.reverted is not None:
        return variant.facts.published.reverted
    return _ADOPTION_HOLD if draft.adopts else None


def conflict_hold(draft: DraftFacts, decisions: Sequence[DecisionFacts]) -> Hold | None:
    """Return the hold of a draft with undecided merge conflicts, whoever publishes it.

    A decision among `decisions` accepts the draft as it is if it accepts conflicts, names the
    variant and lists the draft's tree, which shows that its author has seen the result
    (docs/concepts/merge-conflicts.md).
    """
    # A stage-wide decision cannot accept: nobody looks at the conflicts of a whole stage.
    if not draft.conflict_count or any(
        it.spec.accept_conflicts and it.spec.variants and draft.tree in it.trees for it in decisions
    ):
        return None
    sentence = f"{pluralize(draft.conflict_count, 'undecided merge conflict')} in its draft"
    return Hold(Reason.MERGE_CONFLICT, sentence, gate_wording.CONFLICT_ACTOR)


_ADOPTION_HOLD = Hold(
    Reason.ADOPTION_AWAITS,
    "the first draft of an adopted package is never published automatically",
    gate_wording.ANY_PROMOTER,
)
_SWEEP_HOLD = Hold(
    Reason.SWEEP_AWAITED,
    "automatic promotion publishes only in sweeps",
    gate_wording.NEXT_SWEEP_OR_PROMOTER,
)

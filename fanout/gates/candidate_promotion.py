"""Revisions that decisions make candidates, ahead of what a stage would take by itself.

A Publish that overrides `after`, and the soak where the stage has one, does: nothing that the
choice of candidates rests on is left to wait for. Where a stage has no `after`, a Publish of a
newer revision than its own choice does. (Decision 0101.)
"""

from collections.abc import Collection, Mapping

from fanout.api.gate_vocabulary import OverridableGate
from fanout.gates.active_decisions import ActiveDecisions, is_applied
from fanout.gates.gate_facts import VariantFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.promotion_order import RevisionAges
from fanout.gates.record_facts import DecisionFacts
from fanout.gates.stage_tally import StageTally
from fanout.values import Value, field


class CandidatePromotion(Value):
    """Candidates by decisions: of the stage as a whole, and of variants that go before it."""

    stage: str = ""
    by_variant: Mapping[str, str] = field(default_factory=dict)
    # Variants that took such a revision alone; they keep it until their stage comes after.
    ahead: frozenset[str] = frozenset()

    def newer_than(self, candidate: str, ages: RevisionAges) -> "CandidatePromotion":
        """Return the promotions of revisions that are newer than the stage's own choice."""
        by_variant = {
            name: revision
            for name, revision in self.by_variant.items()
            if ages.is_older(candidate, revision)
        }
        stage = self.stage if ages.is_older(candidate, self.stage) else ""
        return CandidatePromotion(stage, by_variant, self.ahead)

    @property
    def leads(self) -> frozenset[str]:
        """Return the variants that go their own way."""
        return self.ahead.union(self.by_variant)


NOTHING_PROMOTED = CandidatePromotion()


def list_needed_overrides(stage_rule: StageRule) -> frozenset[OverridableGate]:
    """Return the gates that a decision must override to make its revision the candidate."""
    if stage_rule.after is None:
        return frozenset()
    soak = {OverridableGate.SOAK} if stage_rule.after.soak_time else set()
    return frozenset({OverridableGate.AFTER, *soak})


def find_promoted(
    tally: StageTally,
    active_decisions: ActiveDecisions,
    reachable: Collection[str],
    ages: RevisionAges,
) -> CandidatePromotion:
    """Find the revisions of a stage that decisions make candidates; the last decision counts.

    `reachable`: those that the stage may take without going back.
    """
    if not active_decisions.publishes:
        return NOTHING_PROMOTED
    stage_rule, stage_revision = tally.stage_rule, ""
    stages, needed = ("", stage_rule.name), list_needed_overrides(stage_rule)
    by_variant: dict[str, str] = {}
    ahead: set[str] = set()
    variants = {it.facts.name: it.facts for it in tally.variants}

    def is_due(decision: DecisionFacts, variant_facts: VariantFacts) -> bool:
        publication, revision = variant_facts.published, decision.revision
        if is_applied(decision, variant_facts) or (
            publication is not None and ages.is_older(revision, publication.revision)
        ):
            return False
        rollback = active_decisions.last_rollback(stage_rule.name, variant_facts.name)
        return rollback is None or rollback.order < decision.order

    for decision in active_decisions.publishes:
        # Asked first, because a large policy has many decisions about other stages.
        if decision.spec.stage not in stages or not needed.issubset(decision.spec.overrides):
            continue
        revision = decision.revision
        # One that names drafts was about the candidate of its time, and not about another one.
        if revision not in reachable or not decision.is_about_revision:
            continue
        named = [variants[it] for it in decision.spec.variants if it in variants]
        by_variant |= {it.name: revision for it in named if is_due(decision, it)}
        ahead |= {
            it.name
            for it in named
            if it.published is not None
            and it.published.revision == revision
            and is_applied(decision, it)
        }
        if not decision.spec.variants and any(is_due(decision, it) for it in variants.values()):
            stage_revision, by_variant = revision, {}
    return CandidatePromotion(stage_revision, by_variant, frozenset(ahead))

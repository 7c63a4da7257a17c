"""One pass over a policy's facts: every stage counted, its candidate chosen, its verdicts known.

The part of the answer that list, plan and explain share; what each variant may do follows from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from fanout.gates.after import Gate, Upstream, ask
from fanout.gates.approvals import ApprovalIndex
from fanout.gates.candidate import Choice, choose, coming
from fanout.gates.census import Census, Registrar, by_stage
from fanout.gates.checks import EvidenceIndex
from fanout.gates.decisions import Standing, by_spec
from fanout.gates.facts import Hold, PolicyFacts, StageHistory, VariantFacts
from fanout.gates.order import Ages, topological
from fanout.gates.records import Override
from fanout.gates.rules import StageRule
from fanout.gates.verdict import Ledger, judge


@dataclass(slots=True)
class Judgement:
    """What is known of each stage. `who` is filled in as stages are decided, upstream first."""

    facts: PolicyFacts
    ages: Ages
    stages: tuple[StageRule, ...]  # each after those it waits for
    approvals: ApprovalIndex
    standing: Standing
    suspended: Hold | None  # the whole policy
    nowhere: tuple[VariantFacts, ...] = ()  # variants in no stage
    censuses: dict[str, Census] = field(default_factory=dict)
    ledgers: dict[str, Ledger] = field(default_factory=dict)
    choices: dict[str, Choice] = field(default_factory=dict)
    who: dict[str, str] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        """The one instant of the pass."""
        return self.facts.now

    def candidate(self, stage: str) -> str:
        """The stage's candidate; "" when there is none."""
        return self.choices[stage].revision

    def stage_gate(self, rule: StageRule, revision: str) -> Gate:
        """`after` of a stage for a revision, with what a person has lifted for all of the stage."""
        return self.gate(rule, revision, self.standing.stage_overrides(rule.name, revision))

    def gate(self, rule: StageRule, revision: str, lifted: frozenset[Override]) -> Gate:
        """`after` of a stage for a revision, with exactly this lifted."""
        listed = rule.after.stages if rule.after else ()
        upstreams = {
            name: Upstream(self.ledgers[name], self._coming(name, revision), self.who.get(name, ""))
            for name in listed
        }
        return ask(rule.after, revision, upstreams, self.now, lifted)

    def final(self) -> None:
        """Judge again with the candidates known: what failed to render failed for them."""
        past = _history_by_stage(self.facts)
        for rule in self.stages:
            census = self.censuses[rule.name]
            candidate = self.candidate(rule.name)
            self.ledgers[rule.name] = judge(census, past[rule.name], self.now, candidate)

    def _coming(self, stage: str, revision: str) -> bool:
        census, ledger = self.censuses[stage], self.ledgers[stage]
        return coming(census, ledger, self.candidate(stage), revision, self.ages)


def survey(facts: PolicyFacts) -> Judgement:
    """Count every stage and choose its candidate, the stages before first."""
    now = facts.now
    standing = Standing(facts.records.decisions, now)
    suspended = standing.policy_suspended()
    if suspended is None and facts.suspended:
        suspended = by_spec("the policy", "the policy's author")
    registrar = Registrar(EvidenceIndex(facts.records.evidence, now), standing, suspended)
    groups, nowhere = by_stage(facts.variants, {rule.name: rule for rule in facts.stages})
    result = Judgement(
        facts,
        Ages(facts.revisions),
        topological(facts.stages),
        ApprovalIndex(facts.records.approvals, facts.stages, now),
        standing,
        suspended,
        tuple(nowhere),
    )
    past = _history_by_stage(facts)
    for rule in result.stages:
        census = registrar.take(rule, groups[rule.name])
        ledger = judge(census, past[rule.name], now)
        result.censuses[rule.name], result.ledgers[rule.name] = census, ledger
        result.choices[rule.name] = _choose(result, rule)
    return result


def _choose(result: Judgement, rule: StageRule) -> Choice:
    known: dict[str, Gate] = {}

    def gate(revision: str) -> Gate:
        if revision not in known:
            known[revision] = result.stage_gate(rule, revision)
        return known[revision]

    census, ledger = result.censuses[rule.name], result.ledgers[rule.name]
    return choose(census, ledger, gate, result.approvals, result.ages)


def _history_by_stage(facts: PolicyFacts) -> Mapping[str, dict[str, StageHistory]]:
    """Of the stages there are; a stage that was taken out of the policy is forgotten."""
    past: dict[str, dict[str, StageHistory]] = {rule.name: {} for rule in facts.stages}
    for (stage, revision), history in facts.history.items():
        if stage in past:
            past[stage][revision] = history
    return past

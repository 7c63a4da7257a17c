"""One pass over a policy's facts: every stage counted, its candidate chosen, its verdicts known.

The part of the answer that list, plan and explain share; what each variant may do follows from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from fanout.api.reasons import Reason
from fanout.gates.after import OPEN, Gate, Upstream, ask
from fanout.gates.answer import State
from fanout.gates.approvals import ApprovalIndex
from fanout.gates.candidate import Choice, choose, coming, serialized
from fanout.gates.census import Census, Member, by_stage
from fanout.gates.checks import EvidenceIndex
from fanout.gates.control import forward
from fanout.gates.decisions import Standing, by_spec, overrides
from fanout.gates.facts import Draft, Hold, PolicyFacts, StageHistory, VariantFacts
from fanout.gates.order import Ages, topological
from fanout.gates.pins import Pin, pinned
from fanout.gates.records import Override
from fanout.gates.registrar import Registrar
from fanout.gates.requirements import Requirements, failing
from fanout.gates.rules import StageRule, Verdict
from fanout.gates.sources import Sources
from fanout.gates.verdict import Ledger, judge
from fanout.gates.windows import Windows

_Key = tuple[str, str, frozenset[Override]]


@dataclass
class Judgement:
    """What is known of each stage. `who` is filled in as stages are decided, upstream first."""

    facts: PolicyFacts
    ages: Ages
    stages: tuple[StageRule, ...]  # each after those it waits for
    evidence: EvidenceIndex
    approvals: ApprovalIndex
    standing: Standing
    suspended: Hold | None  # the whole policy
    nowhere: tuple[VariantFacts, ...] = ()  # variants in no stage
    censuses: dict[str, Census] = field(default_factory=dict)
    ledgers: dict[str, Ledger] = field(default_factory=dict)
    choices: dict[str, Choice] = field(default_factory=dict)
    who: dict[str, str] = field(default_factory=dict)
    _gates: dict[_Key, Gate] = field(default_factory=dict)  # as long as nothing is decided
    _ready_at: dict[tuple[str, str], datetime | None] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        """The one instant of the pass."""
        return self.facts.now

    @cached_property
    def windows(self) -> Windows:
        """When anything may be published."""
        facts = self.facts
        return Windows(facts.calendars, facts.now, finishing=facts.finishing, unread=facts.unread)

    @cached_property
    def sources(self) -> Sources:
        """Who reads which cluster object."""
        return Sources(self.stages, self.censuses)

    def candidate(self, stage: str) -> str:
        """The stage's candidate; "" when there is none."""
        return self.choices[stage].revision

    def pin(self, rule: StageRule, variant: str = "") -> Pin | None:
        """What the stage, or one variant in it, goes back to and stays at."""
        found = pinned(rule, self.standing.rollbacks, variant)
        return None if found is None or self._left(rule, found, variant) else found

    def _left(self, rule: StageRule, pin: Pin, variant: str) -> bool:
        """May the revision be taken that a person has promoted since they went back?"""
        if not pin.until:
            return False
        orders = self.standing.orders(rule.name, variant, pin.until)
        return self.gate(rule, pin.until, overrides(orders)).verdict is Verdict.PASSED

    def stage_gate(self, rule: StageRule, revision: str) -> Gate:
        """`after` of a stage for a revision, with what a person has lifted for all of the stage."""
        return self.gate(rule, revision, self.standing.stage_overrides(rule.name, revision))

    def gate(self, rule: StageRule, revision: str, lifted: frozenset[Override]) -> Gate:
        """`after` of a stage for a revision, with exactly this lifted."""
        if rule.after is None:
            return OPEN
        key = (rule.name, revision, lifted)
        found = self._gates.get(key)
        if found is None:
            upstreams = {
                name: Upstream(
                    self.ledgers[name],
                    self._coming(name, revision),
                    self._who(name, revision),
                    self._opens(name, revision),
                    self._returns(name, revision),
                )
                for name in rule.after.stages
            }
            found = self._gates[key] = ask(rule.after, revision, upstreams, self.now, lifted)
        return found

    def final(self) -> None:
        """Judge again with the candidates known: what failed before publication failed for them."""
        requirements = Requirements(self.evidence, self.approvals, self.standing, self.now)
        past = _history_by_stage(self.facts)
        self._gates.clear()
        self._ready_at.clear()
        for rule in self.stages:
            for member in self.censuses[rule.name].members:
                self._require(rule, member, requirements)
            self.ledgers[rule.name] = self.ledger(rule, past, self.candidate(rule.name))

    def decided(self, stage: str, who: str) -> None:
        """The stage is decided, and somebody can do something about what it waits for."""
        self.who[stage] = who
        self._gates.clear()  # the sentences about it name them

    def _require(self, rule: StageRule, member: Member, requirements: Requirements) -> None:
        """What is required of the variant's standing draft, and whether it fails for it."""
        facts = member.facts
        pin = self.pin(rule, facts.name)
        member.candidate = candidate = pin.revision if pin else self.candidate(rule.name)
        member.draft = draft = standing_draft(facts, candidate)
        if candidate != self.candidate(rule.name):
            member.returned = _sent_back(pin)
        if draft is not None and member.state is State.FAILED:
            self.censuses[rule.name].mend(member, draft)
        if draft is not None and rule.requires:
            waiting = self.standing.waiting(facts, candidate)
            orders = [order for order in waiting if order.covers(facts, draft)]
            member.required, answers = requirements.ask(rule, facts, draft, orders)
            member.answers += answers
        if facts.failed is not None or member.required:
            # What a stage requires is not asked again of what goes back.
            member.failing = failing(facts, member.required if pin is None else ())

    def ledger(
        self, rule: StageRule, past: Mapping[str, Mapping[str, StageHistory]], candidate: str = ""
    ) -> Ledger:
        """How every revision stands in a stage, when those before it are judged."""
        if not rule.control_flow:
            return judge(self.censuses[rule.name], past[rule.name], self.now, candidate)
        listed = rule.after.stages if rule.after else ()
        return forward(
            rule,
            lambda revision: self.stage_gate(rule, revision),
            {name: self.ledgers[name] for name in listed},
            past[rule.name],
            self.ages.allowed,
            self.now,
        )

    def _who(self, stage: str, revision: str) -> str:
        """Who can do something about what a stage before waits for, if it is to take this."""
        rule, choice = self.censuses[stage].rule, self.choices.get(stage)
        if rule.control_flow or (choice is not None and choice.revision != revision):
            holds = self.stage_gate(rule, revision).holds
            if holds:
                return holds[0].who
        return self.who.get(stage, "")

    def _opens(self, stage: str, revision: str) -> datetime | None:
        """When time alone lets the stage be ready with the revision; None if it is already."""
        census, ledger = self.censuses[stage], self.ledgers[stage]
        if ledger.stays(revision):
            return None
        if census.rule.control_flow:
            gate = self.stage_gate(census.rule, revision)
            return gate.again if gate.verdict is Verdict.PASSED else gate.next
        key = (stage, revision)
        if key not in self._ready_at:
            failing = census.failing(revision) if revision == self.candidate(stage) else 0
            self._ready_at[key] = census.passes_at(revision, failing)
        return self._ready_at[key]

    def _coming(self, stage: str, revision: str) -> bool:
        """Can the stage still come to have passed the revision?"""
        rule = self.censuses[stage].rule
        if rule.control_flow:
            return self.stage_gate(rule, revision).possible
        return self._returns(stage, revision)

    def _returns(self, stage: str, revision: str) -> bool:
        """Can the stage still come, or come back, to be ready with the revision?"""
        census, ledger = self.censuses[stage], self.ledgers[stage]
        if census.rule.control_flow:
            return self.stage_gate(census.rule, revision).stays
        pin = self.pin(census.rule)
        if pin is not None and pin.revision == revision:
            return True
        return coming(census, ledger, self.candidate(stage), revision, self.ages)


def survey(facts: PolicyFacts) -> Judgement:
    """Count every stage and choose its candidate, the stages before first."""
    now = facts.now
    standing = Standing(facts.records.decisions, now, facts.variants)
    suspended = standing.policy_suspended()
    if suspended is None and facts.suspended:
        suspended = by_spec("the policy", "the policy's author")
    evidence = EvidenceIndex(facts.records.evidence, now)
    registrar = Registrar(evidence, standing, suspended, now)
    groups, nowhere = by_stage(facts.variants, {rule.name: rule for rule in facts.stages})
    result = Judgement(
        facts,
        Ages(facts.revisions),
        topological(facts.stages),
        evidence,
        ApprovalIndex(facts.records.approvals, facts.stages, now, standing),
        standing,
        suspended,
        tuple(nowhere),
    )
    for rule in result.stages:
        result.censuses[rule.name] = registrar.take(rule, groups[rule.name])
    past = _history_by_stage(facts)
    for rule in result.stages:
        result.ledgers[rule.name] = result.ledger(rule, past)
        result.choices[rule.name] = _choose(result, rule)
    return result


def _sent_back(pin: Pin | None) -> Hold | None:
    """A variant that went back without the rest of its stage has failed where that goes on."""
    if pin is None or pin.decision is None:
        return None
    said = pin.decision
    sentence = f"{said.by} had it go back to {pin.revision}: {said.reason}".rstrip(": ")
    return Hold(Reason.PINNED, sentence, f"{said.by}: fanout withdraw {said.name}", pin.at)


def standing_draft(facts: VariantFacts, candidate: str) -> Draft | None:
    """The standing draft, when it is what the candidate asks for and not in force already."""
    draft, published = facts.draft, facts.published
    if draft is None or not draft.current or draft.revision != candidate:
        return None
    in_force = published is not None and (published.revision, published.digest) == (
        draft.revision,
        draft.digest,
    )
    again = draft.moves or (published is not None and published.undone is not None)
    return None if in_force and not again else draft


def _choose(result: Judgement, rule: StageRule) -> Choice:
    pin = pinned(rule, result.standing.rollbacks)
    if pin is not None:
        revision = pin.revision if result.pin(rule) is not None else pin.until
        return Choice(revision, result.ages.newer_than(revision), _distinct(revision, pin.until))
    census, ledger = result.censuses[rule.name], result.ledgers[rule.name]

    def ask(revision: str) -> Gate:
        return result.stage_gate(rule, revision)

    chosen = choose(census, ledger, ask, result.approvals, result.ages)
    if not result.facts.serialize:
        return chosen
    after = [
        (it.after.soak, result.censuses[it.name])
        for it in result.stages
        if it.after is not None and rule.name in it.after.stages
    ]
    return serialized(chosen, census, ledger, ask, after, result.ages, result.now)


def _distinct(*revisions: str) -> tuple[str, ...]:
    return tuple(filter(None, dict.fromkeys(revisions)))


def _history_by_stage(facts: PolicyFacts) -> Mapping[str, dict[str, StageHistory]]:
    """Of the stages there are; a stage that was taken out of the policy is forgotten."""
    past: dict[str, dict[str, StageHistory]] = {rule.name: {} for rule in facts.stages}
    for (stage, revision), history in facts.history.items():
        if stage in past:
            past[stage][revision] = history
    return past

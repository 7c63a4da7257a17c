"""How many variants of a stage may be in flight, and who may take a slot now.

Variants are released one by one and counted on, so a budget is never overdrawn: nothing here knows
an index in a list. What is in flight keeps its slot when a newer revision comes; who is broken at
what they have may be mended without one. (Design §6, "Rollout inside a stage".)
"""

from collections.abc import Mapping
from functools import cached_property
from math import floor

from fanout.api.reasons import Reason
from fanout.gates.amounts import budget, tolerance
from fanout.gates.answer import Aggregates, State
from fanout.gates.census import Census, Member
from fanout.gates.facts import Hold
from fanout.gates.rules import RolloutRule, Strategy
from fanout.gates.timers import Flight, Landing
from fanout.gates.wording import counted, listed, stage_named
from fanout.values import replace


class Slots:
    """The slots of one stage for its candidate; `take` spends one."""

    def __init__(self, census: Census, candidate: str) -> None:
        self._census = census
        self._candidate = candidate
        self._rule = census.rule.rollout
        self._open_group: int | None = None  # the first whose variants are not all through
        self._awaited = ""
        self._failing: list[str] = []  # as the pass begins
        self._flying: list[Member] = []  # as the pass begins
        self._unready: list[Member] = []  # of those that count, as the pass begins
        self._landings: dict[int, Landing] = {}  # of what each group waits for, as far as asked
        self._refused: set[str] = set()  # who waits for a slot
        self.aggregates = self._count()
        self.budget = self._budget()

    @property
    def halted(self) -> Hold | None:
        """Have more of its variants failed than the stage bears?"""
        borne = tolerance(self._rule.max_failures, self.aggregates.total)
        if len(self._failing) <= borne:
            return None
        named = stage_named(self._census.rule.name)
        sentence = (
            f"{named} is halted: {counted(len(self._failing), 'variant')} failed {self._candidate}"
            f" ({listed(self._failing)}), and {borne} may"
        )
        who = f"whoever may decide about {named}: fanout retry, skip or rollback; or a fix"
        return Hold(Reason.HALTED, sentence, who)

    def refusal(self, member: Member) -> Hold | None:
        """Why the variant gets no slot now; None: it has one, needs none, or one is free."""
        number = self._open_group
        if number is not None and member.facts.group > number:
            sentence = f"group {number + 1} of the rollout comes first; {self._awaited}"
            who, until = self._groups_before(member.facts.group)
            return Hold(Reason.GROUP_AWAITS, sentence, who, until=until)
        limit = self.budget
        if limit is None or (limit > 0 and self.keeps(member)):
            return None
        if self.aggregates.in_flight < limit:
            return None
        sentence = f"{self.aggregates.in_flight} in flight, {limit} may be"
        if limit == 0:
            return Hold(
                Reason.BUDGET_EXHAUSTED,
                "maxInFlight is 0: nothing is released",
                "the policy's author: rollout.maxInFlight; or --override budget",
            )
        self._refused.add(member.facts.name)
        needed = self.aggregates.in_flight - limit + len(self._refused)
        answering = "whoever answers the checks of those in flight"
        who, until = self._flight.landing(needed, answering)
        return Hold(Reason.BUDGET_EXHAUSTED, sentence, f"{who}; or --override budget", until=until)

    def keeps(self, member: Member) -> bool:
        """Has it a slot already, or is it broken at what it has, so that it needs none?"""
        return member.in_flight or member.state is State.FAILED

    def take(self, member: Member) -> None:
        """Count on: the variant is released."""
        self._refused.discard(member.facts.name)
        facts = self.aggregates
        self.aggregates = replace(
            facts,
            in_flight=facts.in_flight + (not member.in_flight),
            updated=facts.updated + (not member.released(self._candidate)),
            failed=facts.failed - _failed_at(member, self._candidate),
        )

    def seen_by(self, member: Member) -> Mapping[str, int]:
        """The numbers as `propagateWhen` of a variant sees them: the slot it has is its own."""
        numbers = self.aggregates
        if member.in_flight:
            numbers = replace(numbers, in_flight=numbers.in_flight - 1)
        return numbers.variables()

    def _budget(self) -> int | None:
        limits: list[int] = []
        step = _step(self._rule, self.aggregates.ready)
        limits += [step] if step is not None else []
        if self._rule.max_in_flight is not None:
            limits.append(budget(self._rule.max_in_flight, self.aggregates.total))
        return min(limits, default=None)

    def _count(self) -> Aggregates:
        total = updated = ready = in_flight = failed = 0
        candidate, census = self._candidate, self._census
        for member in census.members:
            if member.in_flight and not census.skipped(member, candidate):
                in_flight += 1
                self._flying.append(member)
            if not census.counts(member, candidate):
                continue
            total += 1
            updated += member.released(candidate)
            through = member.has(candidate) and member.state is State.READY
            is_ready = through and member.draft is None
            has_failed = _failed_at(member, candidate)
            ready += is_ready
            failed += has_failed
            if has_failed:
                self._failing.append(member.facts.name)
            if not is_ready and not has_failed:
                self._waits_for(member)
        return Aggregates(total, updated, ready, in_flight, failed)

    @cached_property
    def _flight(self) -> Flight:
        return Flight(self._flying)

    def _groups_before(self, number: int) -> Landing:
        """When all that count in the groups before are through, as far as they are released."""
        if number not in self._landings:
            before = [it for it in self._unready if it.facts.group < number]
            flight = Flight(it for it in before if it.has(self._candidate))
            answering = "whoever answers the checks of that group"
            self._landings[number] = flight.landing(len(before), answering)
        return self._landings[number]

    def _waits_for(self, member: Member) -> None:
        self._unready.append(member)
        if self._open_group is None or member.facts.group < self._open_group:
            self._open_group = member.facts.group
            self._awaited = f"{member.facts.name} is not ready at {self._candidate}"


def _failed_at(member: Member, candidate: str) -> bool:
    """Has it failed the candidate, and is no other try of it under way?"""
    if member.failing is not None or member.returned is not None:
        return True
    if member.state is not State.FAILED or member.mended:
        return False
    return member.has(candidate) and not member.on_its_way


def _step(rule: RolloutRule, ready: int) -> int | None:
    match rule.strategy:
        case Strategy.LINEAR:
            return rule.step
        case Strategy.EXPONENTIAL:
            return max(1, floor((rule.factor - 1) * ready))
        case Strategy.ALL_AT_ONCE:
            return None

"""Playing a scenario: its past for what is remembered of it, then moment by moment.

Whenever something is stated to happen, and whenever the engine itself says that something can
change, a pass is made, as the running program does. (Design §6; §3, "Level-based".)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from itertools import count

from fanout.api.scenario import Scenario
from fanout.errors import InvalidInput
from fanout.gates.answer import PolicyDecision, State
from fanout.gates.evaluate import candidates, evaluate
from fanout.gates.facts import PolicyFacts, StageHistory
from fanout.plan.scenarios.script import Change, Happening, Script
from fanout.plan.scenarios.world import Setting, World

MOST = 5_000  # passes of a scenario, its past included
_ROUNDS = 50  # passes at one instant until nothing is to be recorded any more

_AT_REST = (State.READY, State.SKIPPED)

Judge = Callable[[PolicyFacts], PolicyDecision]


@dataclass(frozen=True, slots=True)
class Moment:
    """One pass: what the gates were told, and what they said."""

    facts: PolicyFacts
    decision: PolicyDecision
    carried: bool  # what they let through was carried out

    @property
    def at(self) -> datetime:
        """When."""
        return self.facts.now


def play(
    scenario: Scenario, setting: Setting, script: Script, judge: Judge = evaluate
) -> tuple[Moment, ...]:
    """The passes at the moments that are asked, and with `advance` those that carried out anything.

    Raises InvalidInput when there is no end to it.
    """
    return tuple(_Play(scenario, setting, script, judge).moments())


class _Play:
    def __init__(self, scenario: Scenario, setting: Setting, script: Script, judge: Judge) -> None:
        spec = scenario.spec
        self._scenario, self._spec, self._script, self._judge = scenario, spec, script, judge
        self._world = World(setting, revisions=list(spec.revisions), history=self._stated())
        self._now = spec.instant(None)
        self._wake: datetime | None = None
        self._last: Moment | None = None  # a pass that nobody was told of
        self._over = False  # everything is ready that there is
        self._order = count()  # what is stated first comes first
        asked = [None, *spec.moments, *(it.at for it in spec.events), *(e.at for e in spec.expect)]
        self._asked = {spec.instant(when) for when in asked}
        self._publishes = {spec.instant(it.at) for it in spec.events if it.publish}
        self._agenda: list[tuple[datetime, int, Change | None]] = [
            self._due(item) for item in (*script.past(self._world), *script.events())
        ]
        self._agenda += [(at, next(self._order), None) for at in self._asked]
        heapify(self._agenda)

    def moments(self) -> Iterator[Moment]:
        for _ in range(MOST):
            at = self._next()
            if at is None:
                if self._last is not None:
                    yield self._last  # where it came to rest
                return
            while self._agenda and self._agenda[0][0] <= at:
                change = heappop(self._agenda)[2]
                if change is not None:
                    change(self._world)
            if at == self._now:
                self._world.history = {**self._world.history, **self._stated()}
            yield from self._at(at)
        raise InvalidInput(
            f"more than {MOST} passes are needed, up to {at:%Y-%m-%dT%H:%M:%SZ}",
            reason="LimitExceeded",
            remedy="say where to stop: spec.advance.until",
        )

    def _at(self, at: datetime) -> Iterator[Moment]:
        """All passes at an instant: the one that was asked for, and those that followed from it."""
        told = at not in self._asked
        publishes = at in self._publishes
        while True:
            facts, decision = self._settled(at)
            carries = at >= self._now and (publishes or self._spec.advance is not None)
            published = self._world.carry_out(decision, at) if carries else ()
            released = any(item.release for item in decision.variants.values())
            does = carries and bool(published or released)
            if at >= self._now and (not told or does):
                yield Moment(facts, decision, carries)
                self._last = None
            elif carries and not told:
                self._last = Moment(facts, decision, carries)
            told, publishes = True, False
            if self._spec.advance is not None:
                self._verify(published, at)
            if not does or self._spec.advance is None:
                break
        self._wake = decision.next
        self._over = all(item.state in _AT_REST for item in decision.variants.values())

    def _settled(self, at: datetime) -> tuple[PolicyFacts, PolicyDecision]:
        """The pass, when all that it has to remember is on record."""
        world = self._world
        for _ in range(_ROUNDS):
            world.stand()
            world.draft(candidates(world.facts(at)), at)
            self._script.hear(world)
            facts = world.facts(at)
            decision = self._judge(facts)
            before = world.history
            world.remember(decision)
            if decision.history == before:
                break
        return facts, decision

    def _verify(self, published: Sequence[str], at: datetime) -> None:
        advance = self._spec.advance
        assert advance is not None
        for name in published:
            player = self._world.players[name]
            after = player.stated.ready_after or advance.ready_after or timedelta(0)
            item = self._script.verified(player, at + after)
            if after:
                heappush(self._agenda, self._due(item))
            else:
                item[1](self._world)

    def _next(self) -> datetime | None:
        """The next instant at which something happens; None at the end."""
        wake = self._wake
        due = self._agenda[0][0] if self._agenda else None
        advance = self._spec.advance
        until = self._spec.instant(advance.until) if advance and advance.until else None
        if wake is not None and (due is None or wake < due) and self._waits(wake, until):
            return wake
        if due is None or (until is not None and due > max(until, *self._asked)):
            return None
        return due

    def _waits(self, wake: datetime, until: datetime | None) -> bool:
        """Is a timer worth waiting for? After `now` it is where the scenario goes on by itself."""
        if wake <= self._now or (self._agenda and wake < max(self._asked)):
            return True
        if self._spec.advance is None:
            return False
        return wake <= until if until is not None else not self._over

    def _due(self, item: Happening) -> tuple[datetime, int, Change | None]:
        return item[0], next(self._order), item[1]

    def _stated(self) -> dict[tuple[str, str], StageHistory]:
        """What the scenario says is on record of revisions in stages."""
        instant = self._spec.instant
        return {
            (past.stage, past.revision): StageHistory(
                instant(past.passed) if past.passed is not None else None,
                instant(past.left) if past.left is not None else None,
                past.soaked or timedelta(0),
            )
            for past in self._spec.history
        }

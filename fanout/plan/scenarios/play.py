"""Playing a scenario: its past for what is remembered of it, then moment by moment.

Whenever something is stated to happen, and whenever the engine itself says that something can
change, a pass is made, as the running program does. (Design §6; §3, "Level-based".)
"""

from collections.abc import Callable, Iterator, Sequence
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
from fanout.values import frozen

_AT_MOST = timedelta(days=30)  # how long a scenario goes on by itself where it does not say
MOST = 5_000  # passes of a scenario, its past included

_AT_REST = (State.READY, State.SKIPPED)

Judge = Callable[[PolicyFacts], PolicyDecision]


@frozen
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
        self._rest: Moment | None = None  # the last pass, where nobody was told of it
        self._passes = 0
        self._over = False  # everything is ready that there is
        self._order = count()  # what is stated first comes first
        asked = [None, *spec.moments, *(it.at for it in spec.events), *(e.at for e in spec.expect)]
        self._asked = {spec.instant(when) for when in asked}
        advance = spec.advance
        last = max(self._asked)
        self._until = last + _AT_MOST
        if advance is not None and advance.until is not None:
            self._until = max(last, spec.instant(advance.until))
        self._publishes = {spec.instant(it.at) for it in spec.events if it.publish}
        self._agenda: list[tuple[datetime, int, Change | None]] = [
            self._due(item) for item in (*script.past(self._world), *script.events())
        ]
        self._agenda += [(at, next(self._order), None) for at in self._asked]
        heapify(self._agenda)

    def moments(self) -> Iterator[Moment]:
        """The passes that are told, in order."""
        while (at := self._next()) is not None:
            while self._agenda and self._agenda[0][0] <= at:
                change = heappop(self._agenda)[2]
                if change is not None:
                    change(self._world)
            if at == self._now:
                self._world.history = {**self._world.history, **self._stated()}
            yield from self._at(at)
        if self._rest is not None:
            yield self._rest

    def _at(self, at: datetime) -> Iterator[Moment]:
        """The pass at an instant; with `advance` those that follow from it, too."""
        owed = at in self._asked
        goes_on = at >= self._now and self._spec.advance is not None
        carries = goes_on or at in self._publishes
        while True:
            moment = self._pass(at, carries)
            done = self._carry_out(moment) if carries else False
            if owed or (goes_on and done):
                yield moment
                owed, self._rest = False, None
            elif goes_on:
                self._rest = moment
            if not (goes_on and done):
                break
        self._wake = moment.decision.next
        self._over = _over(moment.decision)

    def _pass(self, at: datetime, carries: bool) -> Moment:
        """The pass at an instant, when all that it has to remember is on record."""
        world = self._world
        while True:
            self._passes += 1
            if self._passes > MOST:
                raise InvalidInput(
                    f"more than {MOST} passes are needed, up to {at:%Y-%m-%dT%H:%M:%SZ}",
                    reason="LimitExceeded",
                    remedy="say where to stop: spec.advance.until",
                )
            world.stand(at)
            world.draft(candidates(world.facts(at)), at, past=at < self._now)
            self._script.hear(world)
            facts = world.facts(at)
            decision = self._judge(facts)
            before = world.history
            world.remember(decision)
            if decision.history == before:
                return Moment(facts, decision, carries)

    def _carry_out(self, moment: Moment) -> bool:
        """Do what the gates let through; answers whether there was anything to do."""
        decision = moment.decision
        published = self._world.carry_out(decision, moment.at)
        if self._spec.advance is not None:
            self._verify(published, moment.at)
        return bool(published) or any(item.release for item in decision.variants.values())

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
        if wake is not None and (due is None or wake < due) and self._waits(wake):
            return wake
        return None if due is None or due > self._until else due

    def _waits(self, wake: datetime) -> bool:
        """Is a timer worth waiting for? After `now` it is where the scenario goes on by itself."""
        if wake <= self._now or wake < max(self._asked):
            return True
        return self._spec.advance is not None and wake <= self._until and not self._over

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


def _over(decision: PolicyDecision) -> bool:
    """Is everything ready at the newest revision?"""
    return not any(stage.queued for stage in decision.stages.values()) and all(
        item.state in _AT_REST for item in decision.variants.values()
    )

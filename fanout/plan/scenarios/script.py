"""What happens in a scenario, by instants: the past that its variants state, then its events.

Playing the past is what gives each stage its history: when a revision was first ready everywhere,
when evidence was withdrawn, when the stage moved on. Nobody has to state what follows from that.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from fanout.api.records import Answer
from fanout.api.scenario import Event, Scenario, names_of
from fanout.api.scenario_rules import begun
from fanout.api.scenario_state import (
    StatedApproval,
    StatedDecision,
    StatedEvidence,
    StatedVariant,
    Stay,
)
from fanout.gates.facts import Draft, Published, Reading
from fanout.gates.rules import ApprovalRule, CheckRule, StageRule, Verdict, Way
from fanout.plan.book import Recorded
from fanout.plan.scenarios.world import Heard, Player, World, undone

Change = Callable[[World], None]
Happening = tuple[datetime, Change]
Record = StatedEvidence | StatedApproval | StatedDecision
_BY = "scenario@example.com"


class Script:
    """Turns what a scenario says into changes of its world, each with its instant."""

    def __init__(self, scenario: Scenario, groups: Callable[[StatedVariant], int]) -> None:
        """`groups` says in which of its stage's rollout groups a variant is."""
        self._scenario, self._spec = scenario, scenario.spec
        self._groups = groups
        self._numbers = 0

    def past(self, world: World) -> Iterator[Happening]:
        """All that happened up to `now`; the variants themselves are put into the world at once."""
        for stated in self._spec.variants:
            for name in names_of(stated):
                yield from self._player(world, name, stated, self._instant(None))
        spec = self._spec
        said: tuple[Record, ...] = (*spec.evidence, *spec.approvals, *spec.decisions)
        for record in said:
            at = self._instant(record.at)
            yield min(at, self._instant(None)), partial(self._record, record, at)

    def events(self) -> Iterator[Happening]:
        """All that happens from `now` on."""
        for event in self._spec.events:
            yield self._instant(event.at), partial(self._event, event)

    def verified(self, player: Player, at: datetime) -> Happening:
        """All checks after publication answer alike: as it is stated of the variant."""
        answer = Answer.FAILED if player.stated.fails else Answer.PASSED
        return at, partial(self._hear, Heard(player.name, at, answer))

    def hear(self, world: World) -> None:
        """What was said of drafts before there were any is about those that there are now."""
        for player in world.players.values():
            if player.unheard and player.draft is not None:
                waiting, player.unheard = player.unheard, []
                for heard in waiting:
                    self._hear(heard, world)

    def _instant(self, when: Any) -> datetime:
        return self._spec.instant(when)

    def _player(
        self, world: World, name: str, stated: StatedVariant, now: datetime
    ) -> Iterator[Happening]:
        player = Player(name, stated, self._groups(stated), offline=stated.offline)
        player.special = stated.draft
        player.removed = self._instant(stated.removed) if stated.removed is not None else None
        before = world.players.get(name)
        if before is not None:
            player.had = before.had
        world.players[name] = player
        for stay in (*stated.earlier, stated):
            yield from self._stay(player, stay, now)
        if stated.released is not None:
            at = self._instant(stated.released)
            yield at, partial(_release, name, at)
        if stated.taken_back:
            yield now, partial(_take_back, name)

    def _stay(self, player: Player, stay: Stay, now: datetime) -> Iterator[Happening]:
        at = begun(self._scenario, stay, now)
        if at is not None:
            yield at, partial(_publish, player.name, stay, at)
        for when, answer in (
            (stay.ready, Answer.PASSED),
            (stay.failed, Answer.FAILED),
            (stay.withdrawn, Answer.FAILED),
        ):
            if when is not None:
                then = self._instant(when)
                yield then, partial(self._hear, Heard(player.name, then, answer))
        for said in stay.answers:
            then = at or now if said.at is None else self._instant(said.at)
            heard = Heard(player.name, then, said.status, said.check, said.message, said.seen or "")
            yield then, partial(self._hear, heard)

    def _hear(self, heard: Heard, world: World) -> None:
        player, rule = world.players.get(heard.variant), _rule(world, heard.variant)
        if player is None or rule is None:
            return
        for check in rule.verification:
            if heard.check in ("", check.name) and player.published is not None:
                self._answer(heard, check, player.published, world)
        for required in rule.requires:
            if heard.check == required.name and player.draft is not None:
                self._answer(heard, required, player.draft, world)
            elif heard.check == required.name:
                player.unheard.append(heard)

    def _answer(
        self,
        heard: Heard,
        check: CheckRule | ApprovalRule,
        about: Published | Draft,
        world: World,
    ) -> None:
        """Reported checks are answered by evidence, all others by what is read of them."""
        status = Verdict(heard.status.value)
        if isinstance(check, CheckRule) and check.way is not Way.REPORT:
            said = heard.message or f"check {check.name}: {status.value}"
            reading = Reading(check.name, about.digest, status, said, heard.seen or about.revision)
            world.players[heard.variant].readings[check.name, about.digest] = reading
            return
        spec = {
            "stage": world.players[heard.variant].stated.stage,
            "variants": [heard.variant],
            "check": check.name,
            "status": status.value,
            "revision": about.revision,
        }
        world.recorded.append(self._recorded("Evidence", heard.at, spec))

    def _record(self, record: Record, at: datetime, world: World) -> None:
        spec = record.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name in ("at", "by", "name"):
            spec.pop(name, None)
        kind = type(record).__name__.removeprefix("Stated")
        if isinstance(record, StatedDecision) and record.expires is not None:
            spec["expires"] = self._instant(record.expires).isoformat()
        if isinstance(record, StatedApproval | StatedDecision) and record.trees is None:
            seen = world.trees(record.stage or "", record.variants, record.revision or "")
            if seen is None and spec.get("action", "Publish") == "Publish":
                return  # as the command, which records nothing where all drafts are left out
            spec["trees"] = list(seen or ())
        world.recorded.append(self._recorded(kind, at, spec, record.by, record.name))

    def _recorded(
        self, kind: str, at: datetime, spec: dict[str, Any], by: str = _BY, name: str = ""
    ) -> Recorded:
        self._numbers += 1
        return Recorded(name or f"{kind.lower()}-{self._numbers}", at, by, kind, spec)

    def _event(self, event: Event, world: World) -> None:
        at = self._instant(event.at)
        if event.revision:
            world.revisions.append(event.revision)
        for record in (event.evidence, event.approval, event.decision):
            if record is not None:
                self._record(record, at, world)
        if event.comes is not None:
            self._come(event.comes, at, world)
        for name in event.goes:
            world.players.pop(name, None)
        there = world.players.keys()
        for name in there & {*event.offline, *event.online}:
            world.players[name].offline = name in event.offline
        for name in there & {*event.changed}:
            world.players[name].change()
        if event.answer is not None:
            said = event.answer
            for name in said.variants:
                heard = Heard(name, at, said.status, said.check, said.message, said.seen or "")
                self._hear(heard, world)

    def _come(self, stated: StatedVariant, at: datetime, world: World) -> None:
        for name in names_of(stated):
            changes = self._player(world, name, stated, at)
            for _, change in sorted(changes, key=lambda it: it[0]):
                change(world)


def _rule(world: World, name: str) -> StageRule | None:
    stage = world.players[name].stated.stage if name in world.players else ""
    return next((rule for rule in world.setting.rules if rule.name == stage), None)


def _publish(name: str, stay: Stay, at: datetime, world: World) -> None:
    player, revision = world.players[name], stay.revision or ""
    digest = stay.digest or revision
    tree = stay.tree or player.tree(digest)
    player.publish(
        Published(revision, digest, tree, at, frozenset(stay.commits), reads=dict(stay.reads))
    )


def _release(name: str, at: datetime, world: World) -> None:
    world.players[name].releasing = at


def _take_back(name: str, world: World) -> None:
    player = world.players[name]
    if player.published is not None:
        player.published = undone(player.published)

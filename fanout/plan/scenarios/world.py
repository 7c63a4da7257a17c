"""The world of a scenario: what the gates would be told of it at an instant.

Where the real program observes repositories and records, this remembers what was stated, what
happened since, and what was carried out. Drafts follow the candidates, as after a pass they do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fanout.api.people import person
from fanout.api.reasons import Reason
from fanout.api.records import Answer as Said
from fanout.api.scenario_state import StatedDraft, StatedHold, StatedVariant
from fanout.calendar.windows import Calendar
from fanout.gates.answer import PolicyDecision
from fanout.gates.facts import (
    Answer,
    Dependency,
    Draft,
    Grant,
    Hold,
    PolicyFacts,
    Published,
    Reading,
    StageHistory,
    VariantFacts,
)
from fanout.gates.going_back import going_back
from fanout.gates.records import Records
from fanout.gates.rules import StageRule
from fanout.plan.book import Recorded, standing
from fanout.plan.dates import ahead, dated
from fanout.plan.facts import records
from fanout.values import frozen, replace


@frozen
class Setting:
    """What of the world does not change while a scenario is played."""

    name: str
    rules: tuple[StageRule, ...]
    suspended: bool = False
    serialize: bool = False
    sweep: bool = True
    unread: bool = False
    calendars: tuple[Calendar, ...] = ()
    finishing: frozenset[str] = frozenset()
    upstream: Mapping[str, Any] = field(default_factory=dict)  # what `propagateWhen` sees of it


@frozen
class Heard:
    """An answer of a check about a variant; without a name: of all checks after publication."""

    variant: str
    at: datetime
    status: Said
    check: str = ""
    message: str = ""
    seen: str = ""  # the revision or commit that a machine has seen; "": the one in question


@dataclass(slots=True)
class Player:
    """One variant as it stands."""

    name: str
    stated: StatedVariant
    group: int = 0
    published: Published | None = None
    draft: Draft | None = None
    grant: Grant | None = None
    special: StatedDraft | None = None  # what is stated of the draft, until there is another
    releasing: datetime | None = None  # when its draft was released, as it is stated
    offline: bool = False
    removed: datetime | None = None
    inputs: int = 0  # how often its inputs were changed
    missing: str = ""  # the revision to go back to, which it never had
    had: dict[str, Published] = field(default_factory=dict)  # by revision, the last of each
    readings: dict[tuple[str, str], Reading] = field(default_factory=dict)  # by check and digest
    unheard: list[Heard] = field(default_factory=list)  # of drafts that were not there yet
    answers: tuple[Answer, ...] = ()

    def digest(self, revision: str) -> str:
        """The digest of what its inputs give for the revision, where none is stated."""
        if self.inputs:
            return f"{revision}+{self.inputs}"
        had = self.had.get(revision)
        return had.digest if had is not None else revision

    def tree(self, digest: str) -> str:
        """The tree of such a rendering."""
        return f"{self.name}@{digest}"

    def plain_draft(self, revision: str) -> Draft:
        """An up-to-date draft of the revision."""
        digest = self.digest(revision)
        return Draft(revision, digest, self.tree(digest))

    def special_draft(self, said: StatedDraft, candidate: str) -> Draft:
        """The draft as it is stated."""
        revision = said.revision or candidate
        digest = said.digest or self.digest(revision)
        return Draft(
            revision=revision,
            digest=digest,
            tree=said.tree or self.tree(digest),
            current=said.current,
            disputed=said.disputed,
            adopts=said.adopts,
            moves=said.moves,
            reads=said.reads,
            commits=frozenset(said.commits),
            authors=frozenset(map(person, said.authors)),
        )

    def follow(self, candidate: str, now: datetime) -> None:
        """Its draft, brought up to date with the candidate of its stage."""
        draft = self.draft
        if not self.stated.drafted or not candidate or (draft is not None and not draft.current):
            return
        if draft is None and self.special is not None:
            self.draft = replace(self.special_draft(self.special, candidate), written=now)
        elif draft is None or draft.revision != candidate:
            self.special = None
            self.draft = replace(self.plain_draft(candidate), written=now)
        has = self.published
        if self.special is None and has is not None and self.draft is not None:
            in_force = (has.revision, has.digest) == (self.draft.revision, self.draft.digest)
            self.draft = None if in_force else self.draft

    def release(self) -> None:
        """The release that is stated is of the draft that there is."""
        if self.releasing is not None and self.draft is not None:
            self.grant = Grant(self.draft.revision, self.draft.digest, self.releasing)
            self.releasing = None

    def go_back(self, revision: str) -> None:
        """Its draft is the package that it had, as it was."""
        had, has = self.had.get(revision), self.published
        self.missing = "" if had is not None else revision
        self.draft = None
        if had is not None and (has is None or has.digest != had.digest):
            self.draft = Draft(had.revision, had.digest, had.tree, reads=had.reads)

    def change(self) -> None:
        """Its inputs are others from now on, and with them its draft."""
        self.inputs += 1
        self.special = self.draft = None

    def publish(self, published: Published) -> None:
        """It has this in force from now on."""
        before = self.published
        if before is not None and before.revision == published.revision:
            published = replace(published, since=before.since or before.at)
        self.published = self.had[published.revision] = published


@dataclass(slots=True)
class World:
    """Everything that is stated, as it stands."""

    setting: Setting
    players: dict[str, Player] = field(default_factory=dict)
    revisions: list[str] = field(default_factory=list)
    recorded: list[Recorded] = field(default_factory=list)
    history: Mapping[tuple[str, str], StageHistory] = field(default_factory=dict)
    _seen_ahead: set[str] = field(default_factory=set)
    _said: tuple[int, datetime | None, Records] = (0, None, Records())

    def said(self, now: datetime) -> Records:
        """What is on record by now; read anew when there is more of it, or some is dated ahead."""
        number, until, known = self._said
        if number == len(self.recorded) and until in (None, now):
            return known
        self._seen_ahead |= {it.name for it in ahead(self.recorded, now)}
        known = records(standing(dated(self.recorded, now, self._seen_ahead)), now)
        self._said = len(self.recorded), now if self._seen_ahead else None, known
        return known

    def facts(self, now: datetime) -> PolicyFacts:
        """What the evaluator may look at."""
        return PolicyFacts(
            name=self.setting.name,
            stages=self.setting.rules,
            variants=tuple(self._variant(player) for player in self.players.values()),
            revisions=tuple(self.revisions),
            records=self.said(now),
            history=self.history,
            now=now,
            suspended=self.setting.suspended,
            serialize=self.setting.serialize,
            sweep=self.setting.sweep,
            calendars=self.setting.calendars,
            finishing=self.setting.finishing,
            unread=self.setting.unread,
        )

    def stand(self, now: datetime) -> None:
        """The drafts of which it is stated what they are for, and their releases.

        Before candidates are chosen: what is released holds its slot, and may keep its revision.
        """
        for player in self.players.values():
            said = player.special
            if player.draft is None and said is not None and said.revision:
                player.draft = replace(player.special_draft(said, said.revision), written=now)
                player.release()

    def draft(self, candidates: Mapping[str, str], now: datetime, *, past: bool = False) -> None:
        """Bring all drafts up to date with the candidates of their stages.

        What is stated of a draft with its revision is so at the scenario's `now`: no pass of the
        past replaces it, though a newer revision may be stated too.
        """
        pins = going_back(self.facts(now))
        for player in self.players.values():
            pin = pins.get(player.name)
            player.missing = ""
            player.release()
            stands = past and player.special is not None and player.special.revision is not None
            if pin is not None:
                player.go_back(pin.revision)
            elif not stands:
                player.follow(candidates.get(player.stated.stage, ""), now)
            player.release()

    def carry_out(self, decision: PolicyDecision, now: datetime) -> tuple[str, ...]:
        """Record what is released and publish what may be; answers what was published."""
        published: list[str] = []
        heard = self.said(now).moment(now).heard
        for name, item in decision.variants.items():
            player = self.players[name]
            draft = player.draft
            if draft is None:
                continue
            if item.release:
                player.grant = Grant(draft.revision, draft.digest, now)
            if item.publish:
                player.publish(
                    Published(
                        draft.revision,
                        draft.digest,
                        draft.tree,
                        now,
                        reads=draft.reads,
                        heard=heard,
                    )
                )
                player.draft = player.grant = player.special = None
                published.append(name)
        return tuple(published)

    def remember(self, decision: PolicyDecision) -> None:
        """What the status keeps of a pass."""
        self.history = decision.history
        for name, item in decision.variants.items():
            self.players[name].answers = item.answers

    def trees(self, stage: str, variants: Sequence[str], revision: str) -> tuple[str, ...] | None:
        """The trees of the drafts of a revision, as somebody who looks at them now sees them.

        Without variants those of a stage, but for drafts with undecided merge conflicts; None where
        that leaves out all of them.
        """
        meant = [
            player
            for player in self.players.values()
            if (player.name in variants if variants else stage in ("", player.stated.stage))
        ]
        drafts = (_seen(player, revision) for player in meant)
        trees = tuple(draft.tree for draft in drafts if variants or not draft.disputed)
        return None if meant and not trees else trees

    def _variant(self, player: Player) -> VariantFacts:
        stated = player.stated
        held = _hold(stated.held, Reason.PATH_TAKEN)
        if player.missing:
            sentence = f"it never had {player.missing} in force, so it cannot go back to it"
            held = Hold(Reason.NEVER_PUBLISHED, sentence, "whoever decided to go back")
        return VariantFacts(
            name=player.name,
            stage=stated.stage,
            target=str(stated.target.get("kind", "Target")) + f"/{player.name}",
            priority=stated.priority,
            group=player.group,
            published=player.published,
            draft=player.draft,
            grant=player.grant,
            suspended=stated.suspended,
            offline=player.offline,
            readings=tuple(player.readings.values()),
            answers=player.answers,
            depends_on=tuple(
                Dependency(it.name, it.ready, "ready" if it.ready else "not ready")
                for it in stated.depends_on
            ),
            variables={
                "target": stated.target,
                "variant": {
                    "name": player.name,
                    "labels": dict(stated.labels),
                    "stage": stated.stage,
                    "priority": stated.priority,
                    "target": player.name,
                },
                "upstream": self.setting.upstream,
            },
            held=held,
            failed=_hold(stated.broken, Reason.RENDER_FAILED),
            removed=player.removed,
        )


def _seen(player: Player, revision: str) -> Draft:
    """Its draft of the revision: the one that stands, else the one that is to come."""
    if player.draft is not None and player.draft.revision == revision:
        return player.draft
    said = player.special
    if said is not None and said.revision in (None, revision):
        return player.special_draft(said, revision)
    return player.plain_draft(revision)


def _hold(stated: StatedHold | None, otherwise: Reason) -> Hold | None:
    if stated is None:
        return None
    return Hold(stated.reason or otherwise, stated.message, stated.who)


def undone(published: Published) -> Published:
    """The same publication, taken off its branch by somebody."""
    hold = Hold(
        Reason.EDITED_DOWNSTREAM,
        f"somebody took {published.revision} off the branch",
        "whoever may decide: fanout promote",
    )
    return replace(published, undone=hold)

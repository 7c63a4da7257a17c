"""What one variant may do now: be released, be published, or wait, and for whom.

draft → released → (`requires` pass) proposed → published → (verification passes) ready, or failed.
A release is on record for one digest; it does not outlive the gate that gave it: while unpublished,
the gate must still be open. (Design §6.)
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from fanout.api.reasons import Reason
from fanout.gates.after import OPEN, Gate
from fanout.gates.answer import CheckView, State, VariantDecision
from fanout.gates.automation import Automation, conflict, unmeant, unseen
from fanout.gates.census import Census, Member, offline
from fanout.gates.decisions import Order, overrides
from fanout.gates.facts import Draft, Grant, Hold
from fanout.gates.instants import soonest
from fanout.gates.judgement import Judgement
from fanout.gates.pins import Pin
from fanout.gates.propagation import Propagation
from fanout.gates.records import Override
from fanout.gates.rules import StageRule, Verdict
from fanout.gates.slots import Slots
from fanout.gates.timers import landing, of_published, of_waiting
from fanout.values import replace

_ANSWERING = "whoever answers its checks"
_NOTHING: frozenset[Override] = frozenset()


class _Asked(NamedTuple):
    """What is asked for one variant: its draft, the decisions in force for it, where it goes."""

    member: Member
    draft: Draft
    orders: Sequence[Order]
    waiting: Sequence[Order]  # the same, and those that are about other drafts
    lifts: frozenset[Override]
    pin: Pin | None


class StageGate:
    """One stage's gate for its candidate, asked once per variant, in the order of release."""

    def __init__(self, judgement: Judgement, rule: StageRule) -> None:
        self._judgement = judgement
        self._rule = rule
        self._gates: dict[frozenset[Override], Gate] = {}
        self._census: Census = judgement.censuses[rule.name]
        self.candidate = judgement.candidate(rule.name)
        self.slots = Slots(self._census, self.candidate)
        self.halted = self.slots.halted
        self.observed = self.slots.aggregates  # as the pass begins
        self._automation = Automation(judgement, rule, self.candidate)
        self.propagation = Propagation(rule, self.candidate)
        self._begun = self._has_begun()
        self.opens: set[datetime] = set()  # when time alone changes something about a variant
        self.instants: set[datetime] = set()  # when anything about one is to be looked at again
        self.ends: set[datetime] = set()  # when what has passed, or was said for it, ends
        self.released: list[str] = []

    @cached_property
    def gate(self) -> Gate:
        """`after` for the candidate, as it is for the stage as a whole."""
        if self._judgement.pin(self._rule) is not None:
            return OPEN
        return self._judgement.stage_gate(self._rule, self.candidate)

    def decide_all(self) -> list[VariantDecision]:
        """The decisions in the order of names; releases go by group, priority and name."""
        members = self._census.members
        ordered = sorted(members, key=_rank) if any(map(_ranked, members)) else members
        found = {member.facts.name: self._decide(member) for member in ordered}
        return [found[member.facts.name] for member in members]

    def _decide(self, member: Member) -> VariantDecision:
        """The variant's state, what this pass may do to it, and all that is in its way."""
        if member.wake is not None:
            self.instants.add(member.wake)
        self._wake_for(member.checks)  # of what is published, whatever the candidate is
        found = self._stand(member)
        if found.next is not None:
            self.opens.add(found.next)
        if member.facts.offline and not any(it.reason == Reason.OFFLINE for it in found.holds):
            away = offline(member, released=True)  # told, and in nobody's way
            found = replace(found, holds=(*found.holds, away))
        undone = member.facts.published.undone if member.facts.published else None
        if undone is None or found.state not in (State.DRAFTED, State.HELD):
            return found
        others = tuple(hold for hold in found.holds if hold != undone)
        return replace(found, state=State.HELD, holds=(undone, *others), next=None)

    def _stand(self, member: Member) -> VariantDecision:
        facts, draft, candidate = member.facts, member.draft, member.candidate
        stopped = _stopped(member, candidate)
        published = facts.published
        if (member.has(candidate) and (draft is None or stopped)) or (published and not candidate):
            return self._published(member, stopped)
        if stopped is not None:
            return self._waits(member, stopped[0], (stopped[1],))
        skip = self._judgement.standing.skipped(self._rule.name, facts.name, candidate)
        if skip is not None:
            return self._waits(member, State.SKIPPED, (_skipped(skip),))
        if facts.offline and not member.released(candidate):
            return self._waits(member, State.HELD, (offline(member),))
        if draft is None:
            return self._answer(member, State.DRAFTED, *self._undrafted)
        if member.failing is not None:
            return self._waits(member, State.FAILED, (member.failing,), member.required)
        return self._drafted(member, draft)

    def _published(self, member: Member, stopped: tuple[State, Hold] | None) -> VariantDecision:
        assert member.state is not None
        state, holds = member.state, (*member.holds, *_unanswered(member.checks))
        if state is not State.READY:
            skip = self._judgement.standing.skipped(
                self._rule.name, member.facts.name, self.candidate
            )
            if skip is not None:  # nobody waits for its checks
                state, holds = State.SKIPPED, (_skipped(skip),)
        if stopped is not None:
            holds = (*holds, stopped[1])
        if state is State.SKIPPED:
            return self._waits(member, state, holds, member.checks)
        through = state is State.READY and not holds
        wake = None if through else of_published(member, holds, self._judgement.now)
        return self._answer(member, state, holds, member.checks, wake)

    def _drafted(self, member: Member, draft: Draft) -> VariantDecision:
        asked = self._asked(member, draft)
        granted = member.facts.granted(draft) is not None
        pin = asked.pin
        checks = member.required if pin is None else tuple(_unasked(member.required, pin.revision))
        agreed = all(it.verdict is Verdict.PASSED for it in checks)
        # What a stage goes back to is what it had before: nothing is merged, so nobody is asked.
        held = conflict(draft, asked.orders) if pin is None else None
        shut = self._shut(asked) if held is None else (held, *self._shut(asked))
        opened = not shut
        barred = self._barred(asked)
        shut += (barred,) if barred is not None else ()
        release = False
        if not shut:
            if granted:
                release = agreed and _older(member.facts.granted(draft), asked.orders, checks)
            else:
                shut = self._refusals(asked)
                release = not shut
        if release and not granted:
            self.slots.take(member)
            self.released.append(member.facts.name)
        self._wake_for(checks)
        state = State.DRAFTED if held is None else State.HELD
        if granted or release:  # a conflict that comes after the release leaves it released
            state = State.PROPOSED if opened and agreed else State.RELEASED
        holds = shut if agreed else (*shut, *_unanswered(checks))
        gate = self._gate(asked.lifts) if asked.pin is None else None
        wake = of_waiting(holds, checks, gate, self._judgement.now)
        publish = state is State.PROPOSED and not shut
        return self._answer(member, state, holds, checks, wake, release=release, publish=publish)

    def _asked(self, member: Member, draft: Draft) -> _Asked:
        facts = member.facts
        waiting = self._judgement.standing.waiting(facts, draft.revision)
        covering = [order for order in waiting if order.covers(facts, draft)]
        lifts = overrides(covering) if covering else _NOTHING
        pin = self._judgement.pin(self._rule, facts.name)
        return _Asked(member, draft, covering, waiting, lifts, pin)

    def _shut(self, asked: _Asked) -> tuple[Hold, ...]:
        """Which gates keep the variant from being released, and from being published then."""
        member, draft, _, _, lifts, pin = asked
        holds: list[Hold] = []
        if pin is None:
            holds += self._gate(lifts).holds
            if self.halted is not None:
                holds.append(self.halted)
            if member.facts.depends_on:
                holds += _dependencies(member)
                self.instants.update(it.until for it in member.facts.depends_on if it.until)
            source = self._judgement.sources.awaited(self._rule.name, member.facts, draft)
            holds += [source] if source is not None else []
        closed = self._judgement.windows.closed(begun=self._begun)
        if closed is not None:
            decided = pin.decision.overrides if pin and pin.decision else _NOTHING
            if Override.WINDOW not in lifts | decided:
                holds.append(closed)
                self.instants.update([closed.until] if closed.until is not None else [])
        return tuple(holds)

    def _barred(self, asked: _Asked) -> Hold | None:
        """Why neither automation nor a person's decision takes the step."""
        member, draft, orders, waiting, _, pin = asked
        if pin is not None and pin.decision is not None:
            return None
        if orders:
            return unseen(member, draft, orders)
        return unmeant(self._automation.barred(member, draft, back=pin is not None), waiting)

    def _refusals(self, asked: _Asked) -> tuple[Hold, ...]:
        """What keeps a variant from being released that nothing else holds."""
        if asked.pin is not None:
            return ()
        member = asked.member
        if self._judgement.facts.serialize:
            serial = _serialized(member) if member.state is State.VERIFYING else self._under_way
            if serial is not None:
                return (serial,)
        refusal = self.slots.refusal(member)
        if refusal is not None and (
            Override.BUDGET not in asked.lifts or refusal.reason != Reason.BUDGET_EXHAUSTED
        ):
            return (refusal,)
        holds = self.propagation.ask(member.facts, self.slots.seen_by(member))
        if self.propagation.guessed:
            # Nothing is carried out while questions are open. Counting on as if the answer were
            # yes asks what comes next as well: in a few rounds, and not in one for each variant.
            self.slots.take(member)
        return holds

    def _gate(self, lifts: frozenset[Override]) -> Gate:
        if lifts not in self._gates:
            self._gates[lifts] = self._judgement.gate(self._rule, self.candidate, lifts)
        return self._gates[lifts]

    def _has_begun(self) -> bool:
        """Is the rollout of the candidate under way, and not through yet?"""
        if self._judgement.ledgers[self._rule.name].stays(self.candidate):
            return False
        return any(member.released(self.candidate) for member in self._census.members)

    def _wake_for(self, checks: Iterable[CheckView]) -> None:
        for check in checks:
            if check.until is None:
                continue
            if check.verdict is Verdict.PASSED or check.reason == Reason.APPROVAL_MISSING:
                self.ends.add(check.until)  # what ends opens nothing
            else:
                self.instants.add(check.until)

    def next(self) -> datetime | None:
        """The next instant at which time alone opens a gate, or changes a variant."""
        gates = (gate.next for gate in self._gates.values())
        return soonest([*self.opens, *gates], self._judgement.now)

    def _waits(
        self,
        member: Member,
        state: State,
        holds: tuple[Hold, ...],
        checks: tuple[CheckView, ...] = (),
        gate: Gate | None = None,
    ) -> VariantDecision:
        wake = of_waiting(holds, checks, gate, self._judgement.now)
        return self._answer(member, state, holds, checks, wake)

    def _answer(
        self,
        member: Member,
        state: State,
        holds: tuple[Hold, ...],
        checks: tuple[CheckView, ...],
        wake: datetime | None,
        *,
        release: bool = False,
        publish: bool = False,
    ) -> VariantDecision:
        return VariantDecision(
            member.facts.name,
            self._rule.name,
            member.candidate,
            state,
            checks=checks,
            holds=holds,
            answers=member.answers,
            next=wake,
            release=release,
            publish=publish,
        )

    @cached_property
    def _undrafted(self) -> tuple[tuple[Hold, ...], tuple[CheckView, ...], datetime | None]:
        """What all variants without a draft wait for, what is asked of them, and until when."""
        written = Hold(
            Reason.NO_DRAFT,
            f"its draft for {self.candidate} is not written yet, or not up to date",
            "the next pass that writes drafts",
        )
        holds = (written, *self.gate.holds)
        return holds, (), of_waiting(holds, (), self.gate, self._judgement.now)

    @cached_property
    def _under_way(self) -> Hold | None:
        """Who is in flight at an older revision, though there are drafts of the candidate already.

        The candidate does not go back for it: drafts that people may have approved stay.
        """
        ages, candidate = self._judgement.ages, self.candidate
        before = [
            (member, has.revision)
            for member in self._census.members
            if member.state is State.VERIFYING
            and (has := member.facts.published)
            and ages.older(has.revision, candidate)
        ]
        if not before:
            return None
        first, revision = before[0]
        sentence = f"{first.facts.name} is not ready at {revision} yet; it goes first"
        who, until = landing([it for it, _ in before], _ANSWERING)
        return Hold(Reason.SERIALIZED, sentence, who, until=until)


def _serialized(member: Member) -> Hold:
    sentence = "its other inputs wait until what it has published is ready or has failed"
    who, until = landing([member], _ANSWERING)
    return Hold(Reason.SERIALIZED, sentence, who, until=until)


def _ranked(member: Member) -> bool:
    return bool(member.facts.group or member.facts.priority)


def _rank(member: Member) -> tuple[int, int, str]:
    return (member.facts.group, -member.facts.priority, member.facts.name)


def _older(grant: Grant | None, orders: Iterable[Order], checks: Iterable[CheckView]) -> bool:
    """Is the release older than what the publication rests on?

    It may be from a decision that was withdrawn since. Publications are dated by their releases, so
    one is given anew with the publication: it is dated by what people said, not before it.
    """
    said = [
        *(order.at for order in orders),
        *(check.at for check in checks if check.at is not None),
    ]
    return grant is not None and grant.at < max(said, default=grant.at)


def _stopped(member: Member, candidate: str) -> tuple[State, Hold] | None:
    """What stops the variant whatever the gates say, and the state that it is in for it."""
    facts = member.facts
    if member.suspended is not None:
        return State.SUSPENDED, member.suspended
    if facts.failed is not None:
        return State.FAILED, facts.failed
    if facts.held is not None:
        return State.HELD, facts.held
    if not candidate:
        sentence = "the policy's rule allows no revision"
        return State.HELD, Hold(Reason.NO_REVISION, sentence, "the policy's author: spec.upstream")
    return None


def _skipped(skip: Order) -> Hold:
    said = skip.decision
    sentence = f"{said.by} took it out of the rollout of {said.revision}"
    why = f": {said.reason}" if said.reason else ""
    return Hold(Reason.SKIPPED, f"{sentence}{why}", "whoever may decide: fanout retry", skip.at)


def _dependencies(member: Member) -> tuple[Hold, ...]:
    return tuple(
        Hold(Reason.DEPENDENCY_PENDING, it.sentence, it.who, until=it.until)
        for it in member.facts.depends_on
        if not it.ready
    )


def _unasked(checks: Iterable[CheckView], revision: str) -> Iterator[CheckView]:
    """What a stage requires was asked when it first took the revision that it goes back to."""
    for check in checks:
        sentence = f"check {check.name} is not asked again of what goes back to {revision}"
        yield CheckView(check.name, Verdict.PASSED, sentence)


def _unanswered(checks: Iterable[CheckView]) -> tuple[Hold, ...]:
    return tuple(
        [
            Hold(check.reason, check.sentence, check.who, check.at, check.until)
            for check in checks
            if check.verdict is not Verdict.PASSED
        ]
    )

"""What one variant may do now: be released, be published, or wait, and for whom.

draft → released → (`requires` pass) proposed → published → (verification passes) ready, or failed.
A release is on record for one digest; it does not outlive the gate that gave it: while unpublished,
the gate must still be open. (Design §6.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from fanout.api.reasons import Reason
from fanout.gates.after import Gate
from fanout.gates.answer import CheckView, State, VariantDecision
from fanout.gates.census import Member, lifted
from fanout.gates.decisions import Order, overrides
from fanout.gates.facts import Draft, Grant, Hold
from fanout.gates.instants import soonest
from fanout.gates.judgement import Judgement
from fanout.gates.records import Override
from fanout.gates.rules import ApprovalRule, StageRule, Verdict
from fanout.gates.wording import stage_named

_NOTHING: frozenset[Override] = frozenset()


class StageGate:
    """One stage's gate for its candidate, asked once per variant."""

    def __init__(self, judgement: Judgement, rule: StageRule) -> None:
        self._judgement = judgement
        self._rule = rule
        self._gates: dict[frozenset[Override], Gate] = {}
        self.candidate = judgement.candidate(rule.name)
        self.instants: set[datetime] = set()  # when a check of a variant may pass by itself
        self.ends: set[datetime] = set()  # when what has passed, or was said for it, ends

    @cached_property
    def gate(self) -> Gate:
        """`after` for the candidate, as it is for the stage as a whole."""
        return self._judgement.stage_gate(self._rule, self.candidate)

    def decide(self, member: Member) -> VariantDecision:
        """The variant's state, what this pass may do to it, and all that is in its way."""
        found = self._decide(member)
        undone = member.facts.published.undone if member.facts.published else None
        if undone is None or found.state not in (State.DRAFTED, State.HELD):
            return found
        others = tuple(hold for hold in found.holds if hold != undone)
        return replace(found, state=State.HELD, holds=(undone, *others))

    def _decide(self, member: Member) -> VariantDecision:
        facts = member.facts
        draft = self._draft(member)
        stopped = _stopped(member, self.candidate)
        published = facts.published
        there = published is not None and published.revision == self.candidate
        if (there and (draft is None or stopped)) or (published and not self.candidate):
            return self._published(member, stopped)
        if stopped is not None:
            return self._answer(member, stopped[0], holds=(stopped[1],))
        if draft is None:
            return self._answer(member, State.DRAFTED, holds=(self._no_draft, *self.gate.holds))
        return self._drafted(member, draft)

    def _draft(self, member: Member) -> Draft | None:
        """The standing draft, when it is what the candidate asks for and not in force already."""
        draft, published = member.facts.draft, member.facts.published
        if draft is None or not draft.current or draft.revision != self.candidate:
            return None
        in_force = published is not None and (published.revision, published.digest) == (
            draft.revision,
            draft.digest,
        )
        again = draft.moves or (published is not None and published.undone is not None)
        return None if in_force and not again else draft

    def _published(self, member: Member, stopped: tuple[State, Hold] | None) -> VariantDecision:
        assert member.state is not None
        self._wake_for(member.checks)
        holds = _unanswered(member.checks)
        if stopped is not None:
            holds = (*holds, stopped[1])
        return self._answer(member, member.state, member.checks, holds)

    def _drafted(self, member: Member, draft: Draft) -> VariantDecision:
        facts, rule = member.facts, self._rule
        orders = self._judgement.standing.orders(rule.name, facts.name, self.candidate)
        waiting = [order for order in orders if not order.spent(facts)]
        orders = [order for order in waiting if order.covers(facts, draft)]
        lifts = overrides(orders) if orders else _NOTHING
        gate = self._gate(lifts)
        if orders:
            barred = self._unseen(member, draft, orders)
        else:
            barred = _unmeant(self._barred(member, draft), waiting)
        granted = facts.grant is not None and (facts.grant.revision, facts.grant.digest) == (
            draft.revision,
            draft.digest,
        )
        opened = gate.verdict is Verdict.PASSED
        checks = tuple([self._required(check, member, draft, orders) for check in rule.approvals])
        agreed = all(check.verdict is Verdict.PASSED for check in checks)
        stale = granted and agreed and _older(facts.grant, orders, checks)
        release = opened and barred is None and (stale or not granted)
        self._wake_for(checks)
        state = State.DRAFTED
        if granted or release:
            state = State.PROPOSED if opened and agreed else State.RELEASED
        holds = gate.holds if barred is None else (*gate.holds, barred)
        return VariantDecision(
            facts.name,
            rule.name,
            self.candidate,
            state,
            release,
            publish=state is State.PROPOSED and barred is None,
            checks=checks,
            holds=holds if agreed else (*holds, *_unanswered(checks)),
        )

    def _required(
        self, rule: ApprovalRule, member: Member, draft: Draft, orders: list[Order]
    ) -> CheckView:
        view = self._judgement.approvals.answer(rule, member.facts, draft)
        if view.verdict is Verdict.PASSED:
            return view
        for order in orders:
            if Override.REQUIRES in order.decision.overrides:
                return lifted(view, order.decision.by, order.at)
        return view

    def _unseen(self, member: Member, draft: Draft, orders: list[Order]) -> Hold | None:
        """What a person has to look at first: who decided before there was this draft has not."""
        if any(draft.tree in order.decision.trees for order in orders):
            return None
        looked = self._looked_at(member, draft)
        return looked or (_undecided(draft.disputed) if draft.disputed else None)

    def _looked_at(self, member: Member, draft: Draft) -> Hold | None:
        """Why a person has to look at it, whoever is to publish."""
        if member.facts.published is not None and member.facts.published.undone is not None:
            return member.facts.published.undone
        return _adoption(draft.disputed) if draft.adopts else None

    def _barred(self, member: Member, draft: Draft) -> Hold | None:
        """Why automation does not do it, though a person may."""
        looked = self._looked_at(member, draft)
        if looked is not None:
            return looked
        if not self._rule.automatic:
            return self._off
        if draft.disputed:
            return _undecided(draft.disputed)
        if self._goes_back(member):
            return self._back
        return None if self._judgement.facts.sweep else self._sweep

    def _goes_back(self, member: Member) -> bool:
        published = member.facts.published
        if published is None:
            return False
        ages = self._judgement.ages
        if ages.comparable(self.candidate, published.revision):
            return ages.older(self.candidate, published.revision)
        left = self._judgement.ledgers[self._rule.name].past(self.candidate).left
        return left is not None

    def _gate(self, lifts: frozenset[Override]) -> Gate:
        if lifts not in self._gates:
            self._gates[lifts] = self._judgement.gate(self._rule, self.candidate, lifts)
        return self._gates[lifts]

    def _wake_for(self, checks: Iterable[CheckView]) -> None:
        for check in checks:
            if check.until is None:
                continue
            if check.reason == Reason.FROM_THE_FUTURE:
                self.instants.add(check.until)
            else:  # an approval that ends opens nothing
                self.ends.add(check.until)

    def next(self) -> datetime | None:
        """The next instant at which a check or a gate that was asked changes by itself."""
        gates = (gate.next for gate in self._gates.values())
        return soonest([*self.instants, *gates], self._judgement.now)

    def _answer(
        self,
        member: Member,
        state: State,
        checks: tuple[CheckView, ...] = (),
        holds: tuple[Hold, ...] = (),
    ) -> VariantDecision:
        return VariantDecision(
            member.facts.name, self._rule.name, self.candidate, state, checks=checks, holds=holds
        )

    @cached_property
    def _no_draft(self) -> Hold:
        return Hold(
            Reason.NO_DRAFT,
            f"its draft for {self.candidate} is not written yet, or not up to date",
            "the next pass that writes drafts",
        )

    @cached_property
    def _off(self) -> Hold:
        return Hold(
            Reason.AUTOMATION_OFF,
            f"nobody has switched automatic promotion on for {stage_named(self._rule.name)}",
            "an administrator: PromotionPolicy.autoPromotion; whoever may decide: fanout promote",
        )

    @cached_property
    def _sweep(self) -> Hold:
        return Hold(
            Reason.SWEEP_AWAITED,
            "automatic promotion publishes in sweeps, and this pass is none",
            "the next sweep; whoever may decide: fanout promote",
        )

    @cached_property
    def _back(self) -> Hold:
        return Hold(
            Reason.WOULD_GO_BACK,
            f"it has a newer revision than {self.candidate}, and automation never goes back",
            "whoever may decide: fanout promote",
        )


def _unmeant(barred: Hold | None, orders: Sequence[Order]) -> Hold | None:
    """With whoever promoted when this draft was not there to see: it is rewritten, or the first."""
    if barred is None or not orders:
        return barred
    said = orders[-1].decision
    told = (
        f"decision {said.name} of {said.by} is about drafts of {said.revision} among which this one"
        " is not"
    )
    return replace(barred, sentence=f"{barred.sentence}; {told}")


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


def _conflicts(number: int) -> str:
    values = (
        "value that both sides changed is" if number == 1 else "values that both sides changed are"
    )
    return f"{number} {values} undecided; upstream's stand in the draft"


def _adoption(disputed: int) -> Hold:
    told = f"; {_conflicts(disputed)}" if disputed else ""
    return Hold(
        Reason.ADOPTION_AWAITS,
        "it is the first draft for a package that fanout did not write, and that is never"
        f" published automatically{told}",
        "whoever may decide: fanout promote",
    )


def _undecided(number: int) -> Hold:
    return Hold(
        Reason.CONFLICT_UNDECIDED,
        _conflicts(number),
        "whoever maintains the package: a commit on the draft, `fanout resolve`, or fanout promote",
    )


def _unanswered(checks: Iterable[CheckView]) -> tuple[Hold, ...]:
    return tuple(
        [
            Hold(check.reason, check.sentence, check.who, check.at, check.until)
            for check in checks
            if check.verdict is not Verdict.PASSED
        ]
    )

"""What people have decided and what of it stands: suspensions, publications and the like by hand.

The last Suspend or Resume about a policy, a stage or a variant wins, for exactly that. A Publish
covers one revision and the next step of each variant: whatever is published for a variant after the
decision spends it for that variant, for ever, also when that was another revision. And it covers
the drafts that there were to see: one that is rewritten asks anew. A Skip and a Retry are about one
revision and stay true of it; a Rollback stands until another word about the same (`pins`).
(Design §2 and §6.)
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.gates.facts import Draft, Hold, VariantFacts
from fanout.gates.instants import counts_from, from_the_future, soonest, written
from fanout.gates.pins import Rollbacks
from fanout.gates.records import Action, Decision, Override
from fanout.gates.wording import stage_named
from fanout.values import frozen

Scope = tuple[str, str]
"""What a suspension is about: ("policy", ""), ("stage", its name) or ("variant", its name)."""
_POLICY: Scope = ("policy", "")


@frozen
class Order:
    """A decision in force that is about one revision."""

    at: datetime
    decision: Decision
    number: int = 0  # in record order

    def spent(self, variant: VariantFacts) -> bool:
        """Has the variant taken a step since a Publish? One decision, one change.

        Within the one second in which decision and publication may be, the publication of another
        revision came first: nobody decides about a step that is not the next one.
        """
        stepped, published = variant.stepped, variant.published
        if stepped is None or stepped != self.at:
            return stepped is not None and stepped > self.at
        return published is None or published.revision == self.decision.revision

    def covers(self, variant: VariantFacts, draft: Draft | None) -> bool:
        """Is it about this draft, or about the one that is to come?

        As an approval it is about the trees that there were to see. Where no draft of the revision
        was there yet, it is about the variant's step to the revision, and about no more.
        """
        if self.decision.trees and draft is not None:
            return draft.tree in self.decision.trees
        published = variant.published
        return published is None or published.revision != self.decision.revision


@dataclass(slots=True)
class _Orders:
    """Decisions of one action, by whom and which revision they are about."""

    _wide: dict[tuple[str, str], list[Order]] = field(default_factory=dict)  # (stage, revision)
    _own: dict[tuple[str, str], list[Order]] = field(default_factory=dict)  # (variant, revision)

    def add(self, order: Order) -> None:
        decision = order.decision
        for variant in set(decision.variants):
            self._own.setdefault((variant, decision.revision), []).append(order)
        if not decision.variants:
            self._wide.setdefault((decision.stage, decision.revision), []).append(order)

    def __bool__(self) -> bool:
        return bool(self._wide or self._own)

    def about(self, stage: str, variant: str, revision: str) -> list[Order]:
        """Those that name the variant, its stage or everything."""
        if not self._wide and not self._own:
            return []
        return [*self.wide(stage, revision), *self._own.get((variant, revision), ())]

    def wide(self, stage: str, revision: str) -> list[Order]:
        """Those about the stage as a whole, or about everything."""
        mine = self._wide.get((stage, revision), [])
        return mine if stage == "" else [*self._wide.get(("", revision), ()), *mine]

    def revisions(self, stage: str) -> dict[str, Order]:
        """The last about the stage as a whole, by revision."""
        return {
            revision: orders[-1] for (name, revision), orders in self._wide.items() if name == stage
        }


class Standing:
    """The decisions of one policy that are in force."""

    def __init__(
        self, decisions: Iterable[Decision], now: datetime, variants: Iterable[VariantFacts] = ()
    ) -> None:
        """`variants`: those that there are, for what is carried out is over."""
        self._suspensions: dict[Scope, Decision] = {}
        self._orders, self._skips, self._retries = _Orders(), _Orders(), _Orders()
        self.skips = False  # did anybody take any variant out of a rollout?
        self.rollbacks = Rollbacks(variants)
        self._ways_back: list[Order] = []
        self.holds: list[Hold] = []  # decisions that nothing can come of
        self._instants: list[tuple[str, datetime]] = []  # (stage or "", when one lets more through)
        self._ends: list[datetime] = []
        for number, decision in enumerate(decisions):
            at = decision.at
            if decision.expires is not None:
                if decision.expires <= now:
                    continue
                self._ends.append(decision.expires)
                if decision.action is Action.SUSPEND:  # the end of another opens nothing
                    self._instants.append((decision.stage, decision.expires))
            if from_the_future(at, now) and decision.action is not Action.SUSPEND:
                self._await(at, decision)
            elif decision.action not in (Action.SUSPEND, Action.RESUME):
                self._order(Order(at, decision, number))
            else:
                for key in scopes(decision.stage, decision.variants):
                    self._suspensions[key] = decision

    def next(self, now: datetime, stage: str | None = None) -> datetime | None:
        """When a decision starts or ends; of a stage, when more may go for it."""
        about = [at for name, at in self._instants if stage is None or name in ("", stage)]
        return soonest(about if stage is not None else [*about, *self._ends], now)

    def suspensions(self) -> dict[Scope, Decision]:
        """The suspensions in force, by what each is about."""
        return {
            about: decision
            for about, decision in self._suspensions.items()
            if decision.action is Action.SUSPEND
        }

    def resumptions(self) -> dict[Scope, Decision]:
        """The last decision about each scope that was suspended and resumed."""
        return {
            about: decision
            for about, decision in self._suspensions.items()
            if decision.action is Action.RESUME
        }

    def policy_suspended(self) -> Hold | None:
        """Did somebody suspend the whole policy?"""
        return self._suspended(_POLICY, "the policy")

    def stage_suspended(self, stage: str) -> Hold | None:
        """Did somebody suspend the stage?"""
        return self._suspended(("stage", stage), stage_named(stage))

    def variant_suspended(self, variant: str) -> Hold | None:
        """Did somebody suspend the variant?"""
        if not self._suspensions:
            return None
        return self._suspended(("variant", variant), f"variant {variant}")

    def stage_overrides(self, stage: str, revision: str) -> frozenset[Override]:
        """What is lifted for all variants of a stage alike: that steers the stage's candidate."""
        return overrides(self._orders.wide(stage, revision))

    def orders(self, stage: str, variant: str, revision: str) -> list[Order]:
        """The Publish decisions that name the variant, its stage or everything.

        Those from before a way back are about what was gone back from.
        """
        found = self._orders.about(stage, variant, revision)
        back = self.went_back(stage, variant) if found else None
        return found if back is None else [it for it in found if it.number > back.number]

    def waiting(self, facts: VariantFacts, revision: str) -> list[Order]:
        """Those of them that the variant has not taken its step by yet."""
        found = self.orders(facts.stage, facts.name, revision)
        return [order for order in found if not order.spent(facts)]

    def went_back(self, stage: str, variant: str) -> Order | None:
        """The last rollback about the variant or its stage, whether it stands still or is over."""
        for order in reversed(self._ways_back):
            decision = order.decision
            if variant in decision.variants if decision.variants else decision.stage in ("", stage):
                return order
        return None

    def ordered_revisions(self, stage: str) -> dict[str, Order]:
        """What people have decided to publish in the stage as a whole, by revision."""
        return self._orders.revisions(stage)

    def skipped(self, stage: str, variant: str, revision: str) -> Order | None:
        """Did somebody take the variant out of the rollout of the revision?

        Who has it try again has put it back, and so has who had it go back to the revision.
        """
        skip = _last(self._skips.about(stage, variant, revision)) if self.skips else None
        if skip is None:
            return None
        retry = _last(self._retries.about(stage, variant, revision))
        back = self.went_back(stage, variant)
        later = (it for it in (retry, back) if it is not None)
        return None if any(it.number > skip.number for it in later) else skip

    def retried(self, stage: str, variant: str, revision: str) -> datetime | None:
        """When somebody last had the variant try the revision again."""
        if not self._retries:
            return None
        last = _last(self._retries.about(stage, variant, revision))
        return last.at if last is not None else None

    def _order(self, order: Order) -> None:
        decision = order.decision
        if not decision.revision:
            sentence = (
                f"decision {decision.name} of {decision.by} names no revision: it covers nothing"
            )
            self.holds.append(
                Hold(Reason.DECISION_WAITS, sentence, f"{decision.by}: decide again", order.at)
            )
        elif decision.action is Action.SKIP:
            self._skips.add(order)
            self.skips = True
        elif decision.action is Action.RETRY:
            self._retries.add(order)
        else:
            self.rollbacks.add(order.at, decision)
            if decision.action is Action.PUBLISH:
                self._orders.add(order)
            else:
                self._ways_back.append(order)

    def _await(self, at: datetime, decision: Decision) -> None:
        start = counts_from(at)
        self._instants.append((decision.stage, start))
        sentence = (
            f"decision {decision.name} of {decision.by} is dated {written(at)}, more than five"
            f" minutes ahead; it does not count before {written(start)}"
        )
        who = f"whoever sets the clock of {decision.by}; or take it back with fanout withdraw"
        self.holds.append(Hold(Reason.FROM_THE_FUTURE, sentence, who, until=start))

    def _suspended(self, key: Scope, what: str) -> Hold | None:
        decision = self._suspensions.get(key)
        if decision is None or decision.action is not Action.SUSPEND:
            return None
        why = f": {decision.reason}" if decision.reason else ""
        return Hold(
            Reason.SUSPENDED,
            f"{what} was suspended by {decision.by}{why}",
            "whoever may decide: fanout resume",
            decision.at,
            decision.expires,
        )


def _last(orders: list[Order]) -> Order | None:
    return max(orders, key=lambda order: order.number, default=None)


def overrides(orders: Iterable[Order]) -> frozenset[Override]:
    """All that these decisions lift together."""
    return frozenset(item for order in orders for item in order.decision.overrides)


def by_spec(what: str, owner: str) -> Hold:
    """The hold of what its spec suspends."""
    return Hold(Reason.SUSPENDED, f"{what} is suspended by its spec", f"{owner}: spec.suspend")


def scopes(stage: str, variants: Iterable[str]) -> list[Scope]:
    """What a Suspend or a Resume is about; exactly that, and nothing around or inside it."""
    own = [("variant", name) for name in variants]
    return own or ([("stage", stage)] if stage else [_POLICY])

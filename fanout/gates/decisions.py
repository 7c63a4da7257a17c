"""What people have decided and what of it stands: suspensions, and publications by hand.

The last Suspend or Resume about a policy, a stage or a variant wins, for exactly that. A Publish
covers one revision and the next step of each variant: whatever is published for a variant after the
decision spends it for that variant, for ever, also when that was another revision. And it covers
the drafts that there were to see: one that is rewritten asks anew.
(Design §2 and §6.)
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.gates.facts import Draft, Hold, VariantFacts
from fanout.gates.instants import counts_from, from_the_future, in_record_order, soonest, written
from fanout.gates.records import Action, Decision, Override
from fanout.gates.wording import stage_named

Scope = tuple[str, str]
"""What a suspension is about: ("policy", ""), ("stage", its name) or ("variant", its name)."""
_POLICY: Scope = ("policy", "")


@dataclass(frozen=True, slots=True)
class Order:
    """A Publish decision in force."""

    at: datetime
    decision: Decision

    def spent(self, variant: VariantFacts) -> bool:
        """Has the variant taken a step since? One decision, one change.

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
    wide: dict[tuple[str, str], list[Order]] = field(default_factory=dict)  # (stage, revision)
    own: dict[tuple[str, str], list[Order]] = field(default_factory=dict)  # (variant, revision)


class Standing:
    """The decisions of one policy that are in force."""

    def __init__(self, decisions: Iterable[Decision], now: datetime) -> None:
        self._suspensions: dict[Scope, Decision] = {}
        self._orders = _Orders()
        self.holds: list[Hold] = []  # decisions that nothing can come of
        self._instants: list[tuple[str, datetime]] = []  # (stage or "", when one lets more through)
        self._ends: list[datetime] = []
        for at, decision in in_record_order(decisions, now):
            if decision.expires is not None:
                if decision.expires <= now:
                    continue
                self._ends.append(decision.expires)
                if decision.action is Action.SUSPEND:  # the end of another opens nothing
                    self._instants.append((decision.stage, decision.expires))
            if from_the_future(at, now) and decision.action is not Action.SUSPEND:
                self._await(at, decision)
            elif decision.action is Action.PUBLISH:
                self._order(Order(at, decision))
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
        return overrides(self._wide(stage, revision))

    def orders(self, stage: str, variant: str, revision: str) -> list[Order]:
        """The Publish decisions that name the variant, its stage or everything."""
        if not self._orders.wide and not self._orders.own:
            return []
        return [*self._wide(stage, revision), *self._orders.own.get((variant, revision), ())]

    def ordered_revisions(self, stage: str) -> dict[str, Order]:
        """What people have decided to publish in the stage as a whole, by revision."""
        return {
            revision: orders[-1]
            for (name, revision), orders in self._orders.wide.items()
            if name == stage
        }

    def _wide(self, stage: str, revision: str) -> list[Order]:
        wide = self._orders.wide
        mine = wide.get((stage, revision), [])
        return mine if stage == "" else [*wide.get(("", revision), ()), *mine]

    def _order(self, order: Order) -> None:
        decision = order.decision
        if not decision.revision:
            sentence = (
                f"decision {decision.name} of {decision.by} names no revision: it covers nothing"
            )
            self.holds.append(
                Hold(Reason.DECISION_WAITS, sentence, f"{decision.by}: decide again", order.at)
            )
        elif decision.variants:
            for variant in set(decision.variants):
                key = (variant, decision.revision)
                self._orders.own.setdefault(key, []).append(order)
        else:
            key = (decision.stage, decision.revision)
            self._orders.wide.setdefault(key, []).append(order)

    def _await(self, at: datetime, decision: Decision) -> None:
        start = counts_from(at)
        self._instants.append((decision.stage, start))
        sentence = (
            f"decision {decision.name} of {decision.by} is dated {written(at)}, more than five"
            f" minutes ahead; it does not count before {written(start)}"
        )
        who = f"whoever sets the clock of {decision.by}"
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

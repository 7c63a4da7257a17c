"""Who goes back to which revision: a stage's `pin`, and people's rollbacks.

A rollback stands until it is withdrawn, it ends, or what was promoted later about all that it is
about has been taken: a stage that goes back goes back as a whole, and stays where it is until the
revision that mends it may go. Of two about the same variant the later word counts. While one stands
it goes before the pin of the spec, which whoever decided has seen. (Design §6, "Order and change".)
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from fanout.gates.facts import VariantFacts
from fanout.gates.records import Action, Decision
from fanout.gates.rules import StageRule
from fanout.values import frozen, replace


@frozen
class Pin:
    """The revision to go back to and stay at, and the decision that says so."""

    revision: str
    decision: Decision | None = None  # None: the policy's spec says so
    at: datetime | None = None  # when it was decided
    until: str = ""  # a revision that was promoted since: it is left when that may be taken

    @property
    def alone(self) -> bool:
        """Is it about variants by name, and not about all of their stage?"""
        return self.decision is not None and bool(self.decision.variants)


@dataclass(slots=True)
class Rollbacks:
    """The rollbacks in force. Publications and rollbacks are added in record order.

    `variants` are those that there are: what they have tells which promotions were carried out.
    """

    variants: Iterable[VariantFacts] = ()
    _said: list[tuple[datetime, Decision]] = field(default_factory=list)
    _named: set[str] = field(default_factory=set)  # variants that one of them names
    _wide: dict[str, Pin | None] = field(default_factory=dict)  # by stage, as far as asked

    def add(self, at: datetime, decision: Decision) -> None:
        """One more decision. What is published before the first rollback ends none."""
        if self._said or decision.action is Action.ROLLBACK:
            self._said.append((at, decision))
            self._named.update(decision.variants)
            self._wide.clear()

    def __bool__(self) -> bool:
        return bool(self._said)

    def of(self, stage: str, variant: str = "") -> Pin | None:
        """The rollback in force for the stage as a whole, or for a variant in it."""
        if not self._said:
            return None
        if variant in self._named:
            return self._last(stage, variant)
        if stage not in self._wide:
            self._wide[stage] = self._last(stage, "")
        return self._wide[stage]

    def stands(self, decision: Decision) -> bool:
        """Does anybody go back by this one?"""
        if decision.variants:
            pins = [self._last(decision.stage, variant) for variant in decision.variants]
        else:
            pins = [self._last(decision.stage, "")]
        return any(pin is not None and pin.decision == decision for pin in pins)

    def _last(self, stage: str, variant: str) -> Pin | None:
        standing: list[Pin] = []  # those of the stage first, then its own
        for at, decision in self._said:
            if not _is_about(decision, stage, variant):
                continue
            if decision.action is Action.ROLLBACK:
                standing = standing if decision.variants else []
                standing.append(Pin(decision.revision, decision, at))
            else:
                standing = [it for pin in standing for it in self._after(decision, at, pin, stage)]
        return standing[-1] if standing else None

    def _after(self, publish: Decision, at: datetime, pin: Pin, stage: str) -> tuple[Pin, ...]:
        """What is left of a pin after a promotion: all of it until that is carried out."""
        if not _ends(publish, pin):
            return (pin,)
        named = pin.decision.variants if pin.decision is not None else ()
        taken = any(
            it.published is not None
            and it.published.revision == publish.revision
            and it.published.at >= at
            for it in self.variants
            if (it.name in named if pin.alone else it.stage == stage)
        )
        return () if taken else (replace(pin, until=publish.revision),)


def pinned(rule: StageRule, rollbacks: Rollbacks, variant: str = "") -> Pin | None:
    """What the stage, or a variant in it, goes back to and stays at; None: it goes on."""
    found = rollbacks.of(rule.name, variant)
    if found is None and rule.pin:
        return Pin(rule.pin)
    return found


def _is_about(decision: Decision, stage: str, variant: str) -> bool:
    """A variant written by hand is the whole of its stage, and all that is said names it."""
    if decision.variants:
        return variant in decision.variants or stage == variant == ""
    return decision.stage in ("", stage)


def _ends(publish: Decision, pin: Pin) -> bool:
    """Is it about another revision, and about all that goes back?"""
    return publish.revision != pin.revision and (pin.alone or not publish.variants)

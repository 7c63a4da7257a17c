"""Rollback pins: the revision to go back to, by `pin` or by a Rollback decision.

A Rollback is in force until it is withdrawn, it expires, or a later promotion about all that it
covers was carried out: a stage goes back as a whole, and stays there until the revision that mends
it may go. Of two about the same variant the later one counts. A Rollback precedes the pin of the
spec, which its author has seen (docs/guides/rollback.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fanout.api.gate_vocabulary import Action
from fanout.gates.gate_facts import VariantFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.record_facts import DecisionFacts
from fanout.values import Value, replace


class Pin(Value):
    """Revision to go back to and stay at, with the decision that says so."""

    revision: str
    decision: DecisionFacts | None = None  # None: the policy's spec says so
    until: str = ""  # revision promoted since, which ends the pin once allowed

    @property
    def is_by_variant(self) -> bool:
        """Return whether the pin is about variants by name, and not about all of their stage."""
        return self.decision is not None and bool(self.decision.spec.variants)


@dataclass(slots=True)
class Rollbacks:
    """Rollbacks in force. Publish and Rollback decisions are added in record order.

    `variants` are the existing variants: their publications show which promotions were carried out.
    """

    variants: Iterable[VariantFacts] = ()
    has_any: bool = field(default=False, init=False)
    _decisions: list[DecisionFacts] = field(default_factory=list)
    _named_variants: set[str] = field(default_factory=set)  # variants named by any rollback
    _stage_pins: dict[str, Pin | None] = field(default_factory=dict)  # memo by stage

    def add(self, decision: DecisionFacts) -> None:
        """Add one decision. A Publish before the first Rollback ends none and is ignored."""
        if self._decisions or decision.spec.action is Action.ROLLBACK:
            self.has_any = True
            self._decisions.append(decision)
            self._named_variants.update(decision.spec.variants)
            self._stage_pins.clear()

    def find_pin(self, stage: str, variant_name: str = "") -> Pin | None:
        """Return the rollback in force for the stage, or for a variant in it, or None."""
        if not self._decisions:
            return None
        if variant_name in self._named_variants:
            return self._latest_pin(stage, variant_name)
        if stage not in self._stage_pins:
            self._stage_pins[stage] = self._latest_pin(stage, "")
        return self._stage_pins[stage]

    def is_active(self, decision: DecisionFacts) -> bool:
        """Return whether any variant goes back by this decision."""
        stage, names = decision.spec.stage, decision.spec.variants or ("",)
        pins = [self._latest_pin(stage, variant) for variant in names]
        return any(pin is not None and pin.decision == decision for pin in pins)

    def _latest_pin(self, stage: str, variant_name: str) -> Pin | None:
        pins: list[Pin] = []  # pins of the stage first, then those of the variant
        for decision in self._decisions:
            if not (
                # A hand-written variant is named by all of its decisions.
                variant_name in decision.spec.variants or stage == variant_name == ""
                if decision.spec.variants
                else decision.spec.stage in ("", stage)
            ):
                continue
            if decision.spec.action is Action.ROLLBACK:
                # A Rollback of the stage replaces those of its variants; one of a variant adds to
                # them, so that the stage's pin is in force again for the variant when its own ends.
                pins = pins if decision.spec.variants else []
                pins.append(Pin(decision.revision, decision))
            else:
                pins = [it for pin in pins for it in self._pin_after_publish(decision, pin, stage)]
        return pins[-1] if pins else None

    def _pin_after_publish(self, decision: DecisionFacts, pin: Pin, stage: str) -> tuple[Pin, ...]:
        """Return what remains of a pin after a promotion: all of it until that is carried out."""
        # One of the same revision, or about some variants of the pin's stage alone, ends nothing.
        if decision.revision == pin.revision or (decision.spec.variants and not pin.is_by_variant):
            return (pin,)
        variant_names = pin.decision.spec.variants if pin.decision is not None else ()
        # While the pin holds, variants publish its revision alone, and leave the promotion waiting.
        # So it stays over when the stage has gone on and nothing has the promoted revision any
        # more.
        is_carried_out = any(
            it.published is not None
            and it.published.at >= decision.at
            and (
                it.published.revision == decision.revision
                # Within the second that they share, a publication of another revision came first.
                or (
                    it.published.at > decision.at
                    and decision.name not in it.published.waiting
                    and it.published.revision != pin.revision
                )
            )
            for it in self.variants
            if (it.name in variant_names if pin.is_by_variant else it.stage == stage)
        )
        return () if is_carried_out else (replace(pin, until=decision.revision),)


def find_pin(stage_rule: StageRule, rollbacks: Rollbacks, variant_name: str = "") -> Pin | None:
    """Return the pin of the stage, or of a variant in it; None if it goes on."""
    # The common case, asked twice for every variant in every pass.
    if not (rollbacks.has_any or stage_rule.pin):
        return None
    rollback_pin = rollbacks.find_pin(stage_rule.name, variant_name)
    return Pin(stage_rule.pin) if rollback_pin is None and stage_rule.pin else rollback_pin

"""What has become of each decision: does it still stand?"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from fanout.gates.decisions import Order, Standing
from fanout.gates.instants import from_the_future, in_record_order
from fanout.gates.model import Action, Decision, Override, VariantFacts


class Fate(StrEnum):
    """How a decision stands; exactly one holds."""

    STANDING = "standing"  # something may come of it yet, or it holds something up
    SPENT = "spent"  # it was carried out, or overtaken
    WITHDRAWN = "withdrawn"  # a later decision took it back
    EXPIRED = "expired"  # its own end is over


def fates(
    decisions: Iterable[Decision], variants: Sequence[VariantFacts], now: datetime
) -> dict[str, Fate]:
    """The fate of each decision that nobody withdrew, by its name.

    A Suspend stands until another decision about the same follows, a Publish until each variant
    that it is about has taken its step. A Resume is carried out when it is made.
    """
    said = list(decisions)
    suspending = {it.name for it in Standing(said, now).suspensions().values()}
    found: dict[str, Fate] = {}
    for at, decision in in_record_order(said, now):
        if decision.expires is not None and decision.expires <= now:
            stands, otherwise = False, Fate.EXPIRED
        elif decision.action is Action.PUBLISH:
            stands, otherwise = _waits(Order(at, decision), variants), Fate.SPENT
        else:
            ahead = from_the_future(at, now) and decision.action is Action.RESUME
            stands, otherwise = ahead or decision.name in suspending, Fate.SPENT
        found[decision.name] = Fate.STANDING if stands else otherwise
    return found


def _waits(order: Order, variants: Sequence[VariantFacts]) -> bool:
    """May anything come of a Publish? Where nobody is in the stage, somebody may join it."""
    decision = order.decision
    about = [
        it
        for it in variants
        if (it.name in decision.variants if decision.variants else it.stage == decision.stage)
    ]
    return not about or any(not order.spent(it) or _lifts(order, it) for it in about)


def _lifts(order: Order, variant: VariantFacts) -> bool:
    """Does the variant count as ready by it, for as long as it has the revision?"""
    published = variant.published
    return (
        Override.VERIFICATION in order.decision.overrides
        and published is not None
        and published.revision == order.decision.revision
    )

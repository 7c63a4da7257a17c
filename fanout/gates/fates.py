"""What has become of each decision: does it still stand?"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from fanout.gates.decisions import Order, Standing
from fanout.gates.facts import VariantFacts
from fanout.gates.instants import from_the_future
from fanout.gates.records import Action, Decision, Override


class Fate(StrEnum):
    """How a decision stands; exactly one holds."""

    AHEAD = "ahead"  # it is dated ahead, and counts for nothing before its instant
    STANDING = "standing"  # something may come of it yet, or it holds something up
    SPENT = "spent"  # it was carried out, or overtaken
    OUTDATED = "outdated"  # the drafts that it is about were rewritten
    WITHDRAWN = "withdrawn"  # a later decision took it back
    EXPIRED = "expired"  # its own end is over


def fates(
    decisions: Iterable[Decision], variants: Sequence[VariantFacts], now: datetime
) -> dict[str, Fate]:
    """The fate of each decision that nobody withdrew, by its name.

    A Suspend stands until another decision about the same follows, a Publish until each variant
    that it is about has taken its step or has another draft. A Skip and a Retry stand until each
    of theirs has taken a step since, a Rollback for as long as anybody goes back by it. A Resume
    is carried out when it is made.
    """
    said = list(decisions)
    standing = Standing(said, now, variants)
    suspending = {it.name for it in standing.suspensions().values()}
    found: dict[str, Fate] = {}
    for decision in said:
        at = decision.at
        if decision.expires is not None and decision.expires <= now:
            found[decision.name] = Fate.EXPIRED
        elif from_the_future(at, now) and decision.action is not Action.SUSPEND:
            found[decision.name] = Fate.AHEAD
        elif decision.action is Action.PUBLISH:
            found[decision.name] = _of_order(Order(at, decision), variants)
        elif decision.action in (Action.SKIP, Action.RETRY):
            found[decision.name] = _of_attempt(at, decision, variants)
        elif decision.action is Action.ROLLBACK:
            stands = standing.rollbacks.stands(decision)
            found[decision.name] = Fate.STANDING if stands else Fate.SPENT
        else:
            stands = decision.name in suspending
            found[decision.name] = Fate.STANDING if stands else Fate.SPENT
    return found


def _of_order(order: Order, variants: Sequence[VariantFacts]) -> Fate:
    """May anything come of a Publish? Where nobody is in the stage, somebody may join it."""
    about = _about(order.decision, variants)
    if not about or any(_waits(order, it) or _lifts(order, it) for it in about):
        return Fate.STANDING
    return Fate.SPENT if any(map(order.spent, about)) else Fate.OUTDATED


def _of_attempt(at: datetime, decision: Decision, variants: Sequence[VariantFacts]) -> Fate:
    """A Skip or a Retry is overtaken where something was published since."""
    about = _about(decision, variants)
    overtaken = about and all(it.stepped is not None and it.stepped > at for it in about)
    return Fate.SPENT if overtaken else Fate.STANDING


def _about(decision: Decision, variants: Sequence[VariantFacts]) -> list[VariantFacts]:
    return [
        it
        for it in variants
        if (it.name in decision.variants if decision.variants else it.stage == decision.stage)
    ]


def _waits(order: Order, variant: VariantFacts) -> bool:
    """May the variant's next step come of it?"""
    draft = variant.draft
    same = draft is not None and draft.revision == order.decision.revision
    return not order.spent(variant) and order.covers(variant, draft if same else None)


def _lifts(order: Order, variant: VariantFacts) -> bool:
    """Does the variant count as ready by it, for as long as it has the revision?"""
    published = variant.published
    return (
        Override.VERIFICATION in order.decision.overrides
        and published is not None
        and published.revision == order.decision.revision
    )

"""What has become of the decisions on record, those included that no gate is asked about."""

from collections.abc import Sequence
from datetime import datetime

from fanout.gates.fates import Fate
from fanout.gates.fates import fates as fates_of
from fanout.plan.book import Recorded, standing
from fanout.plan.cases import Case
from fanout.plan.disputes import RESOLVE
from fanout.plan.facts import Question, facts, records


def fates(found: Sequence[Recorded], cases: Sequence[Case], now: datetime) -> dict[str, Fate]:
    """The fate of each Decision among the records, by its name.

    A Resolve stands until it is withdrawn: equal conflicts of later revisions are decided by it.
    What is done when it is decided (a removal, a withdrawal) is spent.
    """
    remaining = standing(found)
    names = {it.name for it in remaining}
    said = records(remaining)
    variants = facts(Question("", (), (), said, {}, now), cases, {}).variants
    known = fates_of(said.decisions, variants, now)
    decisions = (it for it in found if it.kind == "Decision")
    return {it.name: known.get(it.name) or _other(it, names) for it in decisions}


def _other(item: Recorded, remaining: set[str]) -> Fate:
    if item.name in remaining:
        return Fate.STANDING if item.spec["action"] == RESOLVE else Fate.SPENT
    return Fate.WITHDRAWN if not item.spec.get("withdraws") else Fate.SPENT

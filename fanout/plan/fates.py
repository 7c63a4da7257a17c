"""What has become of the decisions on record, those included that no gate is asked about."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from fanout.gates.fates import Fate
from fanout.gates.fates import fates as fates_of
from fanout.gates.instants import from_the_future
from fanout.plan.book import Recorded, standing
from fanout.plan.cases import Case
from fanout.plan.disputes import RESOLVE
from fanout.plan.facts import CONFIRM_REMOVAL, Question, facts, records, with_removals


def fates(
    found: Sequence[Recorded],
    cases: Sequence[Case],
    now: datetime,
    gone: Mapping[str, datetime | None],
    removed: Mapping[str, datetime],
) -> dict[str, Fate]:
    """The fate of each Decision among the records, by its name.

    `removed`: when sweeps removed variants, by name; a decision from before then is spent.

    A Resolve stands until it is withdrawn: equal conflicts of later revisions are decided by it. A
    ConfirmRemoval stands while a variant that it names is still to go: `gone` has those without a
    target, and when each was published. A withdrawal is spent when it is made.
    """
    remaining = standing(found)
    names = {it.name for it in remaining}
    said = with_removals(records(remaining, now), removed)
    variants = facts(Question("", (), (), said, {}, now), cases, {}).variants
    known = fates_of(said.decisions, variants, now)
    decisions = (it for it in found if it.kind == "Decision")
    return {it.name: known.get(it.name) or _other(it, names, gone, now) for it in decisions}


def _other(
    item: Recorded, remaining: set[str], gone: Mapping[str, datetime | None], now: datetime
) -> Fate:
    if item.name in remaining:
        if from_the_future(item.at, now):
            return Fate.AHEAD
        stands = item.spec["action"] == RESOLVE or _awaited(item, gone)
        return Fate.STANDING if stands else Fate.SPENT
    return Fate.WITHDRAWN if not item.spec.get("withdraws") else Fate.SPENT


def _awaited(item: Recorded, gone: Mapping[str, datetime | None]) -> bool:
    """Does a removal that was confirmed wait for a sweep?"""
    if item.spec["action"] != CONFIRM_REMOVAL:
        return False
    about = (gone[name] for name in item.spec["variants"] if name in gone)
    return any(published is None or published <= item.at for published in about)

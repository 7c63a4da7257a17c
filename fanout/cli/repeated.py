"""Find the record that an earlier run of a verb has made, so that it is not made a second time.

A verb can be killed between the push of its record and the end of what follows from it. Run again,
it must answer as the first run would have, and record nothing. (Design §3.)
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from fanout.api.people import person
from fanout.gates.evaluate import evaluate
from fanout.gates.fates import Fate
from fanout.plan.book import Recorded
from fanout.plan.repository import Identity
from fanout.reconcile.report import PolicyPass
from fanout.values import replace

# What a verb derives from the world. The killed run may have published or removed some of it.
_DERIVED = ("trees", "variants", "acceptConflicts")


def recorded_before(
    item: PolicyPass, kind: str, spec: Mapping[str, Any], by: Identity
) -> Recorded | None:
    """Return the last record about any of the same, if this person said the same with it.

    `spec` is what the verb would record now. Any later decision about the stage or one of the
    variants makes it a new one, as does later evidence of the same reporter about the same check:
    it may have ended or overruled the earlier record.
    """
    who = person(f"{by.name} <{by.email}>")
    for record in reversed(item.about):
        if not _overlap(record.spec, spec):
            continue
        if record.kind == kind and person(record.by) == who and _says(record.spec, spec):
            return record
        if record.kind == "Decision" or _overrules(record, kind, spec, who):
            return None
    return None


def decided_before(
    item: PolicyPass,
    spec: Mapping[str, Any],
    by: Identity,
    now: datetime,
    fates: Collection[Fate] = (Fate.STANDING,),
) -> Recorded | None:
    """Return the equal decision of this person, if its fate is one of these."""
    found = recorded_before(item, "Decision", spec, by)
    return found if found is not None and item.fates(now).get(found.name) in fates else None


def before(item: PolicyPass, decision: Recorded | None) -> PolicyPass:
    """Return the policy as it was evaluated before a decision counted: what it has changed since.

    Conditions for which the sandbox is needed have no answer here: they hold, as in a first pass.
    """
    if decision is None or item.facts is None:
        return item
    records = item.facts.records
    others = tuple(it for it in records.decisions if it.name != decision.name)
    facts = replace(item.facts, records=replace(records, decisions=others))
    return replace(item, facts=facts, decision=evaluate(facts))


def _overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two records are about any of the same variants; without names it is all of them."""
    stages = {one.get("stage", ""), other.get("stage", "")} - {""}
    mine, theirs = one.get("variants", ()), other.get("variants", ())
    return len(stages) < 2 and (not mine or not theirs or not set(mine).isdisjoint(theirs))


def _says(recorded: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Whether a record says all of what would be recorded, down to its reason."""
    return _typed(recorded) == _typed(spec) and _covers(recorded, spec)


def _typed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a person typed; empty fields are left out, as not every verb writes them."""
    return {
        name: sorted(value) if isinstance(value, list | tuple) else value
        for name, value in spec.items()
        if value and name not in _DERIVED
    }


def _covers(recorded: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Whether all variants and trees that are left now are among those that were recorded."""
    variants, mine = recorded.get("variants", ()), spec.get("variants", ())
    if bool(variants) != bool(mine) or not set(mine) <= set(variants):
        return False
    if spec.get("acceptConflicts") and not recorded.get("acceptConflicts"):
        return False
    trees = recorded.get("trees", ())
    # A Publish without trees is about the drafts that its own pass has written since.
    written_since = spec.get("action") == "Publish" and not trees
    return written_since or set(spec.get("trees", ())) <= set(trees)


def _overrules(record: Recorded, kind: str, spec: Mapping[str, Any], who: str) -> bool:
    """Whether it is a later answer of the same reporter to the same check."""
    same_check = record.spec.get("check") == spec.get("check")
    return record.kind == kind == "Evidence" and person(record.by) == who and same_check

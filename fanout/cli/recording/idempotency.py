"""Idempotency of verbs that record: a repeated run finds its earlier record.

A verb can be killed between the push of its record and the end of what follows from it.
Run again, it must answer like the first run, and record nothing (design §3).
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from fanout.api.approver_groups import normalize_person
from fanout.gates.active_decisions import DecisionStatus
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_records import RecordEntry
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import replace

# Fields that a verb derives from the observed state. A killed run may have published or removed
# part of it.
_DERIVED_FIELDS = ("trees", "variants", "acceptConflicts")


def find_equal_record(
    item: PolicyResult, kind: str, spec: Mapping[str, Any], by: CommitIdentity
) -> RecordEntry | None:
    """Return the latest record of the subject if this person recorded the same.

    `spec`: what the verb would record now. A later decision about the stage or one of the
    variants makes it a new record, as does later evidence of the same reporter about the
    same check: either may have ended or overruled the earlier record.
    """
    author = normalize_person(f"{by.name} <{by.email}>")
    # Latest first: whatever was recorded after the equal record may have ended it.
    for record in reversed(item.records):
        if not _overlap(record.spec, spec):
            continue
        if (
            record.kind == kind
            and normalize_person(record.by) == author
            and _is_equal(record.spec, spec)
        ):
            return record
        if record.kind == "Decision" or _overrules(record, kind, spec, author):
            return None
    return None


def find_equal_decision(
    item: PolicyResult,
    spec: Mapping[str, Any],
    by: CommitIdentity,
    now: datetime,
    statuses: Collection[DecisionStatus] = (DecisionStatus.ACTIVE,),
) -> RecordEntry | None:
    """Return the equal decision of this person with one of `statuses`, else None."""
    earlier = find_equal_record(item, "Decision", spec, by)
    return (
        earlier
        if earlier is not None and item.decision_statuses(now).get(earlier.name) in statuses
        else None
    )


def evaluate_without(item: PolicyResult, decision: RecordEntry | None) -> PolicyResult:
    """Return the policy evaluated without this decision, to compare with its state since.

    Conditions that need the sandbox are not evaluated here: they are held, like in a first
    pass.
    """
    if decision is None or item.facts is None:
        return item
    records = item.facts.records
    other_decisions = tuple(it for it in records.decisions if it.name != decision.name)
    facts = replace(item.facts, records=replace(records, decisions=other_decisions))
    return replace(item, facts=facts, decision=evaluate_gates(facts))


def _overlap(recorded: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Return whether two records share a variant.

    A record that names none is about all of its stage.
    """
    stages = {recorded.get("stage", ""), spec.get("stage", "")} - {""}
    recorded_variants, spec_variants = recorded.get("variants", ()), spec.get("variants", ())
    return len(stages) < 2 and (
        not recorded_variants
        or not spec_variants
        or not set(recorded_variants).isdisjoint(spec_variants)
    )


def _is_equal(recorded: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Return whether a record states all of what would be recorded.

    Its reason is part of that.
    """
    return _typed_fields(recorded) == _typed_fields(spec) and _covers(recorded, spec)


def _typed_fields(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a person typed, without empty ones.

    Not every verb writes empty fields.
    """
    return {
        name: sorted(value) if isinstance(value, list | tuple) else value
        for name, value in spec.items()
        if value and name not in _DERIVED_FIELDS
    }


def _covers(recorded: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Return whether all variants and trees that remain now are among the recorded ones."""
    variants, remaining = recorded.get("variants", ()), spec.get("variants", ())
    if bool(variants) != bool(remaining) or not set(remaining) <= set(variants):
        return False
    if spec.get("acceptConflicts") and not recorded.get("acceptConflicts"):
        return False
    trees = recorded.get("trees", ())
    # A Publish without trees is about the drafts that its own pass has written since.
    written_since = spec.get("action") == "Publish" and not trees
    return written_since or set(spec.get("trees", ())) <= set(trees)


def _overrules(record: RecordEntry, kind: str, spec: Mapping[str, Any], author: str) -> bool:
    """Return whether the record is a later answer of the same reporter to the same check."""
    same_check = record.spec.get("check") == spec.get("check")
    return (
        record.kind == kind == "Evidence" and normalize_person(record.by) == author and same_check
    )

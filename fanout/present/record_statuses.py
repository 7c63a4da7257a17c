"""Statuses of records: whether each record counts after a pass, for objects and for tables."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime

from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.record_objects import DecisionSpec
from fanout.gates.active_decisions import DecisionStatus
from fanout.gates.approval_index import find_revoked
from fanout.gates.record_effect import (
    EFFECT_BY_STATUS,
    WITHDRAWS,
    RecordEffect,
    RecordEvaluator,
    effect_of_unknown_record,
)
from fanout.plan.evidence.record_times import counts_at_once, records_ahead
from fanout.plan.evidence.review_approvals import list_removal_facts
from fanout.plan.records.policy_records import RecordEntry, active_records
from fanout.plan.records.record_listing import RecordState, build_record_status
from fanout.plan.written_objects import ObjectName, WrittenObject
from fanout.reconcile.pass_results import PolicyResult


def build_record_statuses(
    policy_result: PolicyResult, objects: Mapping[str, ObjectName], includes: Callable[[str], bool]
) -> Iterator[WrittenObject]:
    """Yield the objects of a policy's records that exist, with their statuses.

    `objects`: the names of all objects of records, by uid; `includes` tells by name which of them
    are asked for. Of a policy that an error stops there are none, because nothing tells what
    counts there.
    """
    entries = [
        it
        for it in policy_result.records
        if it.uid in objects and includes(objects[it.uid].name) and is_owner(policy_result, it)
    ]
    effects = find_effects(policy_result, entries) if entries else {}
    for entry in entries:
        if entry.name in effects:
            state = RecordState(record=entry.name, at=entry.at)
            yield WrittenObject(
                objects[entry.uid],
                build_record_status(state, entry.at, effects[entry.name]),
                uid=entry.uid,
            )


def find_effects(
    policy_result: PolicyResult, entries: Sequence[RecordEntry]
) -> Mapping[str, RecordEffect]:
    """Return the effects of these records of the policy, by name; none if an error stops it."""
    facts, evaluation = policy_result.facts, policy_result.decision
    if facts is None or evaluation is None or policy_result.error is not None:
        return {}
    removals = list_removal_facts(policy_result.removal_sets)
    evaluator = RecordEvaluator(facts, evaluation, tuple(removals))
    kinds = {it.kind for it in entries}
    effects: dict[str, RecordEffect] = {}
    if "Evidence" in kinds:
        effects |= evaluator.evaluate_evidence()
    if "Approval" in kinds:
        effects |= evaluator.evaluate_approvals()
    if "Decision" in kinds:
        statuses = policy_result.decision_statuses(facts.now)
        effects |= {name: EFFECT_BY_STATUS[it] for name, it in statuses.items() if it in _PLAIN}
        effects |= {
            it.name: evaluator.evaluate_decision(it, statuses[it.name])
            for it in facts.records.decisions
            if it.name in statuses
        }
        # Withdrawals withdraw what is on record before them.
        earlier: set[str] = set()
        for record in policy_result.records:
            if isinstance(record.spec, DecisionSpec) and record.action is Action.WITHDRAW:
                target = record.spec.withdraws
                effects[record.name] = (
                    WITHDRAWS if target in earlier else effect_of_unknown_record(target)
                )
            elif record.kind != "Approval":
                earlier.add(record.name)
    return effects


# Of the others the decision itself tells more.
_PLAIN: Collection[DecisionStatus] = frozenset(DecisionStatus) - {DecisionStatus.STALE}


def find_record_statuses(
    policy_result: PolicyResult, records: Sequence[RecordEntry], now: datetime
) -> Mapping[str, Mapping[str, str]]:
    """Return what counts of these records, by name: `state`, and why as `reason` and `message`.

    Of a policy that an error stops the records alone tell, without a reason.
    """
    on_record, facts = policy_result.records, policy_result.facts
    # The status of each decision, and of other records as far as they tell themselves.
    states = {
        it.name: DecisionStatus.AHEAD
        for it in records_ahead(on_record, now)
        if not counts_at_once(it)
    }
    states |= {
        it.name: DecisionStatus.WITHDRAWN for it in active_records(on_record) if it.withdrawn
    }
    if facts is not None:
        revoked = find_revoked(facts.records.approvals, facts.stages)
        states |= dict.fromkeys(revoked, DecisionStatus.WITHDRAWN)
    # That of decisions comes last: it tells more than that the record does not count.
    states |= policy_result.decision_statuses(now)
    decisions = {it.name for it in records if it.kind == "Decision"}
    statuses: dict[str, Mapping[str, str]] = {
        name: {"state": it.value} for name, it in states.items()
    }
    effects = find_effects(policy_result, records) if records else {}
    for name, effect in effects.items():
        state = _STATES.get(effect.reason, effect.reason.value)
        # A decision that does not apply to the candidate is active all the same.
        if name in decisions and name in states:
            state = states[name].value
        statuses[name] = {"state": state, "reason": effect.reason.value, "message": effect.message}
    return statuses


# States that have another word than their reason: those of decisions.
_STATES: Mapping[Reason, str] = {
    Reason.EFFECTIVE: DecisionStatus.ACTIVE.value,
    Reason.FROM_THE_FUTURE: DecisionStatus.AHEAD.value,
}


def is_owner(policy_result: PolicyResult, record: RecordEntry) -> bool:
    """Return whether a record that hand-written variants may share has its status from here."""
    policy = policy_result.resolved_policy
    return policy.upstream_policy is not None or record.spec.variants[0] == policy.name

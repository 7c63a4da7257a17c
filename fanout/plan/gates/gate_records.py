"""Records as the gates read them, and the status of every Decision: active, applied, withdrawn."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from fanout.api.approver_names import format_group
from fanout.api.gate_vocabulary import GATE_ACTIONS, Action
from fanout.api.promotion_policy import normalize_person
from fanout.api.record_objects import ApprovalSpec, DecisionSpec, EvidenceSpec
from fanout.gates.active_decisions import DecisionStatus, decision_statuses
from fanout.gates.gate_facts import PolicyFacts
from fanout.gates.record_facts import (
    ApprovalFacts,
    DecisionFacts,
    EvidenceFacts,
    RecordFacts,
    ReviewFacts,
    is_from_the_future,
)
from fanout.plan.gates.variant_facts import GateInputs, build_policy_facts
from fanout.plan.records.policy_records import RecordEntry, active_records
from fanout.plan.rendered_variant import RenderedVariant
from fanout.values import replace


def build_gate_records(entries: Sequence[RecordEntry], now: datetime) -> RecordFacts:
    """Convert record entries into the records of the gate engine, in record order.

    A removal dated more than five minutes ahead of `now` does not count yet.
    """
    evidence: list[EvidenceFacts] = []
    approvals: list[ApprovalFacts] = []
    decisions: list[DecisionFacts] = []
    for entry in entries:
        name, at, by, spec = entry.name, entry.at, normalize_person(entry.by), entry.spec
        match spec:
            case EvidenceSpec():
                evidence.append(EvidenceFacts(name, at, by, spec, len(evidence), entry.withdrawn))
            case ApprovalSpec():
                groups = frozenset(map(format_group, entry.groups))
                approvals.append(ApprovalFacts(name, at, by, spec, frozenset(spec.trees), groups))
            case DecisionSpec() if spec.action in GATE_ACTIONS:
                trees = frozenset(spec.trees)
                decisions.append(DecisionFacts(name, at, by, spec, len(decisions), trees))
    return RecordFacts(
        evidence=tuple(evidence),
        approvals=tuple(approvals),
        decisions=tuple(decisions),
        removals={
            name: entry.at
            for entry in entries
            if entry.action is Action.CONFIRM_REMOVAL and not is_from_the_future(entry.at, now)
            for name in entry.spec.variants
        },
    )


def with_removals(gate_records: RecordFacts, removed: Mapping[str, datetime]) -> RecordFacts:
    """Return the records with removals by sweeps added; the later of two removals counts.

    `removed` has the instant of each removal, by variant name.
    """
    if not removed:
        return gate_records
    removals = dict(gate_records.removals)
    for name, at in removed.items():
        removals[name] = max(at, removals.get(name, at))
    return replace(gate_records, removals=removals)


def with_reviews(
    gate_records: RecordFacts,
    approvals: Sequence[ApprovalFacts],
    requested_changes: tuple[ReviewFacts, ...],
) -> RecordFacts:
    """Return the records with approvals and requested changes by reviews added.

    Their place among the recorded ones makes no difference: of one person the latest counts.
    """
    if not approvals and not requested_changes:
        return gate_records
    return replace(
        gate_records,
        approvals=(*gate_records.approvals, *approvals),
        requested_changes=requested_changes,
    )


def recorded_decision_statuses(
    entries: Sequence[RecordEntry],
    rendered_variants: Sequence[RenderedVariant],
    now: datetime,
    unremoved: Mapping[str, datetime | None],
    removed: Mapping[str, datetime],
) -> dict[str, DecisionStatus]:
    """Return the status of every Decision among the record entries, by its name.

    `removed`: instants at which sweeps removed variants, by variant name; decisions made before
    such an instant are applied. `unremoved`: variants without a target that are still to be
    removed, with the instant of their publication, or None if they were never published.

    A Resolve stays active until it is withdrawn, since it also decides equal conflicts of
    later revisions. A ConfirmRemoval is active while a variant that it names is still to be
    removed. A withdrawal is applied when it is made.
    """
    if not any(it.kind == "Decision" for it in entries):
        return {}  # spares the facts of all variants
    active_entries = active_records(entries)
    active_names = {it.name for it in active_entries}
    gate_records = with_removals(build_gate_records(active_entries, now), removed)
    variants = build_policy_facts(
        GateInputs(facts=PolicyFacts("", (), (), (), gate_records, {}, now)), rendered_variants, {}
    ).variants
    statuses = dict(decision_statuses(gate_records.decisions, variants, now))
    for entry in entries:
        if entry.kind != "Decision" or entry.name in statuses:
            continue
        if entry.name not in active_names:
            is_withdrawal = entry.action is Action.WITHDRAW
            statuses[entry.name] = (
                DecisionStatus.APPLIED if is_withdrawal else DecisionStatus.WITHDRAWN
            )
        elif is_from_the_future(entry.at, now):
            statuses[entry.name] = DecisionStatus.AHEAD
        else:
            is_active = entry.action is Action.RESOLVE
            if entry.action is Action.CONFIRM_REMOVAL:
                # Active until a sweep has made the removal.
                times = (unremoved[name] for name in entry.spec.variants if name in unremoved)
                is_active = any(published is None or published <= entry.at for published in times)
            statuses[entry.name] = DecisionStatus.ACTIVE if is_active else DecisionStatus.APPLIED
    return statuses

"""Status of every Decision on record, such as active, applied or withdrawn."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from fanout.gates.active_decisions import DecisionStatus
from fanout.gates.active_decisions import decision_statuses as fates_of
from fanout.gates.gate_facts import PolicyFacts
from fanout.gates.timestamps import is_from_the_future
from fanout.plan.edits.merge_disputes import RESOLVE
from fanout.plan.gate_inputs.policy_facts import (
    CONFIRM_REMOVAL,
    GateInputs,
    build_gate_records,
    build_policy_facts,
    with_removals,
)
from fanout.plan.records.policy_records import RecordEntry, active_records
from fanout.plan.rendered_variant import RenderedVariant


def recorded_decision_statuses(
    entries: Sequence[RecordEntry],
    rendered_variants: Sequence[RenderedVariant],
    now: datetime,
    unremoved: Mapping[str, datetime | None],
    removed: Mapping[str, datetime],
) -> dict[str, DecisionStatus]:
    """Return the status of every Decision among the record entries, by its name.

    `removed`: instants at which sweeps removed variants, by variant name; decisions made
    before such an instant are applied. `unremoved`: variants without a target that are
    still to be removed, with the instant of their publication, or None if they were never
    published.

    A Resolve stays active until it is withdrawn, since it also decides equal conflicts of
    later revisions. A ConfirmRemoval is active while a variant that it names is still to be
    removed. A withdrawal is applied when it is made.
    """
    active_entries = active_records(entries)
    active_names = {it.name for it in active_entries}
    gate_records = with_removals(build_gate_records(active_entries, now), removed)
    variants = build_policy_facts(
        GateInputs(facts=PolicyFacts("", (), (), (), gate_records, {}, now)),
        rendered_variants,
        {},
    ).variants
    gate_statuses = fates_of(gate_records.decisions, variants, now)
    decisions = (it for it in entries if it.kind == "Decision")
    return {
        it.name: gate_statuses.get(it.name)
        or _status_outside_gates(it, active_names, unremoved, now)
        for it in decisions
    }


def _status_outside_gates(
    entry: RecordEntry,
    active_names: set[str],
    unremoved: Mapping[str, datetime | None],
    now: datetime,
) -> DecisionStatus:
    if entry.name in active_names:
        if is_from_the_future(entry.at, now):
            return DecisionStatus.AHEAD
        is_active = entry.spec["action"] == RESOLVE or _awaits_removal(entry, unremoved)
        return DecisionStatus.ACTIVE if is_active else DecisionStatus.APPLIED
    return DecisionStatus.WITHDRAWN if not entry.spec.get("withdraws") else DecisionStatus.APPLIED


def _awaits_removal(entry: RecordEntry, unremoved: Mapping[str, datetime | None]) -> bool:
    """Return whether the entry confirms a removal that no sweep has made yet."""
    if entry.spec["action"] != CONFIRM_REMOVAL:
        return False
    publication_times = (unremoved[name] for name in entry.spec["variants"] if name in unremoved)
    return any(published is None or published <= entry.at for published in publication_times)

"""Gate inputs of one policy that do not depend on its variants: rules, records, history."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from fanout.api.upstream_policy import InFlight
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts
from fanout.gates.gate_rules import HAND_WRITTEN, PropagationCondition, StageRule
from fanout.gates.record_facts import RecordFacts, is_from_the_future
from fanout.gates.revision_history import RevisionHistory
from fanout.plan.edits.merge_disputes import read_resolutions
from fanout.plan.gates.stage_rules import (
    build_calendars,
    build_hand_written_rule,
    build_stage_rules,
    finishing_calendars,
)
from fanout.plan.gates.variant_facts import GateInputs
from fanout.plan.records.policy_records import RecordEntry, active_records
from fanout.plan.records.policy_status import RecordedStatus
from fanout.reconcile.policy_inputs import PolicyInputs
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.reconcile.variant_dependencies import build_variant_details
from fanout.values import replace


def build_gate_inputs(
    inputs: PolicyInputs,
    status: RecordedStatus,
    revisions: Mapping[str, str],
    gate_records: RecordFacts,
    rules: tuple[StageRule, ...],
    now: datetime,
) -> GateInputs:
    """Build the gate inputs that no repository state contributes to; `revisions`: their commits."""
    resolved_policy = inputs.resolved_policy
    policy, history = resolved_policy.upstream_policy, status.history
    if policy is None:
        # Hand-written variants share their records, each under its own name.
        history = {
            (HAND_WRITTEN, revision): it
            for (stage, revision), it in status.history.items()
            if stage == resolved_policy.name
        }
    facts = PolicyFacts(
        name=resolved_policy.name,
        stages=rules,
        variants=(),
        revisions=tuple(revisions),
        records=gate_records,
        history=history,
        now=now,
        suspended=policy is not None and policy.spec.suspend,
        sweep=inputs.is_sweep,
        serialize=policy is not None and policy.spec.in_flight is InFlight.SERIALIZE,
        calendars=build_calendars(inputs.promotions),
        finishing_calendars=finishing_calendars(inputs.promotions),
        has_unreadable_calendar=not inputs.all_promotions_read,
    )
    return GateInputs(
        facts=facts,
        resolutions=read_resolutions(find_applicable_records(inputs, now)),
        last_evidence=gate_records.position(now).last_evidence,
        draft_lines=status.drafts,
        attributes=build_variant_details(resolved_policy, inputs.dependency_holds),
    )


def build_rules(
    inputs: PolicyInputs, get_condition: Callable[[str], PropagationCondition]
) -> tuple[StageRule, ...]:
    """Build the rule of each stage; `get_condition` gives the condition of an expression."""
    resolved_policy = inputs.resolved_policy
    if resolved_policy.upstream_policy is not None:
        rules = build_stage_rules(resolved_policy.upstream_policy, inputs.promotions, get_condition)
    else:
        rules = (build_hand_written_rule(resolved_policy.name, inputs.promotions),)
    # Fail closed: an unreadable object may restrict this policy.
    return tuple(replace(it, automatic=it.automatic and inputs.all_promotions_read) for it in rules)


def find_applicable_records(inputs: PolicyInputs, now: datetime) -> Sequence[RecordEntry]:
    """Return the records of the policy that are not dated in the future."""
    return [it for it in find_own_records(inputs) if not is_from_the_future(it.at, now)]


def find_own_records(inputs: PolicyInputs) -> Sequence[RecordEntry]:
    """Return the active records of the policy.

    Hand-written variants of a namespace share their records; each has those that name it.
    """
    records = active_records(inputs.policy_state.records)
    if inputs.resolved_policy.upstream_policy is not None:
        return records
    name = inputs.resolved_policy.name
    return [it for it in records if name in it.spec.variants]


def merge_history(
    resolved_policy: ResolvedPolicy, status: RecordedStatus, decision: PolicyEvaluation
) -> Mapping[tuple[str, str], RevisionHistory]:
    """Return the stage histories to record, keyed by (stage, revision).

    Hand-written variants share their records; each keeps its history under its own name.
    """
    if resolved_policy.upstream_policy is not None:
        return decision.history
    name = resolved_policy.name
    others = {key: it for key, it in status.history.items() if key[0] != name}
    return others | {(name, revision): it for (_, revision), it in decision.history.items()}

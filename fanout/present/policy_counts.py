"""Counts and holds of policies after a pass, as plans, reports and metrics have them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import VariantState
from fanout.api.reasons import is_asked
from fanout.api.results import Hold
from fanout.gates.gate_facts import PolicyEvaluation
from fanout.reconcile.pass_results import STOPPED, PassPlan, PolicyResult
from fanout.telemetry.metrics import Labels


class PolicyCounts(NamedTuple):
    """Counts by namespace and policy; those of variants written by hand have no policy."""

    policies: Counter[Labels]  # by state
    stages: Counter[Labels]  # by name and state
    variants: Counter[Labels]  # by stage and state
    holds: Counter[Labels]  # by stage and reason, but for those for which nobody is asked yet
    problems: Counter[Labels]  # by reason; those that a person must fix


def count_policy(item: PolicyResult) -> PolicyCounts:
    """Return the counts of one policy."""
    policy, decision = item.resolved_policy, item.decision
    labels = (policy.namespace, policy.name if policy.upstream_policy is not None else "")
    stages: Counter[Labels] = Counter()
    variants: Counter[Labels] = Counter()
    holds: Counter[Labels] = Counter()
    if decision is not None:
        stages.update((*labels, it.name, it.state) for it in decision.stages.values())
        for variant in decision.variants.values():
            variants[*labels, variant.stage, variant.state] += 1
            reasons = {it.reason for it in variant.holds}
            asked = (it for it in reasons if is_asked(it, reasons))
            holds.update((*labels, variant.stage, it) for it in asked)
        holds.update((*labels, *it) for it in _find_shared_holds(decision))
    decisions = decision.variants.values() if decision is not None else ()
    states = {it.state for it in decisions}
    declaration, state = policy.upstream_policy, "Progressing"
    if item.error is not None:
        state = STOPPED
    elif policy.failures or VariantState.FAILED in states:
        state = "Failed"
    elif declaration is not None and declaration.spec.suspend:
        state = "Suspended"
    elif states <= {VariantState.READY}:
        state = "Ready"
    return PolicyCounts(
        Counter([(*labels, state)]),
        stages,
        variants,
        holds,
        Counter((*labels, it.reason) for it in item.problems if it.needs_fix),
    )


def count_gate_decisions(item: PolicyResult) -> Counter[Labels]:
    """Return what gates decided about one policy in a pass, by decision and reason."""
    counts: Counter[Labels] = Counter()
    for variant in item.decision.variants.values() if item.decision is not None else ():
        counts.update(("Hold", it) for it in {hold.reason for hold in variant.holds})
        counts["Release", ""] += variant.release
        counts["Publish", ""] += variant.publish
    shared = _find_shared_holds(item.decision) if item.decision is not None else ()
    counts.update(("Hold", reason) for _, reason in shared)
    return counts


def _find_shared_holds(decision: PolicyEvaluation) -> list[Labels]:
    """Return stage and reason of each hold of the policy, and of a stage without its variants."""
    of_variants = {
        (it.stage, hold.reason) for it in decision.variants.values() for hold in it.holds
    }
    of_stages = {(it.name, hold.reason) for it in decision.stages.values() for hold in it.holds}
    return [*(of_stages - of_variants), *{("", it.reason) for it in decision.holds}]


def list_holds(observed: PassPlan) -> list[dict[str, str]]:
    """Return the holds of policies, stages, variants and removals as data.

    They are in the order of the policies. The hold of a stage is listed once, as the
    stage's, and not again for its variants.
    """
    entries: list[dict[str, str]] = []
    for item in observed.policies:
        policy, decision = item.title, item.decision
        if decision is not None:
            entries += _list_entries(decision.holds, policy=policy)
            # A hold says since when it applies, which may differ between a stage and its variants.
            listed: dict[str, set[tuple[str, str]]] = {}
            for stage in decision.stages.values():
                entries += _list_entries(stage.holds, policy=policy, stage=stage.name)
                listed[stage.name] = {(str(it.reason), it.message) for it in stage.holds}
            for variant in decision.variants.values():
                of_stage = listed.get(variant.stage, set())
                holds = [it for it in variant.holds if (str(it.reason), it.message) not in of_stage]
                entries += _list_entries(
                    holds, policy=policy, stage=variant.stage, variant=variant.name
                )
        elif item.error is not None:
            entries.append(
                {"policy": policy, "reason": str(item.error.reason), "message": str(item.error)}
            )
        rest = (*item.removals.holds.items(), *item.remaining_leftovers.items())
        for name, holds_of_rest in rest:
            entries += _list_entries(holds_of_rest, policy=policy, variant=name)
    return entries


def _list_entries(holds: Iterable[Hold], **subject: str) -> Iterator[dict[str, str]]:
    """Yield the holds of a subject; names of what it has not are ""."""
    names = {key: name for key, name in subject.items() if name}
    for hold in holds:
        entry = {**names, "reason": str(hold.reason), "message": hold.message}
        entry |= {"who": hold.who} if hold.who else {}
        yield entry | ({"until": format_instant(hold.until)} if hold.until is not None else {})

"""Counts of policies, stages, variants and holds, from the last pass over each policy."""

from collections import Counter
from collections.abc import Iterator, Mapping

from fanout.api.reasons import is_asked
from fanout.controller.loop_health import ScheduledPass
from fanout.gates.evaluation_results import PolicyEvaluation, VariantState
from fanout.reconcile.pass_results import STOPPED, PolicyResult
from fanout.reconcile.pass_scope import PassSubject
from fanout.serve.metric_table import HOLDS, POLICIES, PROBLEMS, STAGES, VARIANTS, Metric

Labels = tuple[str, ...]
Counts = Mapping[Metric, Mapping[Labels, float]]
STATE_METRICS = (POLICIES, STAGES, VARIANTS, HOLDS, PROBLEMS)


class StateCounts:
    """Counts by metric and labels. One thread updates them while others read."""

    def __init__(self) -> None:
        # Replaced and never changed, so that readers need no lock.
        self._counts: Mapping[PassSubject, Mapping[Metric, Counter[Labels]]] = {}

    def update(self, made_pass: ScheduledPass) -> None:
        """Take over the policies of a pass; forget those that are not declared any more."""
        counted: dict[PassSubject, Mapping[Metric, Counter[Labels]]] = {}
        for item in made_pass.report.pass_plan.policies:
            policy = item.resolved_policy
            subject = PassSubject(policy.namespace, policy.name)
            counts = count_policy(item)
            # A policy and a variant that is written by hand may share a name.
            earlier = counted.get(subject, {})
            counted[subject] = {it: counts[it] + earlier.get(it, Counter()) for it in counts}
        merged = {**self._counts, **counted}
        self._counts = {it: merged[it] for it in merged if it in made_pass.declared}

    def read(self) -> Counts:
        """Return the sums of all policies."""
        totals: dict[Metric, Counter[Labels]] = {it: Counter() for it in STATE_METRICS}
        for counts in self._counts.values():
            for metric, numbers in counts.items():
                totals[metric].update(numbers)
        return totals


def count_policy(item: PolicyResult) -> Mapping[Metric, Counter[Labels]]:
    """Return the counts of one policy; those of variants written by hand have no policy."""
    policy, decision = item.resolved_policy, item.decision
    name = policy.name if policy.upstream_policy is not None else ""
    labels = (policy.namespace, name)
    problems = (it.reason for it in item.problems if it.needs_fix)
    return {
        POLICIES: Counter([(*labels, _find_state(item))]),
        PROBLEMS: Counter((*labels, reason) for reason in problems),
        STAGES: Counter((*labels, *it) for it in _list_stages(decision)),
        VARIANTS: Counter((*labels, *it) for it in _list_variants(decision)),
        HOLDS: Counter((*labels, *it) for it in _list_holds(decision))
        - Counter((*labels, *it) for it in _list_unasked(decision)),
    }


def count_gate_decisions(item: PolicyResult) -> Counter[Labels]:
    """Return what gates decided about one policy in a pass, by decision and reason."""
    evaluation = item.decision
    counts: Counter[Labels] = Counter(("Hold", it) for _, it in _list_holds(evaluation))
    for variant in evaluation.variants.values() if evaluation is not None else ():
        counts["Release", ""] += variant.release
        counts["Publish", ""] += variant.publish
    return counts


def _find_state(item: PolicyResult) -> str:
    if item.error is not None:
        return STOPPED
    variants = item.decision.variants.values() if item.decision is not None else ()
    states = {it.state for it in variants}
    if item.resolved_policy.failures or VariantState.FAILED in states:
        return "Failed"
    declaration = item.resolved_policy.upstream_policy
    if declaration is not None and declaration.spec.suspend:
        return "Suspended"
    return "Ready" if states <= {VariantState.READY} else "Progressing"


def _list_stages(decision: PolicyEvaluation | None) -> Iterator[Labels]:
    """Yield name and state of each stage."""
    for name, stage in decision.stages.items() if decision is not None else ():
        yield name, stage.state


def _list_variants(decision: PolicyEvaluation | None) -> Iterator[Labels]:
    """Yield stage and state of each variant."""
    for variant in decision.variants.values() if decision is not None else ():
        yield variant.stage, variant.state.value


def _list_holds(decision: PolicyEvaluation | None) -> Iterator[Labels]:
    """Yield stage and reason of each hold; the holds of a stage mostly repeat its variants'."""
    if decision is None:
        return
    of_variants = [
        (variant.stage, reason)
        for variant in decision.variants.values()
        for reason in {hold.reason for hold in variant.holds}
    ]
    yield from of_variants
    of_stages = {(name, it.reason) for name, stage in decision.stages.items() for it in stage.holds}
    yield from of_stages.difference(of_variants)
    yield from {("", hold.reason) for hold in decision.holds}


def _list_unasked(decision: PolicyEvaluation | None) -> Iterator[Labels]:
    """Yield stage and reason of each hold of a variant for which nobody is asked yet."""
    for variant in decision.variants.values() if decision is not None else ():
        reasons = {hold.reason for hold in variant.holds}
        yield from ((variant.stage, it) for it in reasons if not is_asked(it, reasons))

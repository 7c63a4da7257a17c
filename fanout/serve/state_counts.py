"""Counts of policies, stages, variants and holds, from the last pass over each policy."""

from collections import Counter
from collections.abc import Mapping
from operator import add

from fanout.controller.loop_health import ScheduledPass
from fanout.present.policy_counts import Labels, PolicyCounts, count_policy
from fanout.reconcile.pass_scope import PassSubject
from fanout.serve.metric_table import HOLDS, POLICIES, PROBLEMS, STAGES, VARIANTS, Metric

_METRICS = (POLICIES, STAGES, VARIANTS, HOLDS, PROBLEMS)  # as `PolicyCounts` has them


class StateCounts:
    """Counts by metric and labels. One thread updates them while others read."""

    def __init__(self) -> None:
        # Replaced and never changed, so that readers need no lock.
        self._counts: Mapping[PassSubject, PolicyCounts] = {}

    def update(self, made_pass: ScheduledPass) -> None:
        """Take over the policies of a pass; forget those that are not declared any more."""
        counted: dict[PassSubject, PolicyCounts] = {}
        for item in made_pass.report.pass_plan.policies:
            subject = PassSubject(item.resolved_policy.namespace, item.resolved_policy.name)
            counts = count_policy(item)
            # A policy and a variant that is written by hand may share a name.
            if subject in counted:
                counts = PolicyCounts(*map(add, counted[subject], counts))
            counted[subject] = counts
        merged = {**self._counts, **counted}
        self._counts = {it: merged[it] for it in merged if it in made_pass.declared}

    def read(self) -> Mapping[Metric, Mapping[Labels, float]]:
        """Return the sums of all policies."""
        totals: dict[Metric, Counter[Labels]] = {it: Counter() for it in _METRICS}
        for counts in self._counts.values():
            for metric, numbers in zip(_METRICS, counts, strict=True):
                totals[metric].update(numbers)
        return totals

"""Probes of checks that machines answer: objects, HTTP services, Prometheus servers.

All checks of a policy are probed together: expressions of one text in one batch, equal
probes once in a pass.
"""

from collections import ChainMap, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from fanout.gates.gate_facts import CheckReading
from fanout.pending_inputs import ExpressionRequest, complete
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.plan.evidence.check_readings import ProbeFailure, ProbeQuery, ProbeResponse, read_check
from fanout.plan.evidence.due_checks import find_due_checks
from fanout.plan.observed_variant import ObservedVariant
from fanout.ports import ProbeClient, Sandbox
from fanout.reconcile.selection.policy_resolution import PolicyKey, ResolvedPolicy
from fanout.selection.cluster_objects import ClusterObjectIndex

# After which a pass asks for answers that an earlier one did not wait for: no service has longer.
ANSWER_PAUSE = timedelta(seconds=10)
_STRIDE = 7919  # a prime, so that passes a minute apart begin far from each other
Readings = Mapping[str, tuple[CheckReading, ...]]


@dataclass(slots=True)
class CheckProber:
    """Prober of checks for one pass, given the observed cluster objects."""

    sandbox: Sandbox
    probes: ProbeClient
    objects: ClusterObjectIndex
    now: datetime
    readable_namespaces: frozenset[str] = frozenset()  # besides a policy's own
    # Policies with requests that go on without the pass.
    unanswered: set[PolicyKey] = field(default_factory=set)
    _responses: dict[ProbeQuery, ProbeResponse | ProbeFailure] = field(default_factory=dict)
    _late_messages: set[str] = field(default_factory=set)  # of requests that go on

    def read_checks(
        self,
        resolved_policy: ResolvedPolicy,
        variants: Sequence[ObservedVariant],
        budget: EvaluationBudget | None,
    ) -> Readings:
        """Return by variant the readings of checks about its published or released package.

        `budget`: what the expressions of the policy may cost.
        """
        if resolved_policy.upstream_policy is None:
            return {}
        due_checks = list(
            find_due_checks(
                resolved_policy.upstream_policy.spec.stages,
                variants,
                resolved_policy.expression_variables,
                self.now,
            )
        )
        values: dict[ExpressionRequest, Any] = {}
        responses = ChainMap[Any, Any](values, self._responses)

        def obtain(requests: Sequence[ExpressionRequest | ProbeQuery]) -> None:
            by_text: dict[str, list[ExpressionRequest]] = {}
            for request in requests:
                if isinstance(request, ExpressionRequest):
                    by_text.setdefault(request.text, []).append(request)
            names = self.sandbox.free_variables(list(by_text), [])[0] if by_text else []
            for (text, of_text), names_of_text in zip(by_text.items(), names, strict=True):
                # Compared by identity, as the requests are, but only by what the text reads: the
                # answer of one service to all variants may be large.
                alike: defaultdict[tuple[int, ...], list[ExpressionRequest]] = defaultdict(list)
                for request in of_text:
                    row = request.variables
                    alike[tuple(id(row.get(name)) for name in names_of_text)].append(request)
                rows = [it[0].variables for it in alike.values()]
                [column] = self.sandbox.evaluate([text], rows, budget)
                for group, value in zip(alike.values(), column, strict=True):
                    values.update(dict.fromkeys(group, value))
            probes = [it for it in requests if isinstance(it, ProbeQuery)]
            if probes:
                # Each pass starts at another offset: if time is too short for all, every check gets
                # its turn.
                offset = int(self.now.timestamp()) * _STRIDE % len(probes)
                probes = probes[offset:] + probes[:offset]
                answers = self.probes.ask(probes)
                self._responses.update(zip(probes, answers, strict=True))
                failures = (it for it in answers if isinstance(it, ProbeFailure))
                self._late_messages |= {it.message for it in failures if it.goes_on}

        check_readings = complete(
            [
                partial(read_check, due_check, self.objects, responses, self.readable_namespaces)
                for due_check in due_checks
            ],
            obtain,
        )
        if any(it.message in self._late_messages for it in check_readings):
            self.unanswered.add(resolved_policy.key)
        readings_by_variant: dict[str, list[CheckReading]] = {}
        for due_check, check_reading in zip(due_checks, check_readings, strict=True):
            readings_by_variant.setdefault(due_check.variant, []).append(check_reading)
        return {name: tuple(several) for name, several in readings_by_variant.items()}

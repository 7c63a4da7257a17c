"""Probes of checks that machines answer: objects, HTTP services, Prometheus servers.

All checks of a policy are probed together: expressions of one text in one batch, equal
probes once in a pass. What cannot be probed or read yields a pending reading (design
§6, "Checks").
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fanout.api.field_errors import InvalidValue
from fanout.api.stages import HttpCheck, ObjectCheck, PrometheusCheck
from fanout.api.urls import check_http_url
from fanout.gates.gate_facts import CheckReading
from fanout.gates.gate_rules import Variables
from fanout.plan.evidence.due_checks import (
    RESPONSE_VARIABLES,
    DueCheck,
    ProbeResult,
    build_reading,
    find_due_checks,
    pending_reading,
    unusable_response,
)
from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
from fanout.plan.observed_variant import ObservedVariant
from fanout.ports import ProbeClient, Sandbox
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.selection.cluster_objects import ClusterObjectIndex, group_of
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import frozen

_STRIDE = 7919  # a prime, so that passes a minute apart begin far from each other
Readings = Mapping[str, tuple[CheckReading, ...]]


@frozen
class CheckProbe:
    """Subject of a check for messages, and its probe, or the answer where none is needed."""

    subject: str
    probe_or_answer: ProbeResult | ProbeQuery


@dataclass(slots=True)
class CheckProber:
    """Prober of checks for one pass, given the observed cluster objects."""

    sandbox: Sandbox
    probes: ProbeClient
    objects: ClusterObjectIndex
    now: datetime
    answers: dict[ProbeQuery, ProbeResult] = field(default_factory=dict)

    def read_checks(
        self, resolved_policy: ResolvedPolicy, variants: Sequence[ObservedVariant]
    ) -> Readings:
        """Return by variant the readings of checks about its published or released package."""
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
        check_probes = self._build_probes(due_checks)
        self._send_probes(check_probes)
        check_answers = [self._find_answer(question) for question in check_probes]
        check_readings = self._read_answers(due_checks, check_probes, check_answers)
        readings_by_variant: dict[str, list[CheckReading]] = {}
        for due_check, check_reading in zip(due_checks, check_readings, strict=True):
            readings_by_variant.setdefault(due_check.variant, []).append(check_reading)
        return {name: tuple(several) for name, several in readings_by_variant.items()}

    def _send_probes(self, check_probes: Sequence[CheckProbe]) -> None:
        """Send the probes that were not sent in this pass.

        Each pass starts at another offset: if time is too short for all, every check gets its
        turn.
        """
        probes = [
            it.probe_or_answer for it in check_probes if isinstance(it.probe_or_answer, ProbeQuery)
        ]
        new_probes = [probe for probe in dict.fromkeys(probes) if probe not in self.answers]
        if new_probes:
            offset = int(self.now.timestamp()) * _STRIDE % len(new_probes)
            new_probes = new_probes[offset:] + new_probes[:offset]
            self.answers.update(zip(new_probes, self.probes.ask(new_probes), strict=True))

    def _find_answer(self, check_probe: CheckProbe) -> ProbeResult:
        probe_or_answer = check_probe.probe_or_answer
        return (
            self.answers[probe_or_answer]
            if isinstance(probe_or_answer, ProbeQuery)
            else probe_or_answer
        )

    def _build_probes(self, due_checks: Sequence[DueCheck]) -> list[CheckProbe]:
        """Build the probes, with the values of their expressions filled in."""
        expression_rows = [
            (text, due_check.variables)
            for due_check in due_checks
            for text in _list_probe_expressions(due_check)
        ]
        values = iter(self._evaluate(expression_rows))
        return [
            self._build_probe(
                due_check, {text: next(values) for text in _list_probe_expressions(due_check)}
            )
            for due_check in due_checks
        ]

    def _build_probe(self, due_check: DueCheck, values: Mapping[str, Any]) -> CheckProbe:
        check = due_check.check.machine_check
        for text, value in values.items():
            if not isinstance(value, str) or not value:
                reason = (
                    value.problem if isinstance(value, ExpressionFailure) else "it yields no text"
                )
                return CheckProbe(due_check.check.method.value, ProbeFailure(f"{text}: {reason}"))
        match check:
            case ObjectCheck():
                name = check.name or values[check.name_expr or ""]
                return self._find_object(check, name, due_check.namespace)
            case PrometheusCheck():
                address = check.address or values[check.address_expr or ""]
                query = check.query or values[check.query_expr or ""]
                secret = check.secret_ref.name if check.secret_ref else ""
                return _validate_probe(
                    f"the query to {address}", ProbeQuery(url=address, query=query, secret=secret)
                )
            case HttpCheck():
                url = check.url or values[check.url_expr or ""]
                return _validate_probe(url.partition("?")[0], _build_http_probe(check, url))
            case None:
                problem = (
                    f"the forge of Repository {due_check.repository} is none, so nobody can be"
                    " asked for"
                    " the status of a commit; let the pipeline report"
                )
                return CheckProbe("", ProbeFailure(problem))

    def _find_object(self, check: ObjectCheck, name: str, namespace: str) -> CheckProbe:
        """Find the object in the check's namespace, the policy's, or cluster-scoped."""
        group = group_of(check.api_version)
        namespaces = (check.namespace,) if check.namespace else (namespace, "")
        for candidate_namespace in namespaces:
            observed_object = self.objects.get(group, check.kind, candidate_namespace, name)
            if observed_object is not None:
                object_name = f"{candidate_namespace}/{name}" if candidate_namespace else name
                return CheckProbe(f"{check.kind} {object_name}", ProbeResponse(observed_object))
        missing_message = f"there is no {check.kind} {namespaces[0]}/{name}"
        return CheckProbe(f"{check.kind} {namespaces[0]}/{name}", ProbeFailure(missing_message))

    def _read_answers(
        self,
        due_checks: Sequence[DueCheck],
        check_probes: Sequence[CheckProbe],
        check_answers: Sequence[ProbeResult],
    ) -> list[CheckReading]:
        """Evaluate the answers with the checks' own expressions; one reading per check."""
        reading_by_index: dict[int, CheckReading] = {}
        expression_rows: list[tuple[str, Variables]] = []
        for index, (due_check, answer) in enumerate(zip(due_checks, check_answers, strict=True)):
            pending_reason = (
                answer.sentence
                if isinstance(answer, ProbeFailure)
                else unusable_response(due_check, answer)
            )
            if pending_reason or isinstance(answer, ProbeFailure):
                reading_by_index[index] = pending_reading(due_check, pending_reason)
            else:
                row = {
                    **due_check.variables,
                    RESPONSE_VARIABLES[due_check.check.method]: answer.value,
                }
                expression_rows += [(text, row) for text in _list_answer_expressions(due_check)]
        values = iter(self._evaluate(expression_rows))
        for index, (due_check, answer) in enumerate(zip(due_checks, check_answers, strict=True)):
            if index not in reading_by_index:
                assert isinstance(answer, ProbeResponse), "all others are pending"
                cel_value, *observed_revision = [
                    next(values) for _ in _list_answer_expressions(due_check)
                ]
                subject = check_probes[index].subject
                reading_by_index[index] = build_reading(
                    due_check,
                    subject,
                    answer,
                    cel_value,
                    observed_revision[0] if observed_revision else None,
                )
        return [reading_by_index[index] for index in range(len(due_checks))]

    def _evaluate(self, expression_rows: Sequence[tuple[str, Variables]]) -> list[Any]:
        """Return the value of each expression over its row, evaluated in one batch per text.

        Rows that are identical in the variables of the expression are evaluated once: the
        answer of one service to all variants may be large.
        """
        texts = list(dict.fromkeys(text for text, _ in expression_rows))
        names_by_text = (
            dict(zip(texts, self.sandbox.free_variables(texts, [])[0], strict=True))
            if texts
            else {}
        )
        indexes_by_text: dict[str, dict[tuple[int, ...], list[int]]] = {text: {} for text in texts}
        for index, (text, row) in enumerate(expression_rows):
            # Compared by identity: comparing large answers by value costs more than evaluating
            # twice. All rows stay referenced by `wanted`, so no id is reused here.
            read_values = tuple(id(row.get(name)) for name in sorted(names_by_text[text]))
            indexes_by_text[text].setdefault(read_values, []).append(index)
        values: list[Any] = [None] * len(expression_rows)
        for text, indexes_by_row in indexes_by_text.items():
            rows = [expression_rows[indexes[0]][1] for indexes in indexes_by_row.values()]
            [column] = self.sandbox.evaluate([text], rows)
            for indexes, value in zip(indexes_by_row.values(), column, strict=True):
                for index in indexes:
                    values[index] = value
        return values


def _list_probe_expressions(due_check: DueCheck) -> list[str]:
    """Return the expressions that yield the address or object of a check."""
    match due_check.check.machine_check:
        case ObjectCheck() as check:
            texts = [check.name_expr]
        case PrometheusCheck() as check:
            texts = [check.address_expr, check.query_expr]
        case HttpCheck() as check:
            texts = [check.url_expr]
        case None:
            texts = []
    return list(dict.fromkeys(filter(None, texts)))


def _list_answer_expressions(due_check: DueCheck) -> list[str]:
    """Return the expressions over the answer: `cel`, and `observedRevision` if it is set."""
    check = due_check.check.machine_check
    assert check is not None, "who has answered was asked"
    return [check.cel, *([check.observed_revision] if check.observed_revision else [])]


def _build_http_probe(check: HttpCheck, url: str) -> ProbeQuery:
    return ProbeQuery(
        url=url,
        method=check.method.value,
        headers=tuple(sorted(check.headers.items())),
        body="" if check.body is None else json.dumps(check.body, sort_keys=True),
        secret=check.secret_ref.name if check.secret_ref else "",
    )


def _validate_probe(subject: str, probe: ProbeQuery) -> CheckProbe:
    """Apply the rules for declared addresses to an address that an expression yields."""
    try:
        check_http_url(probe.url)
    except InvalidValue as error:
        return CheckProbe(subject, ProbeFailure(f"{error.problem}; {error.remedy}"))
    return CheckProbe(subject, probe)

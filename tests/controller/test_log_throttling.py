"""What the loop logs of many policies at once."""

from datetime import UTC, datetime

import structlog

from fanout.controller.log_throttling import LoopLog
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.errors import ErrorLocation, Unavailable
from fanout.plan.records.policy_records import PolicyRecords
from fanout.reconcile.pass_results import PassPlan, PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassMode, PassSubject
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy


def report(number: int, problem: str = "") -> PassReport:
    """A pass over so many policies, which one problem stops."""
    error = Unavailable(problem, reason="RemoteUnavailable") if problem else None
    policies = tuple(
        PolicyResult(
            resolved_policy=ResolvedPolicy(
                namespace="default",
                name=f"p{it}",
                upstream_policy=None,
                package_variant=None,
                upstream=None,
            ),
            policy_state=PolicyRecords(),
            error=error,
        )
        for it in range(number)
    )
    return PassReport(PassPlan(now=datetime(2026, 3, 2, tzinfo=UTC), policies=policies))


def logged(journal: LoopLog, log_report: PassReport) -> list[tuple[str, str, str]]:
    with structlog.testing.capture_logs() as log:
        journal.log_report(log_report, PassMode(), [])
    return [
        (it["log_level"], it["policy"], it["problem"]) for it in log if it["event"] != "Pass done"
    ]


def test_an_error_of_many_policies_is_a_single_line_logged_once():
    journal, problem = LoopLog(), "host: no answer"
    named = "default/p0, default/p1, default/p10 and 9997 more"
    assert logged(journal, report(10_000, problem)) == [("warning", named, problem)]
    assert logged(journal, report(10_000, problem)) == []
    assert logged(journal, report(10_000)) == [("info", named, problem)]


def test_errors_of_policies_that_are_gone_are_forgotten():
    journal, problem = LoopLog(), "host: no answer"
    journal.log_internal_problems("log", [problem])
    assert len(logged(journal, report(2, problem))) == 2
    journal.retain([PassSubject("default", "p1"), PassSubject("other", "p0")])
    assert logged(journal, report(2, problem)) == [("warning", "default/p0", problem)]
    journal.retain([])
    assert sorted(journal._reported) == ["log", "undeclared"]


def test_an_error_of_few_policies_is_a_line_each():
    assert len(logged(LoopLog(), report(10, "host: no answer"))) == 10


def test_equal_errors_of_files_are_one_line():
    findings = (
        Finding(ErrorLocation(f"Cluster/c{it}", "spec.x", "a.yaml", it), "is no text", "quote it")
        for it in range(1, 100_001)
    )
    with structlog.testing.capture_logs() as log:
        LoopLog().log_declared_errors(DeclaredObjects(faults=tuple(findings)))
    assert len(log) == 1
    assert "and 99,999 more" in log[0]["problem"]

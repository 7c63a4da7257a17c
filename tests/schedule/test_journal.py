"""What the loop logs of many policies at once."""

from datetime import UTC, datetime

import structlog

from fanout.cluster.declared import Declared
from fanout.cluster.findings import Finding
from fanout.errors import Unavailable, Where
from fanout.plan.book import Book
from fanout.reconcile.names import Named
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import Observed, PolicyPass, Report
from fanout.schedule.journal import Journal


def report(number: int, problem: str = "") -> Report:
    """A pass over so many policies, which one problem stops."""
    error = Unavailable(problem, reason="RemoteUnavailable") if problem else None
    policies = tuple(
        PolicyPass(Named("default", f"p{it}", None, None, None), Book(), problem=error)
        for it in range(number)
    )
    return Report(Observed(datetime(2026, 3, 2, tzinfo=UTC), policies))


def logged(journal: Journal, told: Report) -> list[tuple[str, str, str]]:
    with structlog.testing.capture_logs() as log:
        journal.report(told, Mode(), [])
    return [
        (it["log_level"], it["policy"], it["problem"]) for it in log if it["event"] != "Pass done"
    ]


def test_what_stops_many_policies_is_one_line_and_told_once():
    journal, gone = Journal(), "host: no answer"
    named = "default/p0, default/p1, default/p10 and 9997 more"
    assert logged(journal, report(10_000, gone)) == [("warning", named, gone)]
    assert logged(journal, report(10_000, gone)) == []
    assert logged(journal, report(10_000)) == [("info", named, gone)]


def test_what_stops_a_few_is_a_line_each():
    assert len(logged(Journal(), report(10, "host: no answer"))) == 10


def test_equal_errors_of_files_are_one_line():
    found = (
        Finding(Where(f"Cluster/c{it}", "spec.x", "a.yaml", it), "is no text", "quote it")
        for it in range(1, 100_001)
    )
    with structlog.testing.capture_logs() as log:
        Journal().files(Declared(faults=tuple(found)))
    assert len(log) == 1
    assert "and 99,999 more" in log[0]["problem"]

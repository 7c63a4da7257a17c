"""Equal problems of a pass share one line, which names the first few."""

from datetime import UTC, datetime, timedelta

import pytest

from fanout.errors import RateLimited, Unavailable
from fanout.plan.actions import ActionKind, PlanAction, undone_result
from fanout.reconcile.pass_results import PassPlan, PassProblem, PassReport
from fanout.reconcile.problem_aggregation import (
    count_failures,
    format_deferred_outcomes,
    format_lines,
    group_problems,
)


def problem(policy="platform/monitoring", subject="", message="it failed", **fields):
    return PassProblem(
        policy=policy,
        subject=subject,
        reason=fields.pop("reason", "Unavailable"),
        message=message,
        **fields,
    )


def lines(*problems):
    return [line for _, line in format_lines(group_problems(problems))]


TABLE = [
    ("a policy as a whole", [problem()], ["platform/monitoring: it failed"]),
    ("one variant", [problem(subject="ams")], ["platform/monitoring: ams: it failed"]),
    (
        "equal but for their own name",
        [
            problem(subject="ams", message="ams is down"),
            problem(subject="ber", message="ber is down"),
        ],
        ["platform/monitoring: 2 variants (ams, ber): ams is down"],
    ),
    (
        "two repositories",
        [problem(subject="edge", noun="repository"), problem(subject="west", noun="repository")],
        ["platform/monitoring: 2 repositories (edge, west): it failed"],
    ),
    (
        "other sentences",
        [problem(subject="ams"), problem(subject="ber", message="it is late")],
        ["platform/monitoring: ams: it failed", "platform/monitoring: ber: it is late"],
    ),
    (
        "other reasons",
        [problem(subject="ams"), problem(subject="ber", reason="Denied")],
        ["platform/monitoring: ams: it failed", "platform/monitoring: ber: it failed"],
    ),
    (
        "a failure and a hold",
        [problem(subject="ams"), problem(subject="ber", failed=False)],
        ["platform/monitoring: ams: it failed", "platform/monitoring: ber: it failed"],
    ),
    (
        "no more than ten policies for each reason",
        [problem(policy=f"ns/p{it}", reason=("Denied", "Unavailable")[it % 2]) for it in range(12)],
        [f"ns/p{it}: it failed" for it in (*range(0, 12, 2), *range(1, 12, 2))],
    ),
    (
        "ten policies have a line each",
        [problem(policy=f"ns/p{number}") for number in range(10)],
        [f"ns/p{number}: it failed" for number in range(10)],
    ),
]


@pytest.mark.parametrize(
    ("problems", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_equal_problems_share_a_line(problems, expected):
    assert lines(*problems) == expected


def test_many_policies_with_equal_problems_share_one_line():
    [line] = lines(*(problem(policy=f"ns/p{number}") for number in range(11)))
    assert line.startswith("ns/p0, ")
    assert line.endswith("; the first: it failed")


COUNTS = [
    ("none", [], ""),
    ("a hold is no failure", [problem(failed=False, noun="policy")], ""),
    ("policies", [problem(noun="policy"), problem(noun="policy")], "2 policies"),
    (
        "by kind",
        [problem(noun="variant"), problem(noun="target"), problem(noun="policy")],
        "1 policy, 1 target, 1 variant",
    ),
]


@pytest.mark.parametrize(
    ("problems", "expected"), [row[1:] for row in COUNTS], ids=[row[0] for row in COUNTS]
)
def test_failures_are_counted_by_kind(problems, expected):
    assert count_failures(problems) == expected


NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
OPENING = PlanAction(kind=ActionKind.OPEN_REQUEST, namespace="platform", policy="monitoring")


def limited(problem: str, minutes: int) -> RateLimited:
    return RateLimited(problem, until=NOON + timedelta(minutes=minutes))


def test_actions_that_wait_for_a_limit_are_no_failures_and_share_a_line():
    errors = [
        limited("the limit of a.example.com is reached", 7),
        limited("the limit of a.example.com is reached", 5),
        limited("b.example.com takes no more calls (429)", 1),
        Unavailable("c.example.com does not answer", reason="ForgeUnavailable"),
    ]
    outcomes = tuple(undone_result(OPENING, error) for error in errors)
    report = PassReport(PassPlan(now=NOON, policies=()), outcomes)
    assert report.fix_count == 1
    assert [it.problem for it in report.failed_outcomes] == ["c.example.com does not answer"]
    assert list(format_deferred_outcomes(report.deferred_outcomes)) == [
        "2 actions wait until 2026-03-02T12:05:00Z: the limit of a.example.com is reached",
        "1 action waits until 2026-03-02T12:01:00Z: b.example.com takes no more calls (429)",
    ]

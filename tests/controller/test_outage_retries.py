"""Which policies are tried again after an outage, and when."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fleet import Fleet

from fanout.controller.outage_retries import OutageRetries
from fanout.controller.run_loop import compute_pause
from fanout.errors import Conflict, Denied, FanoutError, InvalidInput, RateLimited, Unavailable
from fanout.plan.actions import ActionKind, PlanAction, undone_result
from fanout.plan.observation.forge_state import ForgeState
from fanout.plan.observation.repository_state import Remote, RepositoryState
from fanout.plan.records.policy_records import PolicyRecords
from fanout.reconcile.pass_results import PassPlan, PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassMode, PassSubject
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import replace

NOW = datetime(2026, 3, 2, tzinfo=UTC)
DOWN = Unavailable("the host is down")
REFUSED = Denied("the credential has expired")
LIMITED = RateLimited("100 calls an hour", until=NOW + timedelta(hours=1))
MONITORING = PassSubject("default", "monitoring")
REMOTE = Remote("https://git.example.com/edge.git")


# ---- a fleet -------------------------------------------------------------------------------------


def put_away(path: Path) -> None:
    path.rename(path.with_name("away.git"))


def lose_upstream(fleet: Fleet) -> None:
    put_away(fleet.repos["blueprints"].path)


def lose_downstream(fleet: Fleet) -> None:
    put_away(fleet.repos["core"].path)


def refuse_pushes(fleet: Fleet) -> None:
    fleet.release("v2")
    fleet.repos["edge"].hook("pre-receive", "#!/bin/sh\nexit 1\n")


OUTAGES = (lose_upstream, lose_downstream, refuse_pushes)


@pytest.mark.parametrize("begin_outage", OUTAGES)
def test_what_stops_a_policy_of_a_fleet_is_tried_again(
    tmp_path: Path, begin_outage: Callable[[Fleet], None]
):
    fleet = Fleet.build(tmp_path)
    fleet.settle()
    retries = OutageRetries(compute_pause)
    with fleet.opened() as program:
        assert retries.plan(program.sweep(PassMode()), NOW) == {}
        begin_outage(fleet)
        [(subject, retry_at)] = retries.plan(program.sweep(PassMode()), NOW).items()
    assert subject == MONITORING
    assert NOW < retry_at <= NOW + timedelta(seconds=2)


# ---- single results ------------------------------------------------------------------------------


def result(name: str = "monitoring", **fields: Any) -> PolicyResult:
    """The result of a policy."""
    named = ResolvedPolicy(
        namespace="default",
        name=name,
        upstream_policy=None,
        package_variant=None,
        upstream=None,
    )
    return PolicyResult(resolved_policy=named, policy_state=PolicyRecords(), **fields)


def state(**fields: Any) -> RepositoryState:
    return RepositoryState(remote=REMOTE, branch="refs/heads/main", refs={}, **fields)


def forge(error: FanoutError) -> ForgeState:
    return ForgeState(host="git.example.com", failure=error)


def report(*results: PolicyResult, outcomes: tuple[Any, ...] = ()) -> PassReport:
    return PassReport(PassPlan(now=NOW, policies=results), outcomes)


def is_tried_again(made: PassReport) -> bool:
    planned = OutageRetries(compute_pause).plan(made, NOW)
    assert planned.keys() <= {MONITORING}
    return bool(planned)


ERRORS = [
    ("a host that does not answer", DOWN, True),
    ("a host that refuses", REFUSED, True),
    ("a host that takes no more calls", LIMITED, False),
]
PLACES: list[tuple[str, Callable[[FanoutError], PolicyResult]]] = [
    ("upstream", lambda error: result(upstream_failure=error)),
    ("a repository", lambda error: result(repository_states=(state(failure=error),))),
    ("a forge", lambda error: result(repository_states=(state(forge=forge(error)),))),
]


@pytest.mark.parametrize(("_", "error", "expected"), ERRORS, ids=[it[0] for it in ERRORS])
@pytest.mark.parametrize(("__", "make"), PLACES, ids=[it[0] for it in PLACES])
def test_a_failure_outside_is_tried_again_unless_the_host_says_when(_, __, make, error, expected):
    assert is_tried_again(report(make(error))) is expected


@pytest.mark.parametrize(
    ("error", "expected"), [(DOWN, True), (REFUSED, True), (InvalidInput("wrong"), False)], ids=str
)
def test_an_error_of_the_policy_itself_waits_for_its_correction(error, expected):
    assert is_tried_again(report(result(error=error))) is expected


@pytest.mark.parametrize(
    ("error", "expected"), [(DOWN, True), (Conflict("it moved", reason="RemoteMoved"), False)]
)
def test_an_action_that_failed_is_tried_again_and_a_lost_race_at_once(error, expected):
    action = PlanAction(kind=ActionKind.WRITE_DRAFT, namespace="default", policy="monitoring")
    assert is_tried_again(report(result(), outcomes=(undone_result(action, error),))) is expected


def test_an_action_of_a_variant_written_by_hand_is_tried_again():
    action = PlanAction(kind=ActionKind.WRITE_DRAFT, namespace="default", policy="", variant="oslo")
    made = report(result("oslo"), outcomes=(undone_result(action, DOWN),))
    assert [*OutageRetries(compute_pause).plan(made, NOW)] == [PassSubject("default", "oslo")]


def test_records_that_cannot_be_read_stop_all_policies():
    made = report(result("a"), result("b"))
    made = replace(made, pass_plan=replace(made.pass_plan, has_outdated_records=True))
    planned = OutageRetries(compute_pause).plan(made, NOW)
    assert planned.keys() == {PassSubject("default", "a"), PassSubject("default", "b")}


# ---- instants ------------------------------------------------------------------------------------


def test_policies_that_one_outage_stops_are_tried_again_together():
    retries, names = OutageRetries(compute_pause), [f"policy-{number}" for number in range(50)]
    now = NOW
    for _ in range(6):
        planned = retries.plan(report(*(result(it, error=DOWN) for it in names)), now)
        assert len(planned) == len(names)
        [now] = set(planned.values())


def test_a_retry_lies_in_the_future_by_a_whole_second():
    """The clock has whole seconds; one that is due already would be repeated without a pause."""
    for _ in range(20):
        planned = OutageRetries(lambda _: 0.1).plan(report(result(error=DOWN)), NOW)
        assert planned == {MONITORING: NOW + timedelta(seconds=1)}


def test_a_pass_over_others_changes_no_instant():
    retries = OutageRetries(compute_pause)
    planned = retries.plan(report(result(error=DOWN)), NOW)
    later = NOW + timedelta(seconds=1)
    assert retries.plan(report(result("other")), later) == {}
    assert retries.plan(report(result(error=DOWN)), NOW + timedelta(microseconds=1)) == planned

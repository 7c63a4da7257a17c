"""Which policies are tried again after an outage, and when."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fleet import Fleet

from fanout.controller.run_loop import FIRST_PAUSE, MAX_PAUSE, compute_pause
from fanout.controller.work_queue import OutageRetries, Trigger, TriggerKey, WorkQueue, find_stopped
from fanout.errors import Conflict, Denied, FanoutError, InvalidInput, RateLimited, Unavailable
from fanout.plan.actions import ActionKind, PlanAction, undone_result
from fanout.plan.observation.observed_request import ForgeState
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
def test_a_policy_stopped_by_an_outage_is_retried(
    tmp_path: Path, begin_outage: Callable[[Fleet], None]
):
    fleet = Fleet.build(tmp_path)
    fleet.settle()
    with fleet.opened() as program:
        assert plan_retries(program.sweep(PassMode())) == {}
        begin_outage(fleet)
        [(subject, delay)] = plan_retries(program.sweep(PassMode())).items()
    assert subject == MONITORING
    assert 0 < delay <= 2


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
    stopped = set(find_stopped(made))
    assert stopped <= {MONITORING}
    return bool(stopped)


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
    assert set(find_stopped(made)) == {PassSubject("default", "oslo")}


def test_records_that_cannot_be_read_stop_all_policies():
    made = report(result("a"), result("b"))
    made = replace(made, pass_plan=replace(made.pass_plan, has_outdated_records=True))
    assert set(find_stopped(made)) == {PassSubject("default", "a"), PassSubject("default", "b")}


# ---- due times -----------------------------------------------------------------------------------


class Retries:
    """Retries of a queue whose clock stands still until it is set."""

    def __init__(self, pause: Callable[[int], float] = compute_pause) -> None:
        self.now = 0.0
        self.queue: WorkQueue[TriggerKey] = WorkQueue(lambda: self.now)
        self.retries = OutageRetries(self.queue, pause)
        self.declared: set[PassSubject] = set()

    def update(
        self, made: PassReport, gone: Collection[PassSubject] = ()
    ) -> dict[PassSubject, float]:
        """Take in a pass; return the seconds until each retry is due. `gone`: not declared."""
        evaluated = {it.resolved_policy.subject for it in made.pass_plan.policies}
        self.declared |= {PassSubject(*it) for it in evaluated}
        self.declared -= set(gone)
        self.retries.update(made, self.declared)
        due = self.queue._waiting.items()
        assert all(key.trigger is Trigger.RETRY for key, _ in due)
        return {PassSubject(key.namespace, key.name): at - self.now for key, at in due}

    def wait(self, seconds: float) -> None:
        """Wait, and let a round serve what is due then."""
        self.now += seconds + 1e-6  # differences of times are rounded
        self.queue.done(self.queue.take_due())


def plan_retries(made: PassReport) -> dict[PassSubject, float]:
    return Retries().update(made)


def test_policies_that_one_outage_stops_are_tried_again_together():
    retries, names = Retries(), [f"policy-{number}" for number in range(50)]
    for _ in range(6):
        planned = retries.update(report(*(result(it, error=DOWN) for it in names)))
        assert len(planned) == len(names)
        [delay] = set(planned.values())
        retries.wait(delay)


def test_a_retry_lies_in_the_future():
    """One that is due already would be repeated without a pause."""
    for _ in range(20):
        [delay] = Retries(lambda _: 0.1).update(report(result(error=DOWN))).values()
        assert 0.05 <= delay <= 0.1


def test_a_pass_over_others_changes_no_due_time():
    retries = Retries()
    [delay] = retries.update(report(result(error=DOWN))).values()
    retries.wait(delay / 2)
    assert retries.update(report(result("other"))) == {
        MONITORING: pytest.approx(delay / 2, abs=1e-5)
    }
    assert retries.update(report(result(error=DOWN))) == {
        MONITORING: pytest.approx(delay / 2, abs=1e-5)
    }


def test_a_policy_that_is_not_stopped_any_more_is_not_tried_again():
    retries = Retries()
    assert retries.update(report(result(error=DOWN)))
    assert retries.update(report(result())) == {}


def test_a_policy_that_is_gone_is_forgotten_with_its_retries():
    retries, stopped = Retries(lambda number: 10.0 * 2**number), report(result(error=DOWN))
    for _ in range(5):
        [delay] = retries.update(stopped).values()
        retries.wait(delay)
    assert delay >= 80
    assert retries.update(report(), gone=[MONITORING]) == {}
    [delay] = retries.update(stopped).values()
    assert delay <= 10, "another policy of the name has no outages behind it"


def test_retries_get_rarer_and_passes_for_another_reason_make_them_no_rarer():
    retries, stopped = Retries(), report(result(error=DOWN))
    pauses = []
    for _ in range(20):
        [delay] = retries.update(stopped).values()
        retries.wait(delay / 2)
        assert retries.update(stopped) == {MONITORING: pytest.approx(delay / 2, abs=1e-5)}
        [rest] = retries.update(stopped).values()
        retries.wait(rest)
        pauses.append(delay)
    assert all(0 < it <= MAX_PAUSE for it in pauses)
    assert all(it >= MAX_PAUSE / 2 for it in pauses[-3:])
    assert max(pauses[:3]) < MAX_PAUSE / 2
    assert retries.update(stopped)
    assert retries.update(report(result())) == {}
    [delay] = retries.update(stopped).values()
    assert delay <= 2 * FIRST_PAUSE

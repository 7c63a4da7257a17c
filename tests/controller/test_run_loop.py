"""The loop with real threads and alarms; passes and the clock's cron are played."""

import contextlib
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import monotonic, sleep

import pytest
from structlog.testing import capture_logs

from fanout.api.git_repository import Repository, RepositorySpec
from fanout.api.object_meta import ObjectMeta
from fanout.controller import run_loop as module
from fanout.controller.declaration_reader import SettlingTime
from fanout.controller.loop_health import STALL_LIMIT
from fanout.controller.run_loop import (
    FIRST_PAUSE,
    MAX_FOLLOW_UPS,
    MAX_LOST_RACES,
    MAX_PAUSE,
    LoopDependencies,
    RunLoop,
    compute_pause,
)
from fanout.errors import Conflict, InvalidInput, RateLimited, Unavailable
from fanout.gates.gate_facts import PolicyEvaluation
from fanout.plan.actions import ActionKind, ActionResult, Plan, PlanAction, undone_result
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.records.logged_sweep import LoggedSweep
from fanout.plan.records.policy_records import PolicyRecords
from fanout.plan.records.policy_status import RecordedStatus
from fanout.reconcile.pass_results import PassPlan, PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassMode, PassSubject
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import replace

HOUR = timedelta(hours=1)
RECENT = HOUR.total_seconds()  # age of listings that will do until the next poll
A, B = PassSubject("platform", "a"), PassSubject("platform", "b")
PATIENCE = 20  # seconds, for a slow machine
BLUEPRINTS = Repository(
    metadata=ObjectMeta(name="blueprints", namespace="platform"),
    spec=RepositorySpec(url="https://git.example.com/platform/blueprints.git"),
)
STEP = PlanAction(kind=ActionKind.WRITE_DRAFT, namespace="platform", policy="a")


@dataclass
class Log:
    """The log of sweeps, in memory."""

    lines: dict = field(default_factory=dict)
    broken: bool = False

    def read(self):
        return dict(self.lines)

    def write(self, changes, at):
        if self.broken:
            raise Unavailable("the disk is full")
        for name, swept in changes.items():
            self.lines[name] = swept


class Play:
    """A loop on its own thread, and what it did."""

    def __init__(
        self,
        files,
        log=None,
        answer=None,
        interval=HOUR,
        observers=(),
        settling=None,
        clock=monotonic,
        wall_clock=lambda: datetime.now(UTC),
    ):
        self.files, self.log = files, log or Log()
        self.modes = []
        self.answer = answer or (lambda number, now: report(now))
        self.declared = files.read()
        self.concerned = None  # by a change of the files; None: all policies
        plant = LoopDependencies(
            self,
            lambda declared: self.concerned,
            self._pass,
            self.log,
            wall_clock,
            observers,
            monotonic_clock=clock,
        )
        self.loop = RunLoop(plant, interval, settling=settling)
        self.thread = threading.Thread(target=self.loop.run)

    def read(self):
        return self.declared

    def _pass(self, declared, now, mode):
        self.modes.append(mode)
        return self.answer(len(self.modes), now)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.loop.stop()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()

    def until(self, condition):
        deadline = monotonic() + PATIENCE
        while not condition():
            assert monotonic() < deadline, self.modes
            assert self.thread.is_alive()
            sleep(0.005)


def report(now, *, step=False, wake=None, retry_at=None):
    """A pass over policy a: did it take a step, and when can its gates open by themselves?

    `retry_at`: when its expressions are evaluated again.
    """
    named = ResolvedPolicy(
        namespace="platform",
        name="a",
        upstream_policy=None,
        package_variant=None,
        upstream=BLUEPRINTS,
    )
    policy = PolicyResult(
        resolved_policy=named,
        policy_state=PolicyRecords(),
        decision=PolicyEvaluation({}, {}, {}, next=wake),
        retry_at=retry_at,
    )
    plan = PolicyPlan(
        namespace="platform",
        name="a",
        steps=(),
        actions=(STEP,) if step else (),
        recorded=RecordedStatus(),
        planned=RecordedStatus(),
    )
    observed = PassPlan(
        now=now, policies=(policy,), plans=(plan,), plan=Plan(plan.actions), changes=()
    )
    return PassReport(
        observed, tuple(ActionResult(action, is_done=True) for action in plan.actions)
    )


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "FILE_CHECK_INTERVAL", 0.01)
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)


def test_every_pass_publishes_without_a_schedule(files):
    files.policy("a")
    with Play(files, interval=timedelta(milliseconds=50)) as play:
        play.until(lambda: len(play.modes) >= 3)
    assert set(play.modes) == {PassMode(sweep=True)}
    assert play.log.lines == {}


@pytest.mark.parametrize("years", [-5, 5])
def test_a_system_clock_that_is_set_stops_no_poll(files, years):
    files.policy("a")
    passes = []

    def answer(number, now):
        passes.append(now)
        return report(now, wake=now + HOUR)

    def read_clock():
        return datetime.now(UTC) + timedelta(days=365 * years * bool(passes))

    interval = timedelta(milliseconds=50)
    with Play(files, answer=answer, interval=interval, wall_clock=read_clock) as play:
        play.until(lambda: len(passes) >= 4)
    assert abs(passes[-1] - passes[0]) > timedelta(days=1000)


def test_a_policy_with_a_schedule_is_published_by_it_alone_the_others_always(files):
    files.policy("a").policy("b").promotion("timed", 'policies: [a], schedule: "0 0 29 2 *"')
    with Play(files) as play:
        play.until(lambda: play.modes)
    assert play.modes == [PassMode(unswept_subjects=frozenset([A]))], (
        "one pass, a sweep for b alone"
    )


def test_a_new_schedule_has_missed_nothing_and_is_on_record_from_now_on(files):
    files.policy("a").promotion("timed", 'policies: [a], schedule: "@hourly"')
    before = datetime.now(UTC)
    with Play(files) as play:
        play.until(lambda: play.modes)
    assert play.modes == [PassMode(sweep=False)]
    (swept,) = play.log.lines.values()
    assert before <= swept.at <= datetime.now(UTC)


def test_a_missed_sweep_is_made_up_once(files):
    files.policy("a").promotion("timed", 'policies: [a], schedule: "0 0 1 1 *"')
    log = Log({"platform/timed": LoggedSweep(datetime(2020, 6, 1, tzinfo=UTC), "0 0 1 1 *", "UTC")})
    with Play(files, log, interval=timedelta(milliseconds=50)) as play:
        play.until(lambda: len(play.modes) >= 4)
    assert [mode.sweep for mode in play.modes[:4]] == [True, False, False, False]
    year = datetime.now(UTC).year
    assert log.lines["platform/timed"].at == datetime(year, 1, 1, tzinfo=UTC)


def test_the_log_names_the_schedule_as_a_trigger_of_each_sweep(files):
    """Also where it comes due while the keys of the round are of something else."""
    files.policy("a").promotion("timed", 'policies: [a], schedule: "0 0 1 1 *"')
    log = Log({"platform/timed": LoggedSweep(datetime(2020, 6, 1, tzinfo=UTC), "0 0 1 1 *", "UTC")})
    with capture_logs() as lines, Play(files, log, interval=timedelta(milliseconds=50)) as play:
        play.until(lambda: len(play.modes) >= 3)
    passes = [it for it in lines if it["event"] == "Pass done"]
    assert [it["sweep"] for it in passes][:2] == [True, False]
    assert ["schedule" in it["trigger"] for it in passes] == [it["sweep"] for it in passes]


def test_a_missed_sweep_that_is_too_late_is_not_made_up(files):
    spec = 'policies: [a], schedule: "0 0 1 1 *", startingDeadlineSeconds: 1'
    files.policy("a").promotion("timed", spec)
    log = Log({"platform/timed": LoggedSweep(datetime(2020, 6, 1, tzinfo=UTC), "0 0 1 1 *", "UTC")})
    with Play(files, log, interval=timedelta(milliseconds=50)) as play:
        play.until(lambda: len(play.modes) >= 3)
    assert {mode.sweep for mode in play.modes} == {False}


def test_a_sweep_that_failed_is_still_due(files):
    files.policy("a").promotion("timed", 'policies: [a], schedule: "0 0 1 1 *"')
    log = Log({"platform/timed": LoggedSweep(datetime(2020, 6, 1, tzinfo=UTC), "0 0 1 1 *", "UTC")})

    def answer(number, now):
        if number == 1:
            raise Unavailable("no route")
        return report(now)

    with Play(files, log, answer) as play:
        play.until(lambda: len(play.modes) == 2)
        play.until(lambda: log.lines["platform/timed"].at.year > 2020)
    assert [mode.sweep for mode in play.modes] == [True, True]


def test_a_sweep_that_cannot_be_recorded_is_not_repeated(files):
    files.policy("a").promotion("timed", 'policies: [a], schedule: "0 0 1 1 *"')
    old = LoggedSweep(datetime(2020, 6, 1, tzinfo=UTC), "0 0 1 1 *", "UTC")
    log = Log({"platform/timed": old}, broken=True)
    with Play(files, log, interval=timedelta(milliseconds=50)) as play:
        play.until(lambda: len(play.modes) >= 3)
    assert [mode.sweep for mode in play.modes[:3]] == [True, False, False]


def test_the_alarm_wakes_it_at_the_scheduled_instant(files, monkeypatch):
    """Cron has no seconds, so its arithmetic is played: once, a moment from now."""
    instant = datetime.now(UTC) + timedelta(milliseconds=500)
    monkeypatch.setattr(
        "fanout.controller.sweep_schedule.last_fire",
        lambda schedule, zone, now: instant if now >= instant else None,
    )
    monkeypatch.setattr(
        "fanout.controller.sweep_schedule.next_fire",
        lambda schedule, zone, now: instant if now < instant else now + HOUR,
    )
    files.policy("a").policy("b").promotion("timed", 'policies: [a], schedule: "* * * * *"')
    with Play(files) as play:
        play.until(lambda: len(play.modes) == 2)
    assert datetime.now(UTC) >= instant
    assert play.modes[1] == PassMode(sweep=True, subjects=frozenset([A]))
    assert play.log.lines["platform/timed"].at == instant


@pytest.mark.parametrize("field", ["wake", "retry_at"], ids=["a gate", "a text that was left"])
def test_the_loop_makes_a_pass_when_time_alone_changes_a_gate(files, field):
    files.policy("a").policy("b")
    wake = datetime.now(UTC) + timedelta(milliseconds=300)

    def answer(number, now):
        return report(now, **({field: wake} if number == 1 else {}))

    with Play(files, answer=answer) as play:
        play.until(lambda: len(play.modes) == 2)
    assert datetime.now(UTC) >= wake
    assert play.modes == [PassMode(), PassMode(subjects=frozenset([A]), listing_age=RECENT)]


def test_the_loop_makes_a_pass_when_a_host_accepts_calls_again(files):
    files.policy("a").policy("b")
    wake = datetime.now(UTC) + timedelta(milliseconds=300)
    opening = PlanAction(kind=ActionKind.OPEN_REQUEST, namespace="platform", policy="a")
    deferred = undone_result(opening, RateLimited("the limit is reached", until=wake))

    def answer(number, now):
        return replace(report(now), outcomes=(deferred,) if number == 1 else ())

    with Play(files, answer=answer) as play:
        play.until(lambda: len(play.modes) == 2)
    assert datetime.now(UTC) >= wake
    assert play.modes == [PassMode(), PassMode(subjects=frozenset([A]), listing_age=RECENT)]


def test_a_step_is_followed_at_once_by_a_pass_over_that_policy(files):
    files.policy("a").policy("b")
    with Play(files, answer=lambda number, now: report(now, step=number <= 2)) as play:
        play.until(lambda: len(play.modes) == 3)
    assert play.modes[1:] == [PassMode(subjects=frozenset([A]), listing_age=RECENT)] * 2


def test_a_step_is_followed_by_a_pass_over_policies_that_wait_for_that_policy(files):
    files.policy("a").policy("b").variant("alone")
    files.variant("web", depends_on="{policy: a, target: Repository/edge/monitoring}")
    files.variant("log", depends_on="{variant: a-edge-0123456789}, {variant: alone}")
    with Play(files, answer=lambda number, now: report(now, step=number == 1)) as play:
        play.until(lambda: len(play.modes) == 2)
    waiting = {PassSubject("platform", "log"), PassSubject("platform", "web")}
    assert play.modes[1] == PassMode(subjects=frozenset({A} | waiting), listing_age=RECENT)


def test_a_world_that_never_comes_to_rest_is_left_alone_for_a_while(files):
    files.policy("a")
    with Play(files, answer=lambda number, now: report(now, step=True)) as play:
        play.until(lambda: len(play.modes) == 1 + MAX_FOLLOW_UPS)
        sleep(0.1)
    assert len(play.modes) == 1 + MAX_FOLLOW_UPS


@pytest.mark.parametrize(
    "error", [Unavailable("no route"), KeyError("nobody foresaw this")], ids=repr
)
def test_no_error_of_a_pass_ends_it(files, error):
    files.policy("a")

    def answer(number, now):
        if number <= 3:
            raise error
        return report(now)

    with Play(files, answer=answer) as play:
        play.until(lambda: len(play.modes) == 4)
    assert play.modes == [PassMode()] * 4


def test_pauses_grow_and_are_bounded():
    pauses = [compute_pause(failures) for failures in range(2000)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (module.FIRST_PAUSE, MAX_PAUSE)
    assert FIRST_PAUSE < MAX_PAUSE


def test_changed_files_are_looked_at_when_they_have_stopped_changing(files):
    files.policy("a")
    with Play(files) as play:
        play.until(lambda: len(play.modes) == 1)
        files.promotion("timed", 'policies: [a], schedule: "0 0 29 2 *"')
        play.declared = files.read()
        play.until(lambda: len(play.modes) == 2)
    assert play.modes == [PassMode(sweep=True), PassMode(sweep=False, listing_age=RECENT)]


def test_changed_files_are_tried_at_once_however_long_the_pause(files, monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 3600.0)
    files.policy("a")

    def answer(number, now):
        if number == 1:
            raise Unavailable("no route")
        return report(now)

    with Play(files, answer=answer) as play:
        play.until(lambda: len(play.modes) == 1)
        play.declared = files.policy("b").read()
        play.until(lambda: len(play.modes) == 2)


def test_a_promotion_policy_that_is_removed_is_taken_off_the_record(files):
    files.policy("a").promotion("timed", 'policies: [a], schedule: "0 0 29 2 *"')
    with Play(files) as play:
        play.until(lambda: len(play.modes) == 1)
        (files.directory / "002.yaml").unlink()
        play.declared = files.read()
        play.until(lambda: len(play.modes) == 2)
    assert play.log.lines == {"platform/timed": None}


def test_a_stop_lets_the_pass_finish_and_records_its_sweep_and_begins_no_other(files):
    files.policy("a").policy("b").promotion("timed", 'policies: [a], schedule: "0 0 1 1 *"')
    files.promotion("later", 'policies: [b], schedule: "0 0 29 2 *"')
    log = Log({"platform/timed": LoggedSweep(datetime(2020, 6, 1, tzinfo=UTC), "0 0 1 1 *", "UTC")})
    plays = []

    def answer(number, now):
        plays[0].loop.stop()
        return report(now, step=True)

    with contextlib.ExitStack() as stack:
        play = Play(files, log, answer)
        plays.append(play)
        stack.enter_context(play)
        play.thread.join(PATIENCE)
    assert play.modes == [PassMode(unswept_subjects=frozenset([B]))]
    assert log.lines["platform/timed"].at.year > 2020


def test_a_stop_before_the_start_makes_no_pass(files):
    play = Play(files.policy("a"))
    play.loop.stop()
    play.loop.run()
    assert play.modes == []


# ---- hooks ----------------------------------------------------------------------------


def hook(play, url=BLUEPRINTS.spec.url):
    """A hook of a repository; answers whether a policy uses it."""
    return play.loop.notify(lambda listed: listed == url)


def test_a_hook_is_followed_by_a_pass_over_the_policies_that_use_the_repository(files):
    files.policy("a").policy("b")
    with Play(files) as play:
        play.until(lambda: hook(play))
        play.until(lambda: len(play.modes) == 2)
    assert play.modes == [PassMode(), PassMode(subjects=frozenset([A]))]


def test_a_hook_that_comes_before_the_first_pass_has_ended_is_followed_by_another_pass(files):
    files.policy("a").policy("b")
    entered, leave = threading.Event(), threading.Event()

    def answer(number, now):
        entered.set()
        assert leave.wait(PATIENCE)
        return report(now)

    with Play(files, answer=answer) as play:
        assert entered.wait(PATIENCE)
        assert hook(play)
        assert hook(play, "https://git.example.com/platform/other.git")
        leave.set()
        play.until(lambda: len(play.modes) == 2)
        sleep(0.1)
    assert play.modes == [PassMode(), PassMode(subjects=frozenset([A]))]


def test_a_hook_of_a_policy_that_is_being_evaluated_for_the_first_time_is_not_lost(files):
    entered, leave = threading.Event(), threading.Event()

    def answer(number, now):
        entered.set()
        assert leave.wait(PATIENCE)
        return report(now)

    with Play(files, answer=answer) as play:
        play.until(lambda: play.loop.health().is_ready)
        play.declared = files.policy("a").read()
        assert entered.wait(PATIENCE)
        hook(play)
        leave.set()
        play.until(lambda: len(play.modes) == 2)


def test_a_loop_without_a_policy_is_ready_when_its_first_round_has_ended(files):
    with Play(files) as play:
        play.until(lambda: play.loop.health().is_ready)
    assert play.modes == []


def test_a_hook_of_a_repository_that_nobody_uses_starts_nothing(files):
    files.policy("a")
    with Play(files) as play:
        play.until(lambda: hook(play))
        play.until(lambda: len(play.modes) == 2)
        assert not hook(play, "https://git.example.com/platform/other.git")
        sleep(0.1)
    assert len(play.modes) == 2


def test_hooks_wait_for_a_pause_but_go_with_what_else_is_due(files, monkeypatch):
    monkeypatch.setattr(module, "HOOK_PAUSE", 3600.0)
    files.policy("a").policy("b")
    with Play(files) as play:
        play.until(lambda: hook(play))
        play.until(lambda: len(play.modes) == 2)
        assert hook(play)
        sleep(0.1)
        assert len(play.modes) == 2
        play.declared = files.policy("c").read()
        play.until(lambda: len(play.modes) == 3)
        sleep(0.1)
    assert play.modes[2:] == [PassMode()]


def test_hooks_of_fanout_s_own_steps_do_not_keep_a_world_from_being_left_alone(files, monkeypatch):
    monkeypatch.setattr(module, "HOOK_PAUSE", 0.0)
    files.policy("a")
    with Play(files, answer=lambda number, now: report(now, step=True)) as play:
        play.until(lambda: len(play.modes) == 1 + MAX_FOLLOW_UPS)
        for number in range(3):
            assert hook(play)
            play.until(lambda: len(play.modes) == 2 + MAX_FOLLOW_UPS + number)  # noqa: B023
            sleep(0.1)
    assert len(play.modes) == 4 + MAX_FOLLOW_UPS


def test_a_step_after_a_hook_is_followed_again_once_the_world_was_at_rest(files, monkeypatch):
    monkeypatch.setattr(module, "HOOK_PAUSE", 0.0)
    monkeypatch.setattr(module, "MAX_FOLLOW_UPS", 2)
    files.policy("a")
    # Two steps that are followed, a pass at rest; a hook, and the same again.
    with Play(files, answer=lambda number, now: report(now, step=number % 3 != 0)) as play:
        play.until(lambda: len(play.modes) == 3)
        play.until(lambda: hook(play))
        play.until(lambda: len(play.modes) == 6)


def test_a_hook_is_not_lost_when_the_pass_fails(files):
    files.policy("a").policy("b")

    def answer(number, now):
        if number == 2:
            raise Unavailable("no route")
        return report(now)

    with Play(files, answer=answer) as play:
        play.until(lambda: hook(play))
        play.until(lambda: len(play.modes) == 3)
    assert play.modes[1:] == [PassMode(subjects=frozenset([A]))] * 2


class Observer:
    """What an observer of the loop gets."""

    def __init__(self):
        self.waits, self.ends = [], []

    def begin_round(self, waits, declared):
        self.waits.append(list(waits))

    def end_round(self, made_pass, failure):
        self.ends.append((made_pass, failure))


def test_observers_get_each_pass_and_each_failure_once_with_its_keys(files):
    files.policy("a")

    def answer(number, now):
        if number == 1:
            raise Unavailable("no answer", reason="RemoteUnavailable")
        return report(now)

    observer = Observer()
    with Play(files, answer=answer, observers=[observer]) as play:
        play.until(lambda: len(observer.ends) == 2)
    assert [len(it) for it in observer.waits] == [1, 0]  # a repeated key waits no second time
    (_, failure), (made_pass, _) = observer.ends
    assert failure.reason == "RemoteUnavailable"
    assert made_pass.declared == {A}


def test_an_observer_that_fails_ends_nothing(files):
    class Faulty(Observer):
        def begin_round(self, waits, declared):
            raise ValueError("a bug")

    files.policy("a")
    with Play(files, interval=timedelta(milliseconds=50), observers=[Faulty()]) as play:
        play.until(lambda: len(play.modes) >= 3)


def test_health_is_of_keys_that_wait_and_passes_that_end(files):
    files.policy("a")
    clock = [1000.0]
    entered, leave = threading.Event(), threading.Event()

    def answer(number, now):
        entered.set()
        assert leave.wait(PATIENCE)
        return report(now)

    with Play(files, answer=answer, clock=lambda: clock[0]) as play:
        assert entered.wait(PATIENCE)
        assert not play.loop.health().is_ready
        clock[0] += STALL_LIMIT
        assert not play.loop.health().is_stalled
        clock[0] += 1
        assert play.loop.health().is_stalled  # the pass hangs
        leave.set()
        play.until(lambda: play.loop.health().is_ready)
        clock[0] += 10 * STALL_LIMIT
        assert not play.loop.health().is_stalled  # nothing waits
        assert play.loop.health().seconds_without_pass == 0


def test_a_loop_whose_passes_fail_is_not_ready_and_not_stalled(files):
    files.policy("a")

    def answer(number, now):
        if number > 1:
            raise Unavailable("no answer", reason="RemoteUnavailable")
        return report(now)

    with Play(files, answer=answer, interval=timedelta(milliseconds=20)) as play:
        play.until(lambda: play.loop.health().failure)
        health = play.loop.health()
    assert (health.ended_rounds, health.is_ready, health.is_stalled) == (1, False, False)
    assert "no answer" in health.failure


def test_a_changed_file_wakes_the_policies_that_it_concerns(files):
    files.policy("a").policy("b")
    with Play(files) as play:
        play.until(lambda: len(play.modes) == 1)
        play.concerned = frozenset([B])
        files.write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: platform}\n")
        play.declared = files.read()
        play.until(lambda: len(play.modes) == 2)
    assert play.modes == [PassMode(), PassMode(subjects=frozenset([B]), listing_age=RECENT)]


def write_map(files, play, number):
    """Change what concerns policy b alone."""
    name = f"{{name: x{number}, namespace: platform}}"
    files.write(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {name}\n")
    play.declared = files.read()


def test_a_policy_that_goes_on_lets_a_change_of_another_one_pass(files):
    files.policy("a").policy("b")
    subjects, observer = [], Observer()

    def answer(number, now):
        subjects.append(play.modes[-1].subjects)
        if number == 2:
            write_map(files, play, number)
        sleep(0.03)
        return report(now, step=number == 1 or {B} not in subjects[:-1])

    play = Play(files, answer=answer, observers=[observer])
    play.concerned = frozenset([B])
    with play:
        play.until(lambda: {B} in subjects and len(subjects) > subjects.index({B}) + 1)
    assert {A, B} not in subjects
    assert subjects[subjects.index({B}) + 1] == {A}
    assert [len(it) for it in observer.waits] == [1] * len(observer.waits), "each key once"


def test_a_change_during_a_round_need_not_settle_after_it(files):
    """Else the follow-up would begin first, and the change would wait for another round."""
    files.policy("a").policy("b")
    settling = SettlingTime(quiet=0.2, longest=3)

    def answer(number, now):
        if number == 1:
            write_map(files, play, number)
            play.loop.wake()
            sleep(0.3)
        return report(now, step=number == 1)

    play = Play(files, answer=answer, settling=settling)
    play.concerned = frozenset([B])
    with play:
        play.until(lambda: len(play.modes) == 3)
    assert [mode.subjects for mode in play.modes] == [None, {B}, {A}]


def test_a_change_of_which_the_notice_is_late_has_to_settle(files):
    """Else the first of a hundred changes made together would have a round of its own."""
    files.policy("a").policy("b")
    started, woken = [], []

    def answer(number, now):
        started.append(monotonic())
        return report(now)

    with Play(files, answer=answer, settling=SettlingTime(quiet=0.3, longest=60)) as play:
        play.until(lambda: len(play.modes) == 1)
        read = play.read

        def read_early():
            if len(woken) == 1:  # what changed is there already
                woken.append(monotonic())
                play.loop.wake()
            return read()

        play.read = read_early
        play.concerned = frozenset([B])
        write_map(files, play, 1)
        woken.append(monotonic())
        play.loop.wake()
        play.until(lambda: len(play.modes) == 2)
    assert len(woken) == 2
    assert started[1] - woken[1] >= 0.3


def test_changes_without_end_hold_up_no_policy_that_goes_on(files):
    files.policy("a").policy("b")

    def answer(number, now):
        write_map(files, play, number)
        sleep(0.03)
        return report(now, step=True)

    play = Play(files, answer=answer)
    play.concerned = frozenset([B])
    with play:
        play.until(lambda: sum(mode.subjects == {B} for mode in play.modes) == 4)
    subjects = [mode.subjects for mode in play.modes]
    assert all(A in later for it, later in pairwise(subjects) if it == {B})


def test_a_lost_race_is_repeated_at_once_some_times(files, monkeypatch):
    monkeypatch.setattr(module, "RACE_PAUSE", 0.01)
    files.policy("a").policy("b")
    lost = undone_result(STEP, Conflict("it moved", reason="RemoteMoved"))

    def answer(_, now):
        return replace(report(now), outcomes=(lost,))

    with Play(files, answer=answer) as play:
        play.until(lambda: len(play.modes) == 1 + MAX_LOST_RACES)
        sleep(0.2)
        assert (
            play.modes[1:]
            == [PassMode(subjects=frozenset([A]), listing_age=RECENT)] * MAX_LOST_RACES
        )


def failed(now, error):
    """A pass over policy a whose upstream repository cannot be read."""
    made = report(now)
    [policy] = made.pass_plan.policies
    policies = (replace(policy, error=error),)
    return replace(made, pass_plan=replace(made.pass_plan, policies=policies))


def test_a_policy_that_an_outage_stops_is_tried_again_until_it_is_over(files):
    files.policy("a").policy("b")

    def answer(number, now):
        error = Unavailable("the host is down") if number < 3 else None
        return failed(now, error)

    with Play(files, answer=answer) as play:
        play.until(lambda: len(play.modes) == 3)
        sleep(1.5)
    assert play.modes == [PassMode()] + [PassMode(subjects=frozenset([A]), listing_age=RECENT)] * 2


def test_a_pass_over_others_keeps_the_retry_of_a_policy(files, monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 2.0)
    files.policy("a").policy("b")

    def answer(number, now):
        return failed(now, Unavailable("the host is down")) if number == 1 else others(now)

    with Play(files, answer=answer) as play:
        play.until(lambda: len(play.modes) == 1)
        play.concerned = frozenset([B])
        write_map(files, play, 1)
        play.until(lambda: len(play.modes) == 3)
    assert [it.subjects for it in play.modes] == [None, {B}, {A}]


def others(now):
    """A pass over other policies than a."""
    made = report(now)
    return replace(made, pass_plan=replace(made.pass_plan, policies=(), plans=()))


def test_a_policy_with_an_error_of_its_own_waits_for_its_correction(files):
    files.policy("a")
    with Play(files, answer=lambda _, now: failed(now, InvalidInput("wrong"))) as play:
        play.until(lambda: play.modes)
        sleep(1.5)
    assert len(play.modes) == 1

"""Loop of `fanout run`: wait for a trigger, read the world, run the pass that is due.

Decisions depend on the world alone; triggers only wake the loop. One round serves all
pending keys, so there are never two passes at once. No error of a pass ends the loop.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from time import monotonic

import structlog

from fanout.cluster.declared_objects import DeclaredObjects
from fanout.cluster.sweep_log import SweepLog
from fanout.errors import FanoutError
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassMode, PassSubject
from fanout.reconcile.variant_dependencies import find_dependents
from fanout.schedule.log_throttling import LoopLog
from fanout.schedule.sweep_schedule import SweepTimetable, build_mode, build_timetable
from fanout.schedule.sweep_state import SweepState
from fanout.schedule.triggers import RequeueTimer, Trigger, TriggerKey, TriggerQueue
from fanout.telemetry.error_isolation import BARRIER, run_isolated
from fanout.values import frozen

FILE_CHECK_INTERVAL = 2.0  # seconds between checks of the files
FIRST_PAUSE, MAX_PAUSE = 2.0, 300.0  # seconds, after a pass that failed
MAX_FOLLOW_UPS = 32  # passes in a row that only follow actions of the previous one

_log = structlog.get_logger()


@frozen
class LoopDependencies:
    """Dependencies of the loop: files, passes, sweep log and clock."""

    read_files: Callable[[], DeclaredObjects]  # returns the previous object if nothing changed
    run_pass: Callable[[DeclaredObjects, datetime, PassMode], PassReport]  # one pass
    sweep_log: SweepLog
    clock: Callable[[], datetime]


class RunLoop:
    """Single worker that runs passes; `run` returns after `stop`."""

    def __init__(
        self, dependencies: LoopDependencies, interval: timedelta, namespace: str = ""
    ) -> None:
        """Create the loop.

        `interval` is the time from one pass over all repositories to the next. `namespace`
        restricts the loop to one namespace; default: all.
        """
        self._dependencies = dependencies
        self._interval = interval.total_seconds()
        self._namespace = namespace
        self._queue: TriggerQueue[TriggerKey] = TriggerQueue()
        self._sweep_state = SweepState(dependencies.sweep_log)
        self._loop_log = LoopLog()
        self._declared = DeclaredObjects(unread=("what is declared",))
        self._declared = self._read_files()
        # Changed files, until a second check finds them unchanged.
        self._changed_files = self._declared
        self._pending = {TriggerKey(Trigger.START): None}
        self._timer_keys: frozenset[TriggerKey] = frozenset()
        self._poll_at = self._check_files_at = self._resume_at = 0.0  # by the monotonic clock
        self._failures = self._follow_ups = 0

    def stop(self) -> None:
        """End the loop after the running pass. Safe in a signal handler."""
        self._queue.close()

    def run(self) -> None:
        """Run passes until `stop`."""
        timer = RequeueTimer(self._queue.put)
        self._poll_at = monotonic() + self._interval
        timeout = 0.0
        try:
            while (keys := self._queue.take(timeout)) is not None:
                self._pending |= dict.fromkeys((*keys, *self._detect_triggers()))
                if self._pending and monotonic() >= self._resume_at:
                    self._run_round(timer)
                timeout = FILE_CHECK_INTERVAL
        finally:
            timer.shutdown()

    def _detect_triggers(self) -> Iterable[TriggerKey]:
        """Yield keys that are not queued: changed files, and the end of the interval.

        Files count as changed once they stop changing: half of a directory that is being
        written may lack the very policy that restricts the others.
        """
        if monotonic() >= self._check_files_at:
            self._check_files_at = monotonic() + FILE_CHECK_INTERVAL
            previous, self._changed_files = self._changed_files, self._read_files()
            if self._changed_files is previous and self._declared is not previous:
                self._declared = previous
                self._resume_at = 0.0  # the change may be the remedy of the failure
                yield TriggerKey(Trigger.FILES)
        if monotonic() >= self._poll_at:
            yield TriggerKey(Trigger.POLL)

    def _read_files(self) -> DeclaredObjects:
        """Return what is declared now, or the previous value after an internal error."""
        declared = run_isolated(self._dependencies.read_files)
        failed = isinstance(declared, FanoutError)
        self._loop_log.log_internal_problems("files of fanout", [str(declared)] if failed else [])
        return self._declared if isinstance(declared, FanoutError) else declared

    # ---- one round -----------------------------------------------------------------------------

    def _run_round(self, timer: RequeueTimer) -> None:
        """Serve all pending keys. After an error they stay pending, with increasing pauses."""
        keys = list(self._pending)
        try:
            with BARRIER:  # one failed pass must not end the process
                self._serve(keys, timer)
        except FanoutError as error:
            self._loop_log.log_failed_pass(error, self._schedule_retry())
        else:
            self._failures = 0
            self._loop_log.log_recovery()
            for key in keys:
                del self._pending[key]

    def _schedule_retry(self) -> float:
        """Postpone the next round after a failure; return the pause in seconds."""
        pause = compute_pause(self._failures)
        self._failures += 1
        self._resume_at = monotonic() + pause
        return pause

    def _serve(self, keys: Iterable[TriggerKey], timer: RequeueTimer) -> None:
        now = self._dependencies.clock()
        table = build_timetable(self._declared, self._namespace).without_failing(now)
        self._loop_log.log_file_errors(self._declared)
        self._loop_log.log_internal_problems("schedules", table.failures)
        due = self._sweep_state.find_due(table, now)
        requested = _requested_subjects(keys, table)
        due_subjects = frozenset[PassSubject]().union(*(timed.subjects for timed in due))
        # Policies with a schedule publish in their sweeps alone; all others in any pass (design
        # §7).
        publishable = due_subjects | (requested - table.sweep_only)
        triggers = {key.trigger for key in keys}
        only_follows = triggers == {Trigger.FOLLOW_UP}
        self._follow_ups = self._follow_ups + 1 if only_follows else 0
        instants = {
            TriggerKey(Trigger.SWEEP, it.namespace, it.name): it.next_start(now)
            for it in table.schedules
        }
        evaluated = publishable | requested
        if evaluated:
            mode = build_mode(evaluated, publishable, table, self._namespace)
            instants |= self._run_pass(mode, triggers)
        # After the pass: a process killed during a sweep must find it due again.
        self._sweep_state.mark_done(due, now)
        self._set_timer(timer, instants, evaluated, table)
        if requested >= table.all_subjects:
            self._poll_at = monotonic() + self._interval

    def _run_pass(self, mode: PassMode, triggers: set[Trigger]) -> dict[TriggerKey, datetime]:
        """Run a pass.

        Return the instants at which gates of evaluated policies open by themselves.
        """
        report = self._dependencies.run_pass(self._declared, self._dependencies.clock(), mode)
        log_result = run_isolated(partial(self._loop_log.log_report, report, mode, triggers))
        # A failed write of the log does not undo the sweep, so the pass is not repeated.
        self._loop_log.log_internal_problems(
            "log", [str(log_result)] if isinstance(log_result, FanoutError) else []
        )
        self._queue_follow_ups(report)
        instants: dict[TriggerKey, datetime] = {}
        for item in report.pass_plan.policies:
            instant = item.decision.next if item.decision else None
            key = TriggerKey(
                Trigger.INSTANT, item.resolved_policy.namespace, item.resolved_policy.name
            )
            if instant is not None:
                instants[key] = min(instant, instants.get(key, instant))
        return instants

    def _queue_follow_ups(self, report: PassReport) -> None:
        """Queue the policies that took a step, and those that wait for them.

        Drafts are written in one pass and published in another. Bounded, so that a world which
        answers differently each time costs no more than the poll.
        """
        if self._follow_ups >= MAX_FOLLOW_UPS:
            return
        done_actions = {outcome.action for outcome in report.outcomes if outcome.is_done}
        for plan in report.pass_plan.plans:
            if not done_actions.isdisjoint(plan.actions):
                dependents = find_dependents(self._declared, plan.namespace, plan.name)
                for name in (plan.name, *dependents):
                    self._queue.put(TriggerKey(Trigger.FOLLOW_UP, plan.namespace, name))

    def _set_timer(
        self,
        timer: RequeueTimer,
        instants: Mapping[TriggerKey, datetime],
        evaluated: frozenset[PassSubject],
        table: SweepTimetable,
    ) -> None:
        """Set the timer; instants of policies that no pass evaluated again are kept."""
        kept_keys = {
            key
            for key in self._timer_keys
            if key.trigger is Trigger.INSTANT
            and PassSubject(key.namespace, key.name) in table.all_subjects - evaluated
        }
        for key in self._timer_keys - instants.keys() - kept_keys:
            timer.cancel(key)
        for key, at in instants.items():
            timer.set(key, at)
        self._timer_keys = frozenset(instants.keys() | kept_keys)


def compute_pause(failures: int) -> float:
    """Return the seconds until the next attempt after `failures` failures in a row."""
    return min(FIRST_PAUSE * 2.0 ** min(failures, 30), MAX_PAUSE)


def _requested_subjects(
    keys: Iterable[TriggerKey], table: SweepTimetable
) -> frozenset[PassSubject]:
    """Return the policies and variants that the keys concern.

    Schedules are served separately.
    """
    if any(key.concerns_all for key in keys):
        return table.all_subjects
    subjects = {
        PassSubject(key.namespace, key.name) for key in keys if key.trigger is not Trigger.SWEEP
    }
    return table.all_subjects & subjects

"""Loop of `fanout run` and `fanout controller`: wait for a trigger, read the world, run the pass.

Decisions depend on the world alone; triggers only wake the loop. One round serves all
pending keys, so there are never two passes at once. No error of a pass ends the loop.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from math import inf
from time import monotonic

from fanout.api.reasons import Reason
from fanout.api.urls import canonicalize_url
from fanout.controller.log_throttling import LoopLog
from fanout.controller.loop_health import LoopHealth, LoopObserver, ScheduledPass
from fanout.controller.outage_retries import OutageRetries
from fanout.controller.repository_index import RepositoryIndex
from fanout.controller.round_fairness import RoundFairness
from fanout.controller.sweep_schedule import SweepState, SweepTimetable, build_mode, build_timetable
from fanout.controller.trigger_queue import RequeueTimer, Trigger, TriggerKey, TriggerQueue
from fanout.declared.declaration_failure import DeclarationFailure
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError
from fanout.ports import Inventory, SweepLog
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassMode, PassSubject, subject_of
from fanout.reconcile.variant_dependencies import find_dependents
from fanout.retries import choose_pause
from fanout.telemetry.error_isolation import BARRIER, run_isolated
from fanout.values import Value

FILE_CHECK_INTERVAL = 2.0  # seconds between readings of what is declared
FIRST_PAUSE, MAX_PAUSE = 2.0, 300.0  # seconds, after a pass that failed
MAX_FOLLOW_UPS = 32  # passes in a row that only follow actions of the previous one
MAX_LOST_RACES = 5  # passes in a row that repeat a lost race at once
RACE_PAUSE = 0.5  # seconds; the longest pause after a first lost race
MAX_EARLY_HOOKS = 1000  # hooks of unknown repositories that are looked up after a round
LATE_LISTING_AGE = 60.0  # seconds; as long as a listing may take
HOOK_PAUSE = 5.0  # seconds between passes that only hooks start

# Keys of single policies at their instants, which stay set until a pass evaluates the policy.
_INSTANT_TRIGGERS = frozenset({Trigger.INSTANT, Trigger.RETRY})
# Rounds with one of these list all their repositories, whatever the age of the last listing.
_LISTING_TRIGGERS = frozenset(
    {Trigger.START, Trigger.POLL, Trigger.SWEEP, Trigger.HOOK, Trigger.REQUEST}
)


class IntakeReport(Value):
    """Result of taking in records that people created."""

    subjects: frozenset[PassSubject] = frozenset()  # policies and variants they are about
    is_complete: bool = True  # False: some could not be taken in, and are tried again


class LoopDependencies(Value):
    """Dependencies of the loop: declared objects, passes, sweep log, clock, and who observes it."""

    inventory: Inventory
    # the policies and variants that a change concerns, since the last call or pass; None: all
    find_concerned: Callable[[DeclaredObjects], frozenset[PassSubject] | None]
    run_pass: Callable[[DeclaredObjects, datetime, PassMode], PassReport]  # one pass
    sweep_log: SweepLog
    clock: Callable[[], datetime]
    observers: Sequence[LoopObserver] = ()
    take_in: Callable[[datetime], IntakeReport] | None = None  # records that people created
    # the values by which people ask for a pass over a policy or variant
    list_requests: Callable[[DeclaredObjects], Mapping[PassSubject, str]] | None = None


class SettlingTime(Value):
    """Time for which what is declared must not change until it is used.

    Half of a directory that is being written may lack the very policy that restricts the
    others; and a hundred objects that are changed together are to be one round.
    """

    quiet: float = FILE_CHECK_INTERVAL  # seconds without a change
    longest: float = inf  # seconds since the first change, after which it is used anyway


class RunLoop:
    """Single worker that runs passes; `run` returns after `stop`."""

    def __init__(
        self,
        dependencies: LoopDependencies,
        interval: timedelta,
        namespace: str = "",
        drafts_per_round: int | None = None,
        settling: SettlingTime | None = None,
    ) -> None:
        """Create the loop.

        `interval` is the time from one pass over all repositories to the next. `namespace`
        restricts the loop to one namespace; default: all. `drafts_per_round`: number of
        drafts that a policy writes before the others have their turn; default: no limit.
        `settling`: default: as files need it.
        """
        self._dependencies = dependencies
        self._interval = interval.total_seconds()
        self._namespace = namespace
        self._round_fairness = RoundFairness(drafts_per_round)
        self._settling = settling or SettlingTime(FILE_CHECK_INTERVAL)
        self._queue = TriggerQueue()
        self._sweep_state = SweepState(dependencies.sweep_log)
        self._loop_log = LoopLog()
        self._declared = DeclaredObjects(unread=(DeclarationFailure("what is declared"),))
        self._declared = self._read_declared()
        # What was read last: used once a second reading is the same.
        self._latest, self._changed_at = self._declared, inf
        self._requests = self._list_requests()
        self._pending = {TriggerKey(Trigger.START): monotonic()}  # as in the queue
        self._served: frozenset[TriggerKey] = frozenset()  # by a round that failed
        self._last_end = monotonic()  # of a round
        self._ended_rounds, self._failure = 0, ""
        self._timer_keys: frozenset[TriggerKey] = frozenset()
        # By the monotonic clock.
        self._poll_at = self._read_at = self._resume_at = self._hooks_at = 0.0
        # Of the changes that are not read yet, and of the last one.
        self._first_woken_at = self._woken_at = inf
        self._returned_at = -inf  # of the API server, after an outage
        self._repository_index = RepositoryIndex()
        # Of repositories that no pass has resolved yet, as predicates of their URLs.
        self._early_hooks: deque[Callable[[str], bool]] = deque(maxlen=MAX_EARLY_HOOKS)
        self._outage_retries = OutageRetries(compute_pause)
        self._failures = self._follow_ups = self._lost_races = 0
        # Of records that could not be taken in, by the monotonic clock, and attempts in a row.
        self._records_at, self._intake_failures = inf, 0
        self._detecting_since = inf  # while what is declared is being read

    def stop(self) -> None:
        """End the loop after the running pass. Safe in a signal handler."""
        self._queue.close()

    def wake(self) -> None:
        """Request that what is declared is read now, because it changed. For any thread."""
        self._woken_at = monotonic()
        self._first_woken_at = min(self._first_woken_at, self._woken_at)
        self._read_at = 0.0
        self._queue.wake()

    def notify_records(self) -> None:
        """Queue the intake of records that people created. For any thread."""
        self._queue.put(TriggerKey(Trigger.RECORDS))

    def notify(self, is_repository: Callable[[str], bool]) -> bool:
        """Queue the policies that use a repository; return whether there may be any.

        `is_repository` judges the URLs of Repositories. For any thread. A repository that a pass
        resolves for the first time is not known before its end: while a round is due, unknown
        ones are looked up again after it.
        """
        if self._queue_hooks(is_repository):
            return True
        is_first = not self._ended_rounds
        if is_first or self._pending:
            self._early_hooks.append(is_repository)
        return is_first

    def _queue_hooks(self, is_repository: Callable[[str], bool]) -> bool:
        subjects = self._repository_index.find(is_repository)
        for subject in sorted(subjects):
            self._queue.put(TriggerKey(Trigger.HOOK, subject.namespace, subject.name))
        return bool(subjects)

    def notify_answer(self, url: str) -> None:
        """Queue the policies that use a repository which answers again. For any thread."""
        canonical = canonicalize_url(url)
        subjects = self._repository_index.find(lambda it: canonicalize_url(it) == canonical)
        for subject in sorted(subjects):
            self._queue.put(TriggerKey(Trigger.RETRY, subject.namespace, subject.name))
        if not subjects:  # that of the records, or one of a round that failed
            self._resume_at = 0.0
            self._queue.wake()

    def notify_return(self) -> None:
        """End the pauses after failures, because the API server answers again. For any thread."""
        self._returned_at = monotonic()
        self._resume_at = self._records_at = 0.0
        self._queue.wake()

    def _choose_pause(self, failures: int, since: float) -> float:
        """Return the pause after an attempt that began at `since`, and some failures before it."""
        return compute_pause(0 if self._returned_at >= since else failures)

    def health(self) -> LoopHealth:
        """Return the present state of the loop. For any thread."""
        arrivals = [*self._queue.arrivals(), *self._pending.values()]
        # A change becomes a key by being read, which may hang like a pass.
        since = max(min(*arrivals, self._detecting_since, inf), self._last_end)
        seconds = max(monotonic() - since, 0.0)
        return LoopHealth(len(arrivals), seconds, self._ended_rounds, self._failure)

    def run(self) -> None:
        """Run passes until `stop`."""
        timer = RequeueTimer(self._queue.put)
        self._poll_at = monotonic() + self._interval
        timeout = 0.0
        try:
            while (keys := self._queue.take(timeout)) is not None:
                self._detecting_since = monotonic()
                detected = dict.fromkeys(self._detect_triggers(), monotonic())
                self._detecting_since = inf
                # Replaced and never changed, so that `health` needs no lock. A key that is
                # pending already keeps its arrival.
                self._pending = {**detected, **keys, **self._pending}
                if monotonic() >= self._pause_end():
                    self._run_round(timer)
                timeout = max(min(self._read_at, self._pause_end()) - monotonic(), 0.0)
        finally:
            timer.shutdown()

    def _pause_end(self) -> float:
        """Return when the pending keys are to be served, by the monotonic clock."""
        if not self._pending:
            return inf
        # Hooks alone wait for a pause: hosts send one for each push, comment and status, fanout's
        # own included.
        only_hooks = all(key.trigger is Trigger.HOOK for key in self._pending)
        return max(self._resume_at, self._hooks_at) if only_hooks else self._resume_at

    def _detect_triggers(self) -> Iterable[TriggerKey]:
        """Yield keys that are not queued: what is declared changed, or the interval ended."""
        if monotonic() >= self._read_at:
            yield from self._detect_changes()
        if monotonic() >= self._poll_at:
            yield TriggerKey(Trigger.POLL)
        if monotonic() >= self._records_at:
            yield TriggerKey(Trigger.RECORDS)

    def _detect_changes(self) -> Iterable[TriggerKey]:
        """Read what is declared, and yield the keys of a change that has settled."""
        now = monotonic()
        # Set before the reading: a change meanwhile asks for another one.
        self._read_at = now + FILE_CHECK_INTERVAL
        first_woken_at, self._first_woken_at = self._first_woken_at, inf
        previous, self._latest = self._latest, self._read_declared()
        if self._latest is self._declared:
            self._changed_at = inf
            return
        self._changed_at = min(self._changed_at, first_woken_at, now)
        if self._woken_at < inf:
            # Not since it was read: a round may have been running meanwhile, and another one would
            # follow at once.
            is_quiet = now - self._woken_at >= self._settling.quiet
        else:
            is_quiet = self._latest is previous
        if not is_quiet and now - self._changed_at < self._settling.longest:
            self._read_at = min(self._read_at, now + self._settling.quiet)
            return
        self._declared, self._changed_at = self._latest, inf
        self._resume_at = 0.0  # the change may be the remedy of the failure
        yield from self._list_changed_keys()

    def _list_changed_keys(self) -> Sequence[TriggerKey]:
        """Return the keys of the policies that a change concerns, or one for all."""
        previous, self._requests = self._requests, self._list_requests()
        requested = [
            TriggerKey(Trigger.REQUEST, subject.namespace, subject.name)
            for subject, value in sorted(self._requests.items())
            if previous.get(subject) != value
        ]
        concerned = run_isolated(partial(self._dependencies.find_concerned, self._declared))
        self._loop_log.log_internal_error("changed declarations", concerned)
        if concerned is None or isinstance(concerned, FanoutError):
            return [*requested, TriggerKey(Trigger.DECLARED)]
        changed = (TriggerKey(Trigger.DECLARED, *subject) for subject in sorted(concerned))
        return [*requested, *changed]

    def adopt(self, declared: DeclaredObjects) -> None:
        """Use what a pass has read meanwhile, and queue whom its changes concern.

        For the loop's thread, before the pass plans with it: afterwards nobody could tell what
        has changed. Otherwise the next round would plan with what was declared before.
        """
        if declared is self._declared:
            return
        self._declared = self._latest = declared
        self._changed_at = inf
        for key in self._list_changed_keys():
            self._queue.put(key)

    def _list_requests(self) -> Mapping[PassSubject, str]:
        list_requests = self._dependencies.list_requests
        return {} if list_requests is None else list_requests(self._declared)

    def _read_declared(self) -> DeclaredObjects:
        """Return what is declared now, or the previous value after an error."""
        declared = run_isolated(self._dependencies.inventory.read)
        self._loop_log.log_internal_error("declared objects", declared)
        return self._declared if isinstance(declared, FanoutError) else declared

    # ---- one round -----------------------------------------------------------------------------

    def _run_round(self, timer: RequeueTimer) -> None:
        """Serve pending keys. After an error they stay pending, with increasing pauses."""
        keys, started = self._round_fairness.choose_keys(self._pending), monotonic()
        waits = [started - self._pending[key] for key in keys if key not in self._served]
        declared = self._declared
        self._observe(lambda it: it.begin_round(waits, declared))
        made_pass, failure = None, None
        try:
            with BARRIER:  # one failed pass must not end the process
                keys = (*keys, *self._take_in())
                made_pass = self._serve(keys, timer)
        except FanoutError as error:
            failure, pause = error, self._choose_pause(self._failures, started)
            self._failures += 1
            self._resume_at = monotonic() + pause
            self._loop_log.log_failed_pass(error, pause)
            self._served = frozenset(keys)
        else:
            self._failures = 0
            self._loop_log.log_recovery()
            self._pending = {key: at for key, at in self._pending.items() if key not in keys}
            self._served = frozenset()
            self._ended_rounds += 1  # also without a policy that there was to evaluate
            if any(key.trigger is Trigger.HOOK for key in keys):
                self._hooks_at = monotonic() + HOOK_PAUSE
        self._last_end, self._failure = monotonic(), str(failure or "")
        self._observe(lambda it: it.end_round(made_pass, failure))

    def _observe(self, call: Callable[[LoopObserver], None]) -> None:
        """Call all observers. What fails in one of them does not concern the loop."""
        for observer in self._dependencies.observers:
            result = run_isolated(partial(call, observer))
            self._loop_log.log_internal_error(type(observer).__name__, result)

    def _serve(self, keys: Iterable[TriggerKey], timer: RequeueTimer) -> ScheduledPass | None:
        """Serve keys; return the pass, or None if nothing was to be evaluated."""
        now = self._dependencies.clock()
        table = build_timetable(self._declared, self._namespace).without_failing(now)
        self._loop_log.log_declared_errors(self._declared)
        self._loop_log.log_internal_problems("schedules", table.failures)
        due = self._sweep_state.find_due(table, now)
        requested = _requested_subjects(keys, table)
        due_subjects = frozenset[PassSubject]().union(*(timed.subjects for timed in due))
        # Policies with a schedule publish in their sweeps alone; all others in any pass (design
        # §7).
        publishable = due_subjects | (requested - table.sweep_only)
        triggers = {key.trigger for key in keys}
        if triggers - {Trigger.FOLLOW_UP, Trigger.HOOK}:
            self._follow_ups = 0
        elif Trigger.FOLLOW_UP in triggers:
            self._follow_ups += 1
        instants = {
            TriggerKey(Trigger.SWEEP, it.namespace, it.name): it.next_start(now)
            for it in table.schedules
        }
        evaluated = publishable | requested
        made_pass = None
        if evaluated:
            # What the other triggers tell of is not in repositories, so a listing from the last
            # poll or later will do.
            listing_age = 0.0 if due or triggers & _LISTING_TRIGGERS else self._interval
            if listing_age and Trigger.RETRY in triggers:
                # A remote that takes long has just been listed beside the rounds.
                listing_age = max(listing_age, LATE_LISTING_AGE)
            mode = build_mode(
                evaluated,
                publishable,
                table,
                self._namespace,
                listing_age=listing_age,
                draft_limit=self._round_fairness.limit,
            )
            report, pass_instants = self._run_pass(mode, triggers, table.all_subjects)
            made_pass = ScheduledPass(report, table.all_subjects)
            instants |= pass_instants
        # After the pass: a process killed during a sweep must find it due again.
        self._sweep_state.mark_done(due, now)
        self._set_timer(timer, instants, evaluated, table)
        if requested >= table.all_subjects and triggers & _LISTING_TRIGGERS:
            self._poll_at = monotonic() + self._interval
        return made_pass

    def _take_in(self) -> Sequence[TriggerKey]:
        """Take in the records that wait; return the keys of the policies they are about."""
        if self._dependencies.take_in is None:
            return ()
        started = monotonic()
        taken = self._dependencies.take_in(self._dependencies.clock())
        pause = self._choose_pause(self._intake_failures, started)
        self._records_at = inf if taken.is_complete else monotonic() + pause
        self._intake_failures = 0 if taken.is_complete else self._intake_failures + 1
        keys = [TriggerKey(Trigger.RECORDS, *subject) for subject in sorted(taken.subjects)]
        # They are taken in once, so the policies must stay pending until a pass succeeds.
        self._pending = {**dict.fromkeys(keys, monotonic()), **self._pending}
        return keys

    def _run_pass(
        self, mode: PassMode, triggers: set[Trigger], subjects: frozenset[PassSubject]
    ) -> tuple[PassReport, dict[TriggerKey, datetime]]:
        """Run a pass.

        Return it, and the instants at which gates of evaluated policies open by themselves,
        hosts take calls of theirs again, or expressions and what failed outside are tried again.
        """
        report = self._dependencies.run_pass(self._declared, self._dependencies.clock(), mode)
        log_result = run_isolated(partial(self._loop_log.log_report, report, mode, triggers))
        # A failed write of the log does not undo the sweep, so the pass is not repeated.
        self._loop_log.log_internal_error("log", log_result)
        self._repository_index.update(report, subjects)
        for _ in range(len(self._early_hooks)):
            self._queue_hooks(self._early_hooks.popleft())
        self._round_fairness.update(report)
        self._queue_follow_ups(report)
        instants: dict[TriggerKey, datetime] = {}
        for item in report.pass_plan.policies:
            policy = item.resolved_policy
            key = TriggerKey(Trigger.INSTANT, policy.namespace, policy.name)
            next_check = item.decision.next if item.decision else None
            for at in filter(None, (next_check, item.retry_at)):
                instants[key] = min(at, instants.get(key, at))
        for outcome in report.deferred_outcomes:
            key, instant = TriggerKey(Trigger.INSTANT, *subject_of(outcome.action)), outcome.until
            if instant is not None:
                instants[key] = min(instant, instants.get(key, instant))
        retries = self._outage_retries.plan(report, self._dependencies.clock())
        for subject, retry_at in retries.items():
            instants[TriggerKey(Trigger.RETRY, *subject)] = retry_at
        return report, instants

    def _queue_follow_ups(self, report: PassReport) -> None:
        """Queue the policies that took a step, and those that wait for them.

        Drafts are written in one pass and published in another. Bounded, so that a world which
        answers differently each time costs no more than the poll.
        """
        done_actions = {outcome.action for outcome in report.outcomes if outcome.is_done}
        # Hooks do not begin a new row, because they tell of fanout's own steps; rest does.
        if not done_actions:
            self._follow_ups = 0
        self._queue_lost_races(report)
        if self._follow_ups >= MAX_FOLLOW_UPS + self._round_fairness.count_rounds(report):
            return
        for plan in report.pass_plan.plans:
            if not done_actions.isdisjoint(plan.actions):
                dependents = find_dependents(self._declared, plan.namespace, plan.name)
                for name in (plan.name, *dependents):
                    self._queue.put(TriggerKey(Trigger.FOLLOW_UP, plan.namespace, name))

    def _queue_lost_races(self, report: PassReport) -> None:
        """Queue the policies whose push came after another one; their repositories are listed.

        Bounded, so that two writers in step do not chase each other until the poll.
        """
        lost = {
            subject_of(it.action)
            for it in report.failed_outcomes
            if it.reason == Reason.REMOTE_MOVED
        }
        self._lost_races = self._lost_races + 1 if lost else 0
        if lost and self._lost_races <= MAX_LOST_RACES:
            # Full jitter: with a fixed part, writers that collided once would stay in step.
            self._resume_at = monotonic() + choose_pause(0, self._lost_races * RACE_PAUSE)
            for subject in sorted(lost):
                self._queue.put(TriggerKey(Trigger.FOLLOW_UP, *subject))

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
            if key.trigger in _INSTANT_TRIGGERS
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
    """Return the policies and variants that the keys concern. Schedules are served separately."""
    if any(key.concerns_all for key in keys):
        return table.all_subjects
    subjects = {
        PassSubject(key.namespace, key.name) for key in keys if key.trigger is not Trigger.SWEEP
    }
    return table.all_subjects & subjects

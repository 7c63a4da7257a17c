"""Loop of `fanout run` and `fanout controller`: wait for a trigger, read the world, run the pass.

Decisions depend on the world alone; triggers only wake the loop. One round serves all
pending keys, so there are never two passes at once. No error of a pass ends the loop.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from math import inf
from time import monotonic

from fanout.api.reasons import Reason
from fanout.api.urls import canonicalize_url
from fanout.controller.declaration_reader import DeclarationReader, SettlingTime
from fanout.controller.log_throttling import LoopLog
from fanout.controller.loop_health import LoopHealth, LoopObserver, ScheduledPass
from fanout.controller.sweep_schedule import SweepState, build_mode, build_timetable
from fanout.controller.work_queue import (
    OutageRetries,
    RequeueTimer,
    RoundFairness,
    Trigger,
    TriggerKey,
    WorkQueue,
)
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

# Keys of the loop itself, which are served without a round. A pause lasts while its key waits.
_READ = TriggerKey(Trigger.READ)
_RESUME = TriggerKey(Trigger.RESUME)
_RESUME_HOOKS = TriggerKey(Trigger.RESUME_HOOKS)
_OWN_KEYS = frozenset({_READ, _RESUME, _RESUME_HOOKS})
_POLL = TriggerKey(Trigger.POLL)
_RECORDS = TriggerKey(Trigger.RECORDS)
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
    monotonic_clock: Callable[[], float] = monotonic  # seconds, for delays


class RepositoryIndex:
    """Policies by the URLs of the repositories that they read or write, as passes resolved them.

    One thread updates it while others look something up. It does not know repositories that no
    pass has resolved yet, nor those where only records say that a package was there.
    """

    def __init__(self) -> None:
        # Replaced and never changed, so that readers need no lock.
        self._urls: Mapping[PassSubject, frozenset[str]] = {}

    def update(self, report: PassReport, declared: frozenset[PassSubject]) -> None:
        """Take over what a pass resolved; forget policies that are not declared any more.

        A policy that could not be resolved keeps its repositories.
        """
        resolved: defaultdict[PassSubject, set[str]] = defaultdict(set)
        for item in report.pass_plan.policies:
            policy = item.resolved_policy
            # Thousands of variants share a few Repository objects.
            repositories = {id(it): it for it in policy.repositories.values()}
            if policy.upstream is not None:
                repositories[id(policy.upstream)] = policy.upstream
            if urls := {it.spec.url for it in repositories.values()}:
                resolved[PassSubject(policy.namespace, policy.name)] |= urls
        merged = {**self._urls, **{it: frozenset(urls) for it, urls in resolved.items()}}
        self._urls = {subject: urls for subject, urls in merged.items() if subject in declared}

    def find(self, is_repository: Callable[[str], bool]) -> frozenset[PassSubject]:
        """Return the policies and variants with a URL for which `is_repository` is true."""
        return frozenset(
            subject for subject, urls in self._urls.items() if any(map(is_repository, urls))
        )


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
        self._clock = dependencies.monotonic_clock
        self._queue: WorkQueue[TriggerKey] = WorkQueue(self._clock)
        self._loop_log = LoopLog()
        self._reader = DeclarationReader(
            dependencies.inventory,
            settling or SettlingTime(FILE_CHECK_INTERVAL),
            self._loop_log,
            self._clock,
        )
        self._requests = self._list_requests()
        self._queue.add(TriggerKey(Trigger.START))
        self._pauses: set[TriggerKey] = set()  # that have not ended
        self._served: frozenset[TriggerKey] = frozenset()  # by a round that failed
        self._last_end = self._clock()  # of a round
        self._ended_rounds, self._failure = 0, ""
        self._sweep_state = SweepState(dependencies.sweep_log)
        self._round_fairness = RoundFairness(drafts_per_round)
        self._outage_retries = OutageRetries(self._queue, compute_pause)
        self._repository_index = RepositoryIndex()
        # Of repositories that no pass has resolved yet, as predicates of their URLs.
        self._early_hooks: deque[Callable[[str], bool]] = deque(maxlen=MAX_EARLY_HOOKS)
        # In a row: rounds that failed, passes that only follow or lost a race, failed intakes.
        self._failures = self._follow_ups = self._lost_races = self._intake_failures = 0

    def stop(self) -> None:
        """End the loop after the running pass. Safe in a signal handler."""
        self._queue.close()

    def wake(self) -> None:
        """Queue a reading of what is declared, for when a change has settled. For any thread."""
        self._reader.notice_change()
        self._queue.add_after(_READ, self._reader.settling.quiet)

    def notify_records(self) -> None:
        """Queue the intake of records that people created. For any thread."""
        self._queue.add(_RECORDS)

    def notify(self, is_repository: Callable[[str], bool]) -> bool:
        """Queue the policies that use a repository; return whether there may be any.

        `is_repository` judges the URLs of Repositories. For any thread. A repository that a pass
        resolves for the first time is not known before its end: while a round is due, unknown
        ones are looked up again after it.
        """
        if self._queue_hooks(is_repository):
            return True
        is_first = not self._ended_rounds
        if is_first or any(key not in _OWN_KEYS for key in self._queue.list_due()):
            self._early_hooks.append(is_repository)
        return is_first

    def _queue_hooks(self, is_repository: Callable[[str], bool]) -> bool:
        subjects = self._repository_index.find(is_repository)
        for subject in sorted(subjects):
            self._queue.add(TriggerKey(Trigger.HOOK, *subject))
        return bool(subjects)

    def notify_answer(self, url: str) -> None:
        """Queue the policies that use a repository which answers again. For any thread."""
        canonical = canonicalize_url(url)
        subjects = self._repository_index.find(lambda it: canonicalize_url(it) == canonical)
        for subject in sorted(subjects):
            self._queue.add(TriggerKey(Trigger.RETRY, *subject))
        if not subjects:  # that of the records, or one of a round that failed
            self._queue.add(_RESUME)

    def notify_return(self) -> None:
        """End the pauses after failures, because the API server answers again. For any thread."""
        self._queue.add(_RESUME)
        self._queue.add(_RECORDS)

    def health(self) -> LoopHealth:
        """Return the present state of the loop. For any thread."""
        due = self._queue.list_due()
        # A change becomes a key by being read, which may hang like a pass.
        since = max(min(due.values(), default=inf), self._last_end)
        seconds = max(self._clock() - since, 0.0)
        return LoopHealth(len(due.keys() - _OWN_KEYS), seconds, self._ended_rounds, self._failure)

    def run(self) -> None:
        """Run passes until `stop`."""
        timer = RequeueTimer(self._queue.add)
        self._queue.add_after(_POLL, self._interval)
        self._queue.add(_READ)
        try:
            while (keys := self._queue.take(self._choose_keys)) is not None:
                if keys.keys() <= _OWN_KEYS:
                    self._pauses -= keys.keys()
                    if _READ in keys:
                        # Queue the keys of a change that has settled.
                        previous = self._reader.declared
                        self._queue.add_after(_READ, min(self._reader.read(), FILE_CHECK_INTERVAL))
                        if self._reader.declared is not previous:
                            # The change may be the remedy of the failure.
                            self._pauses.discard(_RESUME)
                            self._queue.discard(_RESUME)
                            self._queue_changed()
                    self._queue.done(keys)
                else:
                    self._run_round(keys, timer)
        finally:
            timer.shutdown()

    def _choose_keys(self, due: Collection[TriggerKey]) -> Collection[TriggerKey]:
        """Return the keys that are served next: the loop's own before those of a round."""
        own_keys = [key for key in due if key in _OWN_KEYS]
        if own_keys or _RESUME in self._pauses:
            return own_keys
        # Hooks alone wait for a pause: hosts send one for each push, comment and status, fanout's
        # own included.
        if _RESUME_HOOKS in self._pauses and all(key.trigger is Trigger.HOOK for key in due):
            return ()
        return self._round_fairness.choose_keys(due)

    def _queue_changed(self) -> None:
        """Queue the policies that a change concerns, or all."""
        declared = self._reader.declared
        previous, self._requests = self._requests, self._list_requests()
        for subject, value in sorted(self._requests.items()):
            if previous.get(subject) != value:
                self._queue.add(TriggerKey(Trigger.REQUEST, *subject))
        concerned = run_isolated(partial(self._dependencies.find_concerned, declared))
        self._loop_log.log_internal_error("changed declarations", concerned)
        if concerned is None or isinstance(concerned, FanoutError):
            self._queue.add(TriggerKey(Trigger.DECLARED))
        else:
            for subject in sorted(concerned):
                self._queue.add(TriggerKey(Trigger.DECLARED, *subject))

    def adopt(self, declared: DeclaredObjects) -> None:
        """Use what a pass has read meanwhile, and queue whom its changes concern.

        For the loop's thread, before the pass plans with it: afterwards nobody could tell what
        has changed. Otherwise the next round would plan with what was declared before.
        """
        if declared is not self._reader.declared:
            self._reader.adopt(declared)
            self._queue_changed()

    def _list_requests(self) -> Mapping[PassSubject, str]:
        list_requests = self._dependencies.list_requests
        return {} if list_requests is None else list_requests(self._reader.declared)

    # ---- one round -----------------------------------------------------------------------------

    def _run_round(self, keys: Mapping[TriggerKey, float], timer: RequeueTimer) -> None:
        """Serve keys. After an error they stay due, with increasing pauses."""
        started = self._clock()
        waits = [started - due for key, due in keys.items() if key not in self._served]
        declared = self._reader.declared
        self._observe(lambda it: it.begin_round(waits, declared))
        made_pass, failure = None, None
        try:
            with BARRIER:  # one failed pass must not end the process
                if self._dependencies.take_in is not None:
                    taken = self._dependencies.take_in(self._dependencies.clock())
                    if taken.is_complete:
                        self._intake_failures = 0
                    else:
                        pause = compute_pause(self._intake_failures)
                        self._queue.add_after(_RECORDS, pause)
                        self._intake_failures += 1
                    # Taken in once, so that their policies must stay due until a pass succeeds.
                    records = (TriggerKey(Trigger.RECORDS, *it) for it in sorted(taken.subjects))
                    keys = {**dict.fromkeys(records, started), **keys}
                made_pass = self._serve(keys, timer)
        except FanoutError as error:
            failure, pause = error, compute_pause(self._failures)
            self._failures += 1
            self._loop_log.log_failed_pass(error, pause)
            self._served = frozenset(keys)
            self._queue.restore(keys)
            self._begin_pause(_RESUME, pause)
        else:
            self._failures = 0
            self._loop_log.log_recovery()
            self._served = frozenset()
            self._ended_rounds += 1  # also without a policy that there was to evaluate
            self._queue.done(keys)
            if any(key.trigger is Trigger.HOOK for key in keys):
                self._queue.discard(_RESUME_HOOKS)
                self._begin_pause(_RESUME_HOOKS, HOOK_PAUSE)
        self._last_end, self._failure = self._clock(), str(failure or "")
        self._observe(lambda it: it.end_round(made_pass, failure))

    def _begin_pause(self, key: TriggerKey, seconds: float) -> None:
        self._pauses.add(key)
        self._queue.add_after(key, seconds)

    def _observe(self, call: Callable[[LoopObserver], None]) -> None:
        """Call all observers. What fails in one of them does not concern the loop."""
        for observer in self._dependencies.observers:
            result = run_isolated(partial(call, observer))
            self._loop_log.log_internal_error(type(observer).__name__, result)

    def _serve(self, keys: Iterable[TriggerKey], timer: RequeueTimer) -> ScheduledPass | None:
        """Serve keys; return the pass, or None if nothing was to be evaluated."""
        now = self._dependencies.clock()
        table = build_timetable(self._reader.declared, self._namespace).without_failing(now)
        self._loop_log.log_declared_errors(self._reader.declared)
        self._loop_log.log_internal_problems("schedules", table.failures)
        due = self._sweep_state.find_due(table, now)
        # Those that the keys concern. Schedules are served separately.
        requested = table.all_subjects
        if not any(key.concerns_all for key in keys):
            requested &= {it.subject for it in keys if it.trigger is not Trigger.SWEEP}
        due_subjects = frozenset[PassSubject]().union(*(timed.subjects for timed in due))
        # Policies with a schedule publish in their sweeps alone; all others in any pass.
        publishable = due_subjects | (requested - table.sweep_only)
        triggers = {key.trigger for key in keys}
        if triggers - {Trigger.FOLLOW_UP, Trigger.HOOK}:
            self._follow_ups = 0
        elif Trigger.FOLLOW_UP in triggers:
            self._follow_ups += 1
        if due:  # also where it came due after the keys of this round
            triggers.add(Trigger.SWEEP)
        instants = {
            TriggerKey(Trigger.SWEEP, *it.promotion): it.next_start(now) for it in table.schedules
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
            report = self._run_pass(mode, triggers, table.all_subjects)
            made_pass = ScheduledPass(report, table.all_subjects)
            # When time alone changes something: gates open by themselves, hosts take calls of ours
            # again, and expressions are tried again.
            changes = [
                (TriggerKey(Trigger.INSTANT, policy.namespace, policy.name), at)
                for it in report.pass_plan.policies
                for policy in (it.resolved_policy,)
                for at in (it.decision.next if it.decision else None, it.retry_at)
                if at is not None
            ]
            changes += (
                (TriggerKey(Trigger.INSTANT, *subject_of(it.action)), it.until)
                for it in report.deferred_outcomes
                if it.until is not None
            )
            # Of several instants of a key the earliest one is last.
            instants |= dict(sorted(changes, key=lambda pair: pair[1], reverse=True))
        # After the pass: a process killed during a sweep must find it due again.
        self._sweep_state.mark_done(due, now)
        # Those of policies that the pass did not evaluate are kept.
        kept_subjects = table.all_subjects - evaluated
        for key in timer.keys - instants.keys():
            if key.trigger is not Trigger.INSTANT or key.subject not in kept_subjects:
                timer.cancel(key)
        for key, at in instants.items():
            timer.set(key, at)
        if requested >= table.all_subjects and triggers & _LISTING_TRIGGERS:
            self._queue.discard(_POLL)
            self._queue.add_after(_POLL, self._interval)
        return made_pass

    def _run_pass(
        self, mode: PassMode, triggers: set[Trigger], subjects: frozenset[PassSubject]
    ) -> PassReport:
        report = self._dependencies.run_pass(
            self._reader.declared, self._dependencies.clock(), mode
        )
        self._loop_log.retain(subjects)
        log_result = run_isolated(partial(self._loop_log.log_report, report, mode, triggers))
        # A failed write of the log does not undo the sweep, so the pass is not repeated.
        self._loop_log.log_internal_error("log", log_result)
        self._repository_index.update(report, subjects)
        for _ in range(len(self._early_hooks)):
            self._queue_hooks(self._early_hooks.popleft())
        self._round_fairness.update(report, subjects)
        done_actions = {outcome.action for outcome in report.outcomes if outcome.is_done}
        # Hooks do not begin a new row, because they tell of fanout's own steps; rest does.
        if not done_actions:
            self._follow_ups = 0
        # Policies whose push came after another one; their repositories are listed. Bounded, so
        # that two writers in step do not chase each other until the poll.
        lost = {
            subject_of(it.action)
            for it in report.failed_outcomes
            if it.reason == Reason.REMOTE_MOVED
        }
        self._lost_races, pause = self._lost_races + 1 if lost else 0, 0.0
        if lost and self._lost_races <= MAX_LOST_RACES:
            # Full jitter: with a fixed part, writers that collided once would stay in step. What
            # follows the same pass waits as long.
            pause = choose_pause(0, self._lost_races * RACE_PAUSE)
            for subject in sorted(lost):
                self._queue.add_after(TriggerKey(Trigger.FOLLOW_UP, *subject), pause)
        # Drafts are written in one pass and published in another. Bounded, so that a world which
        # answers differently each time costs no more than the poll.
        is_bounded = self._follow_ups < MAX_FOLLOW_UPS + self._round_fairness.count_rounds(report)
        for plan in report.pass_plan.plans if is_bounded else ():
            if not done_actions.isdisjoint(plan.actions):
                dependents = find_dependents(self._reader.declared, plan.namespace, plan.name)
                for name in (plan.name, *dependents):
                    key = TriggerKey(Trigger.FOLLOW_UP, plan.namespace, name)
                    self._queue.add_after(key, pause)
        self._outage_retries.update(report, subjects)
        return report


def compute_pause(failures: int) -> float:
    """Return the seconds until the next attempt after `failures` failures in a row."""
    return min(FIRST_PAUSE * 2.0 ** min(failures, 30), MAX_PAUSE)

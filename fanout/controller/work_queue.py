"""Work queue of the loop: keys with due times, the timer of instants, retries, and fairness.

A key says where to look, never what happened: the loop reads the world and decides by that
(docs/architecture.md). Delays are by a monotonic clock, so that a system clock that is set
stops nothing. Instants of calendars need that clock; the timer of those wraps APScheduler and
decides nothing: instants are computed in `calendar`, because APScheduler's cron counts weekdays
from Monday, joins the two day fields by "and", and fires twice in autumn.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import ceil, inf
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Generic, TypeVar

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

from fanout.api.reasons import Reason
from fanout.errors import Denied, RateLimited, Unavailable
from fanout.plan.actions import ActionKind, ActionResult, PlanAction
from fanout.plan.changes.next_drafts import DraftLimit
from fanout.reconcile.pass_results import PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassSubject, subject_of
from fanout.retries import choose_pause
from fanout.values import replace

_Key = TypeVar("_Key")


class Trigger(StrEnum):
    """Reason why a key was queued, for the log."""

    START = "start"
    DECLARED = "declaration changed"
    POLL = "interval"
    SWEEP = "schedule"
    INSTANT = "instant"  # a gate may open by itself now
    RETRY = "retry"  # something outside stopped the policy, and may be over
    FOLLOW_UP = "follow-up"  # a pass acted, so further actions may be possible
    HOOK = "hook"  # a forge names a repository where something happened
    REQUEST = "request"  # a person asked for a pass, with an annotation
    RECORDS = "records"  # people created records that wait to be taken in
    # Of the loop itself, without a round:
    READ = "reading"  # what is declared is to be read
    RESUME = "pause ended"  # after a round that failed
    RESUME_HOOKS = "pause of hooks ended"


@dataclass(frozen=True, slots=True, order=True)
class TriggerKey:
    """A trigger and the object it concerns, by namespace and name. Empty names mean no object."""

    trigger: Trigger
    namespace: str = ""
    name: str = ""

    @property
    def subject(self) -> PassSubject:
        """Policy or hand-written variant of these names."""
        return PassSubject(self.namespace, self.name)

    @property
    def concerns_all(self) -> bool:
        """True if every policy is to be evaluated."""
        return not self.name and self.trigger in (Trigger.START, Trigger.DECLARED, Trigger.POLL)


class WorkQueue(Generic[_Key]):
    """Queue of distinct keys with due times: any thread adds, one thread takes.

    As in the work queue of Kubernetes controllers, a key that waits is not queued twice, and one
    that was handed out and is added again waits until it is done.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Create an empty queue; `clock` returns seconds and never goes back."""
        self._clock = clock
        self._lock = Lock()
        self._waiting: dict[_Key, float] = {}  # due times
        self._taken: dict[_Key, float] = {}  # due times of keys that are not done
        # SimpleQueue alone may be put into while the same thread takes: close() is for a signal.
        self._signal: SimpleQueue[None] = SimpleQueue()
        self._closed = False
        # When `take` began to wait. What falls due afterwards waits for nothing but its thread.
        self._idle_since = inf

    def add(self, key: _Key) -> None:
        """Add a key that is due now."""
        self.add_after(key, 0.0)

    def add_after(self, key: _Key, delay: float) -> None:
        """Add a key that is due in `delay` seconds. If it waits already, the earlier time wins."""
        due = self._clock() + delay
        with self._lock:
            if due >= self._waiting.get(key, inf):
                return
            self._waiting[key] = due
        self._signal.put(None)

    def discard(self, key: _Key) -> None:
        """Remove a key that waits; without effect on one that was handed out."""
        with self._lock:
            self._waiting.pop(key, None)

    def __contains__(self, key: _Key) -> bool:
        """Return whether a key waits, due or not."""
        return key in self._waiting

    def list_due(self) -> Mapping[_Key, float]:
        """Return the keys that were found due or are not done, and since when they wait."""
        with self._lock:
            until = min(self._clock(), self._idle_since)
            return {**{key: at for key, at in self._waiting.items() if at <= until}, **self._taken}

    def take_due(
        self, choose: Callable[[Collection[_Key]], Iterable[_Key]] = list
    ) -> Mapping[_Key, float]:
        """Hand out keys that are due, in the order of their due times, and since when they wait.

        `choose` returns which of some due keys; the others stay due. It must be quick and not use
        the queue.
        """
        with self._lock:
            now = self._clock()
            due = [it for it, at in self._waiting.items() if at <= now and it not in self._taken]
            due.sort(key=self._waiting.__getitem__)
            self._waiting |= {it: now for it in due if self._waiting[it] > self._idle_since}
            taken = {key: self._waiting.pop(key) for key in choose(due)} if due else {}
            self._taken |= taken
            return taken

    def take(
        self, choose: Callable[[Collection[_Key]], Iterable[_Key]] = list
    ) -> Mapping[_Key, float] | None:
        """Wait until `take_due` hands out a key; None if the queue is closed."""
        while True:
            # Before the look at the keys, so that what is added after it leaves a signal.
            while not self._signal.empty():
                self._signal.get()
            if self._closed:
                return None
            now = self._clock()
            if keys := self.take_due(choose):
                self._idle_since = inf
                return keys
            with self._lock:
                self._idle_since = now
                next_due = min((at for at in self._waiting.values() if at > now), default=inf)
            with suppress(Empty):
                self._signal.get(timeout=None if next_due == inf else next_due - now)

    def done(self, keys: Iterable[_Key]) -> None:
        """Take note that keys which were handed out are served."""
        with self._lock:
            for key in keys:
                self._taken.pop(key, None)

    def restore(self, keys: Mapping[_Key, float]) -> None:
        """Put back keys that were not served, and since when they wait."""
        with self._lock:
            for key, due in keys.items():
                self._taken.pop(key, None)
                self._waiting[key] = min(due, self._waiting.get(key, inf))

    def close(self) -> None:
        """Wake the taking thread for the last time. Safe in a signal handler."""
        self._closed = True
        self._signal.put(None)


class RequeueTimer:
    """Timer with at most one instant per key, in the memory of this process."""

    def __init__(self, callback: Callable[[TriggerKey], None]) -> None:
        """Start the timer; `callback` gets the key at its instant, on another thread.

        The callback must be quick: all instants share one thread.
        """
        self._callback = callback
        self.keys: set[TriggerKey] = set()  # that were set and not cancelled; some have fired
        # Without a grace time APScheduler drops a job that is a second late, without an error.
        defaults = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
        self._scheduler: Any = BackgroundScheduler(
            timezone=UTC, executors={"default": ThreadPoolExecutor(1)}, job_defaults=defaults
        )
        self._scheduler.start()

    def set(self, key: TriggerKey, instant: datetime) -> None:
        """Set the instant of a key, replacing an earlier one; a past instant fires at once."""
        self.keys.add(key)
        self._scheduler.add_job(
            self._callback,
            DateTrigger(instant, timezone=UTC),
            args=[key],
            id=_job_id(key),
            replace_existing=True,
        )

    def cancel(self, key: TriggerKey) -> None:
        """Remove the instant of a key; without effect if none is set."""
        self.keys.discard(key)
        with suppress(JobLookupError):  # it has fired already
            self._scheduler.remove_job(_job_id(key))

    def shutdown(self) -> None:
        """Stop the timer; the callback is not called afterwards."""
        # A job that is just being started would miss its store, and its thread end with an error.
        self._scheduler.remove_all_jobs()
        self._scheduler.shutdown()


def _job_id(key: TriggerKey) -> str:
    return f"{key.trigger.name} {key.namespace}/{key.name}"


class OutageRetries:
    """Retries in a row of policies that something outside stopped: a host, a network, a permission.

    What is declared does not change when a server comes back, so nothing else would evaluate these
    policies before the next check of all repositories. They are in the memory of this process.
    """

    def __init__(self, queue: WorkQueue[TriggerKey], compute_pause: Callable[[int], float]) -> None:
        """Queue nothing yet; `compute_pause` returns the seconds after that many retries."""
        self._queue = queue
        self._compute_pause = compute_pause
        self._attempts: Counter[PassSubject] = Counter()

    def update(self, report: PassReport, declared: Collection[PassSubject]) -> None:
        """Queue a retry of the policies of a pass that something outside stopped; end the others.

        Those that are not `declared` any more are forgotten. A policy that a pass evaluates before
        its retry is due keeps the time: changes of other objects must not make it rarer.
        """
        for subject in self._attempts.keys() - declared:
            del self._attempts[subject]
            self._queue.discard(TriggerKey(Trigger.RETRY, *subject))
        stopped = frozenset(find_stopped(report))
        # One for all: policies that wait for the same repository are evaluated together.
        jitter = choose_pause(0.5, 1)
        for item in report.pass_plan.policies:
            if (subject := _subject_of(item)) not in stopped and self._attempts.pop(subject, 0):
                self._queue.discard(TriggerKey(Trigger.RETRY, *subject))
        for subject in stopped:
            if (key := TriggerKey(Trigger.RETRY, *subject)) not in self._queue:
                self._queue.add_after(key, self._compute_pause(self._attempts[subject]) * jitter)
                self._attempts[subject] += 1


def find_stopped(report: PassReport) -> Iterator[PassSubject]:
    """Yield the policies and hand-written variants that something outside stopped."""
    for item in report.pass_plan.policies:
        variant_states = (it.observed.repository_state for it in item.variants)
        # What the policy met; an error of its own fields is none from outside.
        failures = [
            item.error if isinstance(item.error, (Unavailable, Denied)) else None,
            item.upstream_failure,
            *(
                it.failure or (it.forge.failure if it.forge is not None else None)
                for it in (*item.repository_states, *variant_states)
            ),
        ]
        # A host that takes no more calls says when it does again.
        is_stopped = any(it is not None and not isinstance(it, RateLimited) for it in failures)
        if report.pass_plan.has_outdated_records or is_stopped:
            yield _subject_of(item)
    for outcome in report.failed_outcomes:
        # A lost race is repeated at once.
        if outcome.reason != Reason.REMOTE_MOVED:
            yield subject_of(outcome.action)


def _subject_of(item: PolicyResult) -> PassSubject:
    return PassSubject(item.resolved_policy.namespace, item.resolved_policy.name)


class RoundFairness:
    """Choice of what a round serves, so that thousands of drafts of one policy block no others.

    A policy writes a share of its drafts in a round and goes on in the next one. What concerns
    others passes it for one round.
    """

    def __init__(self, share: int | None) -> None:
        """Start without any; `share`: number of drafts in a round; None: no limit."""
        # Of the next pass; None: none.
        self.limit = DraftLimit(share) if share is not None else None
        self._unfinished: frozenset[PassSubject] = frozenset()
        # Those of which the last round served keys, if it left others to the next one.
        self._ahead: frozenset[PassSubject] = frozenset()

    def choose_keys(self, pending: Collection[TriggerKey]) -> Sequence[TriggerKey]:
        """Return the pending keys that the next round serves.

        Follow-ups, and all keys of policies that have written a full share, let the others pass
        for one round. In the round after it, those that passed leave their own follow-ups to the
        next one.
        """
        ahead, self._ahead = self._ahead, frozenset()
        if any(key.concerns_all for key in pending):
            return list(pending)
        changed = {key.subject for key in pending if key.trigger is not Trigger.FOLLOW_UP}
        if ahead:
            return [key for key in pending if key.subject not in ahead - changed] or list(pending)
        urgent = frozenset(changed - self._unfinished)
        keys = [key for key in pending if key.subject in urgent]
        if not keys or len(keys) == len(pending):
            return list(pending)
        self._ahead = urgent
        return keys

    def update(self, report: PassReport, declared: Collection[PassSubject]) -> None:
        """Take in the results of a pass; forget policies that are not declared any more."""
        if self.limit is None:
            return

        def list_drafts(outcomes: Iterable[ActionResult]) -> list[PlanAction]:
            return [it.action for it in outcomes if it.action.kind is ActionKind.WRITE_DRAFT]

        shares = Counter(map(subject_of, list_drafts(report.outcomes)))
        evaluated = set(map(_subject_of, report.pass_plan.policies))
        full = {it for it, number in shares.items() if number >= self.limit.number}
        self._unfinished = self._unfinished.intersection(declared) - evaluated | full
        lost = (it for it in report.failed_outcomes if it.reason != Reason.REMOTE_MOVED)
        failed = {(it.namespace, it.repository) for it in list_drafts(lost)}
        written = list_drafts(it for it in report.outcomes if it.is_done)
        done = {(it.namespace, it.repository) for it in written}
        self.limit = replace(self.limit, failing=self.limit.failing - done | failed)

    def count_rounds(self, report: PassReport) -> int:
        """Return the number of rounds in which the policies of a pass could write all drafts."""
        if self.limit is None:
            return 0
        most = max((len(it.variants) for it in report.pass_plan.policies), default=0)
        return ceil(most / self.limit.number)

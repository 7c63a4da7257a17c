"""Work queue of keys with due times, and the timer that adds keys at their instants.

A key says where to look, never what happened: the loop reads the world and decides by that
(docs/architecture.md). Delays are by a monotonic clock, so that a system clock that is set
stops nothing. Instants of calendars need that clock; the timer of those wraps APScheduler and
decides nothing: instants are computed in `calendar`, because APScheduler's cron counts weekdays
from Monday, joins the two day fields by "and", and fires twice in autumn.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import inf
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Generic, TypeVar

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

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
            due = {key: at for key, at in self._waiting.items() if at <= until}
            return {**due, **self._taken}

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

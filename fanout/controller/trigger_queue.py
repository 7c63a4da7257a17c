"""Keys that wait for the loop, and the timer that queues them at their instants.

A key of the queue says where to look, never what happened: the loop reads the world and decides by
that (design §3, level-based). The timer wraps APScheduler and decides nothing: instants
are computed in `calendar`, because APScheduler's cron counts weekdays from Monday,
joins the two day fields by "and", and fires twice in autumn.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger


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


class TriggerQueue:
    """Queue of distinct keys: any thread puts, one thread takes all pending keys at once.

    A key that is pending already is not queued twice. So one pass serves all keys together,
    and there are never two passes at once for one policy.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._pending: dict[TriggerKey, float] = {}  # with the instant of arrival
        # SimpleQueue alone may be put into while the same thread takes: close() is for a signal.
        self._signal: SimpleQueue[None] = SimpleQueue()
        self._closed = False

    def put(self, key: TriggerKey) -> None:
        """Queue a key unless it is pending already."""
        with self._lock:
            if key not in self._pending:
                self._pending[key] = monotonic()
                self._signal.put(None)

    def wake(self) -> None:
        """Wake the taking thread without a key."""
        self._signal.put(None)

    def arrivals(self) -> Sequence[float]:
        """Return when each pending key was queued, by the monotonic clock."""
        with self._lock:
            return tuple(self._pending.values())

    def take(self, timeout: float) -> Mapping[TriggerKey, float] | None:
        """Return all pending keys in order of arrival, with its instant.

        Empty after `timeout` seconds, None if the queue is closed.
        """
        if not self._closed:
            with suppress(Empty):
                self._signal.get(timeout=timeout)
        if self._closed:
            return None
        with self._lock:
            keys = dict(self._pending)
            self._pending.clear()
            while not self._signal.empty():  # one signal per key
                self._signal.get()
        return keys

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
        # Without a grace time APScheduler drops a job that is a second late, without an error.
        defaults = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
        self._scheduler: Any = BackgroundScheduler(
            timezone=UTC, executors={"default": ThreadPoolExecutor(1)}, job_defaults=defaults
        )
        self._scheduler.start()

    def set(self, key: TriggerKey, instant: datetime) -> None:
        """Set the instant of a key, replacing an earlier one; a past instant fires at once."""
        self._scheduler.add_job(
            self._callback,
            DateTrigger(instant, timezone=UTC),
            args=[key],
            id=_job_id(key),
            replace_existing=True,
        )

    def cancel(self, key: TriggerKey) -> None:
        """Remove the instant of a key; without effect if none is set."""
        with suppress(JobLookupError):  # it has fired already
            self._scheduler.remove_job(_job_id(key))

    def shutdown(self) -> None:
        """Stop the timer; the callback is not called afterwards."""
        # A job that is just being started would miss its store, and its thread end with an error.
        self._scheduler.remove_all_jobs()
        self._scheduler.shutdown()


def _job_id(key: TriggerKey) -> str:
    return f"{key.trigger.name} {key.namespace}/{key.name}"

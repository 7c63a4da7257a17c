"""The alarm clock: APScheduler behind a typed face. It is given instants and queues keys.

It decides nothing: what the instants are is computed in `calendar`, because APScheduler's own cron
counts weekdays from Monday, joins the two day fields by "and", and fires twice in autumn.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

from fanout.schedule.keys import Key


class Alarm:
    """At most one instant per key. Nothing of it outlives the process."""

    def __init__(self, ring: Callable[[Key], None]) -> None:
        """`ring` is called with the key at its instant, on another thread, and must be quick."""
        self._ring = ring
        # Without a grace time one that is a second late would be dropped in silence.
        defaults = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
        self._clock: Any = BackgroundScheduler(
            timezone=UTC, executors={"default": ThreadPoolExecutor(1)}, job_defaults=defaults
        )
        self._clock.start()

    def set(self, key: Key, instant: datetime) -> None:
        """Ring with the key at the instant, at once if it is past; in place of an earlier one."""
        self._clock.add_job(
            self._ring,
            DateTrigger(instant, timezone=UTC),
            args=[key],
            id=_name(key),
            replace_existing=True,
        )

    def cancel(self, key: Key) -> None:
        """Do not ring with the key; nothing happens when no instant was set."""
        with suppress(JobLookupError):  # it has rung
            self._clock.remove_job(_name(key))

    def shutdown(self) -> None:
        """Stop the clock; nothing rings afterwards."""
        # A job that is just being started would miss its store, and its thread end with an error.
        self._clock.remove_all_jobs()
        self._clock.shutdown()


def _name(key: Key) -> str:
    return f"{key.trigger.name} {key.namespace}/{key.name}"

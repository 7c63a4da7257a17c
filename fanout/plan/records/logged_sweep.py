"""Entry of the sweep log: the last sweep of one schedule."""

from datetime import datetime

from fanout.gates.record_facts import is_from_the_future
from fanout.values import Instant, Value


class LoggedSweep(Value, rename="camel"):
    """Instant up to which the sweeps of a schedule are done, and that schedule.

    The fields are names of the log, in camelCase.
    """

    at: Instant
    schedule: str
    time_zone: str

    def applies_to(self, schedule: str, time_zone: str, now: datetime) -> bool:
        """Return whether the entry is of this schedule and not from the future.

        An entry from the future was written by a wrong clock and would suppress sweeps.
        """
        is_same_schedule = (self.schedule, self.time_zone) == (schedule, time_zone)
        return is_same_schedule and not is_from_the_future(self.at, now)

"""State of scheduled sweeps: which ones are due, by this process and by the sweep log.

The log is read at the first schedule and written after each sweep. A sweep during which
the process is killed is due again; a completed one is not repeated.
"""

from collections.abc import Mapping
from datetime import datetime

import structlog

from fanout.cluster.sweep_log import LoggedSweep, SweepLog
from fanout.errors import FanoutError, InvalidInput
from fanout.schedule.sweep_schedule import ScheduledSweep, SweepTimetable, find_obsolete

_log = structlog.get_logger()


class SweepState:
    """Instants up to which each schedule is swept. Not thread-safe."""

    def __init__(self, log: SweepLog) -> None:
        self._sweep_log = log
        self._entries: dict[str, LoggedSweep] | None = None
        self._known_policies: set[str] = set()  # PromotionPolicies seen by this process
        self._unwritten: dict[str, LoggedSweep | None] = {}
        self._reported_too_late: set[tuple[str, datetime]] = set()  # too late, and logged
        self._last_problem = ""  # last logged error of a write

    def find_due(self, table: SweepTimetable, now: datetime) -> dict[ScheduledSweep, datetime]:
        """Return the sweeps due now with their instants. Raises Unavailable, Denied.

        A schedule that is new to the log has missed nothing so far.
        """
        if not table.schedules and self._entries is None:
            return {}
        entries = self._read()
        for key in find_obsolete(entries, self._known_policies, table):
            del entries[key]
            self._unwritten[key] = None
        for schedule in table.schedules:
            # Logged as swept now: without a first entry nothing could ever count as missed.
            if not schedule.is_logged(entries.get(schedule.key), now):
                self._put(schedule, now)
        self._known_policies |= table.promotion_policies
        self._write(now)
        return self._select_due(table, entries, now)

    def mark_done(self, sweeps: Mapping[ScheduledSweep, datetime], now: datetime) -> None:
        """Log sweeps as done. A failure to write is logged; the next write includes them."""
        for schedule, instant in sweeps.items():
            self._put(schedule, instant)
        self._write(now)

    def _select_due(
        self, table: SweepTimetable, entries: Mapping[str, LoggedSweep], now: datetime
    ) -> dict[ScheduledSweep, datetime]:
        sweeps: dict[ScheduledSweep, datetime] = {}
        for schedule in table.schedules:
            instant = schedule.find_missed(entries[schedule.key], now)
            if instant is None:
                continue
            if not schedule.is_too_late(instant, now):
                sweeps[schedule] = instant
            elif (schedule.key, instant) not in self._reported_too_late:
                self._reported_too_late.add((schedule.key, instant))
                _log.warning(
                    "A sweep was missed and it is too late to make it up",
                    promotion_policy=schedule.key,
                    scheduled=instant.isoformat(),
                )
        return sweeps

    def _read(self) -> dict[str, LoggedSweep]:
        if self._entries is None:
            try:
                self._entries = dict(self._sweep_log.read())
            except InvalidInput as error:
                _log.warning("The times of earlier sweeps are not known", problem=str(error))
                self._entries = {}
        return self._entries

    def _put(self, schedule: ScheduledSweep, instant: datetime) -> None:
        assert self._entries is not None, "read before anything is due"
        self._entries[schedule.key] = self._unwritten[schedule.key] = schedule.log_entry(instant)

    def _write(self, now: datetime) -> None:
        if not self._unwritten:
            return
        try:
            self._sweep_log.write(self._unwritten, now)
        except FanoutError as error:
            if self._last_problem != str(error):  # logged once, not in every pass
                _log.warning(
                    "The time of a sweep could not be recorded",
                    reason=error.reason,
                    problem=str(error),
                )
            self._last_problem = str(error)
            return
        if self._last_problem:
            _log.info("The times of sweeps are recorded again")
        self._last_problem = ""
        self._unwritten.clear()

"""Which scheduled sweeps are due: what this process knows, and what the log of sweeps says.

The log is read when the first schedule is met and written when a sweep is done. Whoever kills the
process in the middle of a sweep finds it due again; one that is done is not repeated.
"""

from collections.abc import Mapping
from datetime import datetime

import structlog

from fanout.cluster.sweep_log import SweepLog, Swept
from fanout.errors import FanoutError, InvalidInput
from fanout.schedule.sweeps import Timed, Timetable, forgotten

_log = structlog.get_logger()


class Ledger:
    """Remembers up to when each schedule is swept. One thread may use it."""

    def __init__(self, log: SweepLog) -> None:
        self._sweeps = log
        self._known: dict[str, Swept] | None = None
        self._seen: set[str] = set()  # PromotionPolicies that this process has met
        self._unwritten: dict[str, Swept | None] = {}
        self._let_go: set[tuple[str, datetime]] = set()  # too late, and said so
        self._problem = ""  # why the last write failed, as it was logged

    def due(self, table: Timetable, now: datetime) -> dict[Timed, datetime]:
        """The sweeps to be made now, each with its instant. Raises Unavailable or Denied.

        A schedule that is new here has missed nothing; from now on it can.
        """
        if not table.timed and self._known is None:
            return {}
        known = self._read()
        for key in forgotten(known, self._seen, table):
            del known[key]
            self._unwritten[key] = None
        for timed in table.timed:
            if not timed.knows(known.get(timed.key), now):
                self._put(timed, now)
        self._seen |= table.kept
        self._write(now)
        return self._due(table, known, now)

    def done(self, sweeps: Mapping[Timed, datetime], now: datetime) -> None:
        """Remember sweeps that were made. That they cannot be recorded is logged: the next is."""
        for timed, at in sweeps.items():
            self._put(timed, at)
        self._write(now)

    def _due(
        self, table: Timetable, known: Mapping[str, Swept], now: datetime
    ) -> dict[Timed, datetime]:
        sweeps: dict[Timed, datetime] = {}
        for timed in table.timed:
            at = timed.missed(known[timed.key], now)
            if at is None:
                continue
            if not timed.too_late(at, now):
                sweeps[timed] = at
            elif (timed.key, at) not in self._let_go:
                self._let_go.add((timed.key, at))
                _log.warning(
                    "A sweep was missed and it is too late to make it up",
                    promotion_policy=timed.key,
                    scheduled=at.isoformat(),
                )
        return sweeps

    def _read(self) -> dict[str, Swept]:
        if self._known is None:
            try:
                self._known = dict(self._sweeps.read())
            except InvalidInput as error:
                _log.warning("The times of earlier sweeps are not known", problem=str(error))
                self._known = {}
        return self._known

    def _put(self, timed: Timed, at: datetime) -> None:
        assert self._known is not None, "read before anything is due"
        self._known[timed.key] = self._unwritten[timed.key] = timed.swept(at)

    def _write(self, now: datetime) -> None:
        if not self._unwritten:
            return
        try:
            self._sweeps.write(self._unwritten, now)
        except FanoutError as error:
            if self._problem != str(error):  # told once, not in every pass
                _log.warning(
                    "The time of a sweep could not be recorded",
                    reason=error.reason,
                    problem=str(error),
                )
            self._problem = str(error)
            return
        if self._problem:
            _log.info("The times of sweeps are recorded again")
        self._problem = ""
        self._unwritten.clear()

"""A recurring time: when it begins by a cron line, and how long it lasts or when it ends.

A period is half-open: its first instant is in it, its last is not. `duration` is elapsed time, so
eight hours are eight hours when clocks change; `until` is wall time, so five o'clock is five
o'clock. What follows without a break, or overlaps, is one span. (Design §7.)
"""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim

from fanout.api.durations import format_duration
from fanout.calendar.instants import DAY, Instants, longest_pause
from fanout.calendar.schedule import REASON, Schedule, parse_schedule
from fanout.calendar.zone import SECOND, offset_at, parse_zone, wall_time
from fanout.errors import InvalidInput
from fanout.values import frozen

LONGEST = 366 * DAY  # seconds that a period may last
HORIZON = 5 * LONGEST  # what goes on for longer goes on for ever
_LOOK_BACK = LONGEST + 2 * DAY  # a period that began earlier is over
_KEPT = 4096
_LOOKED_AT = datetime(2000, 1, 1, tzinfo=UTC), datetime(2042, 1, 1, tzinfo=UTC)


@frozen
class Span:
    """A stretch without a break: from `start` up to, and without, `end`; None: for ever.

    In seconds since 1970. Of a span that has begun, `start` is one of its beginnings.
    """

    start: int
    end: int | None


@dataclass(slots=True)
class _Run:
    """A span as far as it was looked at: it goes on up to `end`, or ends there when it is `whole`.

    It is the answer for every instant from `since` to its end. `seen` is where looking goes on.
    """

    since: int
    start: int
    seen: int
    end: int
    whole: bool = False


def _since(run: _Run) -> int:
    return run.since


class Period:
    """A recurring time. There is one object for all that are equal: see `period`.

    It keeps spans that it was asked for, which could be computed again at any time.
    """

    def __init__(self, schedule: Schedule, zone: ZoneInfo, lasts: timedelta | Schedule) -> None:
        """`lasts` is its duration, or the schedule of its ends."""
        self.schedule, self.zone, self.lasts = schedule, zone, lasts
        self._starts = Instants(schedule, zone)
        self._ends = Instants(lasts, zone) if isinstance(lasts, Schedule) else None
        self._duration = int(lasts.total_seconds()) if isinstance(lasts, timedelta) else 0
        self._runs: list[_Run] = []  # by `since`, none over another

    def __str__(self) -> str:
        """As people read it: `'0 8 * * 1-5' for 8h in Europe/Oslo`."""
        if isinstance(self.lasts, Schedule):
            lasts = f"until '{self.lasts.text}'"
        else:
            lasts = f"for {format_duration(self.lasts)}"
        return f"'{self.schedule.text}' {lasts} in {self.zone.key}"

    def covers(self, now: datetime) -> bool:
        """Is the instant in it?"""
        span = self.span(int(now.timestamp()))
        return span is not None and span.start <= now.timestamp()

    def span(self, instant: int) -> Span | None:
        """The span that the instant is in, or else the next one; None: the calendar ends.

        One that goes on for more than five years has no end.
        """
        run = self._known(instant)
        if run is None:
            run = self._search(instant)
            if run is None:
                return None
            self._keep(run)
        limit = max(instant, run.start) + HORIZON
        self._look(run, limit)
        return Span(run.start, run.end if run.whole and run.end <= limit else None)

    def _known(self, instant: int) -> _Run | None:
        """The run that is the answer, if it is kept."""
        place = bisect_right(self._runs, instant, key=_since) - 1
        if place < 0 or self._runs[place].end <= instant:
            return None
        return self._runs[place]

    def _keep(self, run: _Run) -> None:
        if len(self._runs) == _KEPT:
            self._runs.clear()
        place = bisect_right(self._runs, run.since, key=_since)
        if place < len(self._runs) and self._runs[place].start == run.start:
            self._runs[place] = run  # the same span, asked for from farther away
        else:
            self._runs.insert(place, run)

    def _search(self, instant: int) -> _Run | None:
        start = self._starts.last(instant, instant - _LOOK_BACK)
        if start is not None and not self._is_skipped(start):
            run = _Run(start, start, start, start)
            self._look(run, instant)
            if run.end > instant:
                return run
        start = self._starts.after(instant)
        while start is not None and self._is_skipped(start):
            start = self._starts.after(start)
        return None if start is None else _Run(instant, start, start, start)

    def _look(self, run: _Run, limit: int) -> None:
        """Find where a run ends, or that it goes on beyond a limit."""
        if run.whole or run.end > limit:
            return
        if self._ends is None:
            run.seen = self._starts.chain(run.seen, self._duration, limit)
            run.end = run.seen + self._duration
            run.whole = run.end <= limit
            return
        found = self._ends.after_without(run.seen, self._starts, self._is_skipped, limit)
        run.seen, run.end = (limit, limit + 1) if found is None else (found, found)
        run.whole = found is not None

    def _is_skipped(self, start: int) -> bool:
        """Do clocks skip all of it, from the beginning to the end? Both then fire at once."""
        if self._ends is None or self._ends.last(start, start) is None:
            return False
        at = datetime.fromtimestamp(start, UTC)
        gap = offset_at(self.zone, at) - offset_at(self.zone, at - SECOND)
        shown = wall_time(self.zone, at)
        begun = shown
        if gap > timedelta(0) and self.schedule.by_wall_clock:
            for wall in CronSim(self.schedule.line, shown - gap - SECOND):
                if wall > shown:
                    break
                begun = wall
        assert isinstance(self.lasts, Schedule)
        return begun < shown and next(CronSim(self.lasts.line, begun)) <= shown


def period(
    schedule: str, zone: str, duration: timedelta | None = None, until: str | None = None
) -> Period:
    """The period that a PromotionPolicy's window describes; equal ones are one object.

    Exactly one of `duration` and `until` is given. Raises InvalidInput for a cron line or a zone
    that is none, and for a period that lasts for no time or for more than 366 days.
    """
    return _made(schedule, zone, duration, until)


@lru_cache(maxsize=32768)
def _made(schedule: str, zone: str, duration: timedelta | None, until: str | None) -> Period:
    begins, place = parse_schedule(schedule), parse_zone(zone)
    if duration is not None:
        check_duration(duration)
        return Period(begins, place, duration)
    assert until is not None, "validation asks for one of them"
    ends = parse_schedule(until)
    check_until(begins, ends)
    return Period(begins, place, ends)


def check_duration(duration: timedelta | None) -> None:
    """Raises InvalidInput for a period that lasts for no time (None is zero), or over 366 days."""
    if not duration:
        raise InvalidInput("it lasts for no time", reason=REASON, remedy="write one like 8h")
    if duration > timedelta(seconds=LONGEST):
        problem = f"{format_duration(duration)} is longer than 366 days"
        raise InvalidInput(problem, reason=REASON, remedy="write at most 8784h")


def check_until(begins: Schedule, ends: Schedule) -> None:
    """Raises InvalidInput where a period ends when it begins, or more than 366 days later.

    Looked at are 42 years, by a clock that never changes.
    """
    if begins.line == ends.line:
        problem = "it ends when it begins: that is no time, or for ever"
        raise InvalidInput(problem, reason=REASON, remedy="write when it ends")
    if longest_pause(ends.line.split(None, 2)[2]) <= LONGEST // DAY:
        return
    zone = ZoneInfo("UTC")
    starts, stops = Instants(begins, zone), Instants(ends, zone)
    at, stop = (int(instant.timestamp()) for instant in _LOOKED_AT)
    while at < stop:
        further = stops.last(at + LONGEST, at + 1)
        if further is None:
            start, further = starts.after(at - 1), stops.after(at)
            if start is None or further is None:
                return
            if start < further - LONGEST:
                began = datetime.fromtimestamp(start, UTC)
                problem = f"what begins on {began:%Y-%m-%d} lasts for longer than 366 days"
                raise InvalidInput(problem, reason=REASON, remedy="let it end every year")
        at = further

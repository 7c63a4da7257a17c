"""Recurring windows: a cron line for the begin, and a duration or a second one.

A window is half-open: its first instant is in it, its last is not. `duration` is
elapsed time, so eight hours are eight hours when clocks change; `until` is wall time,
so five o'clock is five o'clock. Occurrences that follow without a break, or overlap,
form one span. (Design §7.)
"""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim

from fanout.api.durations import format_duration
from fanout.calendar.cron_schedule import REASON, CronSchedule, parse_schedule
from fanout.calendar.cron_times import DAY, FireTimes, longest_pause
from fanout.calendar.time_zone import SECOND, offset_at, parse_zone, wall_time
from fanout.errors import InvalidInput
from fanout.values import frozen

MAX_DURATION = 366 * DAY  # seconds that a period may last
HORIZON = 5 * MAX_DURATION  # a longer span counts as endless
_LOOK_BACK = MAX_DURATION + 2 * DAY  # seconds; a period that began earlier is over
_MAX_SPANS = 4096
_CHECKED_YEARS = datetime(2000, 1, 1, tzinfo=UTC), datetime(2042, 1, 1, tzinfo=UTC)


@frozen
class WindowSpan:
    """Contiguous time from `start` (included) to `end` (excluded), in seconds since 1970.

    An `end` of None is never. Of a span that has begun, `start` may be any of the window's starts
    in it.
    """

    start: int
    end: int | None


@dataclass(slots=True)
class _PartialSpan:
    """A span as far as it was searched: it goes on to `end`, or ends there if complete.

    It is the answer for every instant from `since` to its end. The search resumes at
    `searched_to`.
    """

    since: int
    start: int
    searched_to: int
    end: int
    complete: bool = False


def _span_since(partial: _PartialSpan) -> int:
    return partial.since


class RecurringWindow:
    """A recurring window. Equal windows are one object: see `build_window`.

    It memoizes spans, which could be computed again at any time.
    """

    def __init__(
        self, schedule: CronSchedule, zone: ZoneInfo, length: timedelta | CronSchedule
    ) -> None:
        """Create a window; `length` is its duration, or the schedule of its ends."""
        self.schedule, self.zone, self.length = schedule, zone, length
        self._starts = FireTimes(schedule, zone)
        self._ends = FireTimes(length, zone) if isinstance(length, CronSchedule) else None
        self._duration = int(length.total_seconds()) if isinstance(length, timedelta) else 0
        self._partial_spans: list[_PartialSpan] = []  # sorted by `since`, without overlaps

    def __str__(self) -> str:
        """Format the window for messages: `'0 8 * * 1-5' for 8h in Europe/Oslo`."""
        if isinstance(self.length, CronSchedule):
            length = f"until '{self.length.text}'"
        else:
            length = f"for {format_duration(self.length)}"
        return f"'{self.schedule.text}' {length} in {self.zone.key}"

    def covers(self, now: datetime) -> bool:
        """Return whether the instant is in the window."""
        span = self.find_span(int(now.timestamp()))
        return span is not None and span.start <= now.timestamp()

    def find_span(self, instant: int) -> WindowSpan | None:
        """Return the span that contains the instant, or else the next one.

        None: the calendar ends. A span that goes on for more than five years has no end.
        """
        partial = self._memoized(instant)
        if partial is None:
            partial = self._search(instant)
            if partial is None:
                return None
            self._memoize(partial)
        limit = max(instant, partial.start) + HORIZON
        self._extend(partial, limit)
        return WindowSpan(
            partial.start, partial.end if partial.complete and partial.end <= limit else None
        )

    def _memoized(self, instant: int) -> _PartialSpan | None:
        """Return the memoized span that is the answer, or None."""
        place = bisect_right(self._partial_spans, instant, key=_span_since) - 1
        if place < 0 or self._partial_spans[place].end <= instant:
            return None
        return self._partial_spans[place]

    def _memoize(self, partial: _PartialSpan) -> None:
        # Passes ask for instants near now, so old spans are dropped.
        if len(self._partial_spans) == _MAX_SPANS:
            self._partial_spans.clear()
        place = bisect_right(self._partial_spans, partial.since, key=_span_since)
        if place < len(self._partial_spans) and self._partial_spans[place].start == partial.start:
            self._partial_spans[place] = partial  # the same span, known from an earlier instant on
        else:
            self._partial_spans.insert(place, partial)

    def _search(self, instant: int) -> _PartialSpan | None:
        # An occurrence that began earlier may still cover the instant.
        start = self._starts.last_before(instant, instant - _LOOK_BACK)
        if start is not None and not self._is_skipped(start):
            partial = _PartialSpan(start, start, start, start)
            self._extend(partial, instant)
            if partial.end > instant:
                return partial
        start = self._starts.next_after(instant)
        while start is not None and self._is_skipped(start):
            start = self._starts.next_after(start)
        return None if start is None else _PartialSpan(instant, start, start, start)

    def _extend(self, partial: _PartialSpan, limit: int) -> None:
        """Extend a partial span up to its end, or beyond a limit."""
        if partial.complete or partial.end > limit:
            return
        if self._ends is None:
            partial.searched_to = self._starts.chain_end(partial.searched_to, self._duration, limit)
            partial.end = partial.searched_to + self._duration
            partial.complete = partial.end <= limit
            return
        end = self._ends.next_without(partial.searched_to, self._starts, self._is_skipped, limit)
        partial.searched_to, partial.end = (limit, limit + 1) if end is None else (end, end)
        partial.complete = end is not None

    def _is_skipped(self, start: int) -> bool:
        """Return whether clocks skip this occurrence from begin to end.

        Both then fire at once.
        """
        if self._ends is None or self._ends.last_before(start, start) is None:
            return False
        at = datetime.fromtimestamp(start, UTC)
        gap = offset_at(self.zone, at) - offset_at(self.zone, at - SECOND)
        wall_at_start = wall_time(self.zone, at)
        begin_wall = wall_at_start
        if gap > timedelta(0) and self.schedule.by_wall_clock:
            for wall in CronSim(self.schedule.line, wall_at_start - gap - SECOND):
                if wall > wall_at_start:
                    break
                begin_wall = wall
        assert isinstance(self.length, CronSchedule)
        return (
            begin_wall < wall_at_start
            and next(CronSim(self.length.line, begin_wall)) <= wall_at_start
        )


def build_window(
    schedule: str, zone: str, duration: timedelta | None = None, until: str | None = None
) -> RecurringWindow:
    """Return the window that a PromotionPolicy describes; equal ones are one object.

    Exactly one of `duration` and `until` is given. Raises InvalidInput for an invalid cron
    line or zone, and for a window that lasts for no time or for more than 366 days.
    """
    return _build_window(schedule, zone, duration, until)


@lru_cache(maxsize=32768)
def _build_window(
    schedule: str, zone: str, duration: timedelta | None, until: str | None
) -> RecurringWindow:
    begin_schedule, time_zone = parse_schedule(schedule), parse_zone(zone)
    if duration is not None:
        check_duration(duration)
        return RecurringWindow(begin_schedule, time_zone, duration)
    assert until is not None, "validation asks for one of them"
    end_schedule = parse_schedule(until)
    check_until(begin_schedule, end_schedule)
    return RecurringWindow(begin_schedule, time_zone, end_schedule)


def check_duration(duration: timedelta | None) -> None:
    """Raise InvalidInput for a duration of zero (or None), or above 366 days."""
    if not duration:
        raise InvalidInput("it lasts for no time", reason=REASON, remedy="write one like 8h")
    if duration > timedelta(seconds=MAX_DURATION):
        problem = f"{format_duration(duration)} is longer than 366 days"
        raise InvalidInput(problem, reason=REASON, remedy="write at most 8784h")


def check_until(begins: CronSchedule, ends: CronSchedule) -> None:
    """Raise InvalidInput if a window ends when it begins, or more than 366 days later.

    Checked over 42 years, by a clock that never changes.
    """
    if begins.line == ends.line:
        problem = "it ends when it begins: that is no time, or for ever"
        raise InvalidInput(problem, reason=REASON, remedy="write when it ends")
    if longest_pause(ends.line.split(None, 2)[2]) <= MAX_DURATION // DAY:
        return
    zone = ZoneInfo("UTC")
    starts, stops = FireTimes(begins, zone), FireTimes(ends, zone)
    at, stop = (int(instant.timestamp()) for instant in _CHECKED_YEARS)
    while at < stop:
        next_end = stops.last_before(at + MAX_DURATION, at + 1)
        if next_end is None:
            start, next_end = starts.next_after(at - 1), stops.next_after(at)
            if start is None or next_end is None:
                return
            if start < next_end - MAX_DURATION:
                began = datetime.fromtimestamp(start, UTC)
                problem = f"what begins on {began:%Y-%m-%d} lasts for longer than 366 days"
                raise InvalidInput(problem, reason=REASON, remedy="let it end every year")
        at = next_end

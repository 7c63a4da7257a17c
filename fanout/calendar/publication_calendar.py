"""Publication calendars: whether publication is open, and the next change.

Deny beats allow; the allow windows of one PromotionPolicy are ORed, none means always; a policy
that several PromotionPolicies name is open when all of them are (docs/concepts/windows.md).

A window is half-open: its first instant is in it, its last is not. `duration` is
elapsed time, so eight hours are eight hours when clocks change; `until` is wall time,
so five o'clock is five o'clock. Occurrences that follow without a break, or overlap,
form one span.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim

from fanout.api.durations import format_duration
from fanout.api.text_fields import list_first
from fanout.calendar.cron_schedule import (
    DAY,
    REASON,
    CronSchedule,
    FireTimes,
    longest_pause,
    parse_schedule,
)
from fanout.calendar.time_zone import SECOND, offset_at, parse_zone, wall_time
from fanout.errors import InvalidInput
from fanout.values import Value

MAX_DURATION = 366 * DAY  # seconds that a period may last
HORIZON = 5 * MAX_DURATION  # a longer span counts as endless
_LOOK_BACK = MAX_DURATION + 2 * DAY  # seconds; a period that began earlier is over
_CHECKED_YEARS = datetime(2000, 1, 1, tzinfo=UTC), datetime(2042, 1, 1, tzinfo=UTC)


class WindowSpan(Value):
    """Contiguous time from `start` (included) to `end` (excluded), in seconds since 1970.

    An `end` of None is never. Of a span that has begun, `start` may be any of the window's starts
    in it.
    """

    start: int
    end: int | None


class RecurringWindow:
    """A recurring window. Equal windows are one object: see `build_window`."""

    def __init__(
        self, schedule: CronSchedule, zone: ZoneInfo, length: timedelta | CronSchedule
    ) -> None:
        """Create a window; `length` is its duration, or the schedule of its ends."""
        self.schedule, self.zone, self.length = schedule, zone, length
        self._starts = FireTimes(schedule, zone)
        self._ends = FireTimes(length, zone) if isinstance(length, CronSchedule) else None
        self._duration = int(length.total_seconds()) if isinstance(length, timedelta) else 0

    def __str__(self) -> str:
        """Format the window for messages: `'0 8 * * 1-5' for 8h in Europe/Oslo`."""
        if isinstance(self.length, CronSchedule):
            length = f"until '{self.length.text}'"
        else:
            length = f"for {format_duration(self.length)}"
        return f"'{self.schedule.text}' {length} in {self.zone.key}"

    def find_span(self, instant: int) -> WindowSpan | None:
        """Return the span that contains the instant, or else the next one.

        None: the calendar ends. A span that goes on for more than five years has no end.
        """
        # An occurrence that began earlier may still cover the instant.
        start = self._starts.last_before(instant, instant - _LOOK_BACK)
        if start is not None and not self._is_skipped(start):
            end = self._find_end(start, instant + HORIZON)
            if end is None or end > instant:
                return WindowSpan(start, end)
        start = self._starts.next_after(instant)
        while start is not None and self._is_skipped(start):
            start = self._starts.next_after(start)
        return None if start is None else WindowSpan(start, self._find_end(start, start + HORIZON))

    def _find_end(self, start: int, limit: int) -> int | None:
        """Return the end of the span that contains a start of the window; None if past a limit."""
        if self._ends is not None:
            end = self._ends.next_without(start, self._starts, self._is_skipped, limit)
        else:
            end = self._starts.chain_end(start, self._duration, limit) + self._duration
        return end if end is not None and end <= limit else None

    def _is_skipped(self, start: int) -> bool:
        """Return whether clocks skip this occurrence from begin to end. Both then fire at once."""
        if self._ends is None or self._ends.last_before(start, start) is None:
            return False
        at = datetime.fromtimestamp(start, UTC)
        gap = offset_at(self.zone, at) - offset_at(self.zone, at - SECOND)
        begin_wall = wall_at_start = wall_time(self.zone, at)
        if gap > timedelta(0) and self.schedule.by_wall_clock:
            for wall in CronSim(self.schedule.line, wall_at_start - gap - SECOND):
                if wall > wall_at_start:
                    break
                begin_wall = wall
        assert isinstance(self.length, CronSchedule)
        if begin_wall >= wall_at_start:
            return False
        return next(CronSim(self.length.line, begin_wall)) <= wall_at_start


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
        raise InvalidInput("the duration is zero", reason=REASON, remedy="write one like 8h")
    if duration > timedelta(seconds=MAX_DURATION):
        problem = f"{format_duration(duration)} is longer than 366 days"
        raise InvalidInput(problem, reason=REASON, remedy="write at most 8784h")


def check_until(begins: CronSchedule, ends: CronSchedule) -> None:
    """Raise InvalidInput if a window ends when it begins, or more than 366 days later.

    Checked over 42 years, by a clock that never changes.
    """
    if begins.line == ends.line:
        problem = "its start and its end have the same schedule"
        raise InvalidInput(problem, reason=REASON, remedy="write another end")
    if longest_pause(ends.line.split(None, 2)[2]) <= MAX_DURATION // DAY:
        return
    zone = ZoneInfo("UTC")
    starts, stops = FireTimes(begins, zone), FireTimes(ends, zone)
    at, stop = (int(instant.timestamp()) for instant in _CHECKED_YEARS)
    while at < stop:
        if (next_end := stops.last_before(at + MAX_DURATION, at + 1)) is None:
            start, next_end = starts.next_after(at - 1), stops.next_after(at)
            if start is None or next_end is None:
                return
            if start < next_end - MAX_DURATION:
                began = datetime.fromtimestamp(start, UTC)
                problem = f"the window that starts on {began:%Y-%m-%d} lasts longer than 366 days"
                raise InvalidInput(problem, reason=REASON, remedy="let it end within a year")
        at = next_end


MAX_STEPS = 20_000  # steps of the search for one edge, each to the end of a span
_SHOWN = 2
_SPANS_PER_STEP = 20  # spans checked in the time of one step


class PublicationCalendar(Value):
    """Allow and deny windows of one PromotionPolicy. The name is empty if it belongs to none."""

    name: str
    allow: tuple[RecurringWindow, ...] = ()
    deny: tuple[RecurringWindow, ...] = ()
    lets_finish: bool = False  # a rollout that has begun goes on after they close


class ClosingCause(Value):
    """Cause of a closed time: a denied time, or the end of the allowed times."""

    calendar: str
    denies: bool
    windows: tuple[RecurringWindow, ...]

    @property
    def owner_clause(self) -> str:
        """Return the PromotionPolicy whose windows these are, as messages name it."""
        return f" of PromotionPolicy {self.calendar}" if self.calendar else ""

    @property
    def window_names(self) -> str:
        """Return the first windows, as messages name them."""
        return list_first(self.windows, _SHOWN)


class WindowState(Value):
    """State of publication: whether it is open, and until when.

    `until` is the next instant at which `open` changes, None when that is never. `cause` is what
    closes it: now, or at `until`; None when nothing does.
    """

    open: bool
    until: datetime | None
    message: str
    cause: ClosingCause | None = None


def compute_window_state(calendars: Sequence[PublicationCalendar], now: datetime) -> WindowState:
    """Return the state of all calendars at `now`, and the next change.

    Two bounds apply. What does not change within five years never does: `until` is None. Where the
    search takes more than 20,000 spans, each beginning before another ends, `until` is how far it
    came: nothing changes before, and the caller has to ask again then.
    """
    at = int(now.timestamp())
    closed = _closing_cause(calendars, at)
    if closed is None:
        # The first time that closes, with its cause; of several the first calendar's.
        edges: list[tuple[int, ClosingCause]] = []
        for calendar in calendars:
            name = calendar.name
            for window, span in _spans(calendar.deny, at):
                edges.append((span.start, ClosingCause(name, denies=True, windows=(window,))))
            allowed_end, last_windows, _ = _skip_covered(calendar.allow, at, MAX_STEPS)
            if calendar.allow and allowed_end is not None:
                edges.append((allowed_end, ClosingCause(name, denies=False, windows=last_windows)))
        closes, cause = min(edges, key=lambda edge: edge[0], default=(None, None))
        if closes is None or cause is None or closes - at > HORIZON:
            return WindowState(True, None, "publication is open")
        change = "a denied time{} begins" if cause.denies else "an allowed time{} ends"
        clause = f"publication is open until {change.format(cause.owner_clause)}"
        closes_at = datetime.fromtimestamp(closes, UTC)
        return WindowState(True, closes_at, f"{clause}: {cause.window_names}", cause)
    clause = "by a denied time"
    if not closed.denies:
        clause = f"outside of the allowed {'times' if len(closed.windows) > 1 else 'time'}"
    message = f"publication is closed {clause}{closed.owner_clause}: {closed.window_names}"
    opens = _opens_at(calendars, at)
    until = datetime.fromtimestamp(opens, UTC) if opens is not None else None
    return WindowState(False, until, message, closed)


def iterate_changes(
    calendars: Sequence[PublicationCalendar], after: datetime
) -> Iterator[tuple[datetime, WindowState]]:
    """Yield the instants after `after` at which `open` changes, with the new state.

    Ends where nothing changes within five years.
    """
    state = compute_window_state(calendars, after)
    last_change = after
    while state.until is not None and state.until - last_change <= timedelta(seconds=HORIZON):
        at, was_open = state.until, state.open
        state = compute_window_state(calendars, at)
        if state.open != was_open:
            yield at, state
            last_change = at


def is_open(calendars: Sequence[PublicationCalendar], now: datetime) -> bool:
    """Return whether all calendars are open at `now`.

    Unlike the full state, this does not search for the next change.
    """
    return _closing_cause(calendars, int(now.timestamp())) is None


def _closing_cause(calendars: Iterable[PublicationCalendar], at: int) -> ClosingCause | None:
    """Return the cause that closes an instant, or None. The longest denied time goes first."""
    denied: tuple[float, ClosingCause] | None = None
    not_allowed: ClosingCause | None = None
    for calendar in calendars:
        for window in calendar.deny:
            if (span := window.find_span(at)) is None or span.start > at:
                continue
            end = float("inf") if span.end is None else span.end
            # People want to know when publication opens, which the longest denial decides.
            if denied is None or end > denied[0]:
                denied = end, ClosingCause(calendar.name, denies=True, windows=(window,))
        if not_allowed is None and calendar.allow and _allowed_from(calendar.allow, at) != at:
            not_allowed = ClosingCause(calendar.name, denies=False, windows=calendar.allow)
    return denied[1] if denied else not_allowed


def _opens_at(calendars: Sequence[PublicationCalendar], at: int) -> int | None:
    """Return when publication opens that is closed at an instant, None if never."""
    allows = [calendar.allow for calendar in calendars if calendar.allow]
    denied = dict.fromkeys(window for calendar in calendars for window in calendar.deny)
    now, steps_left = at, MAX_STEPS
    while steps_left > 0:
        undenied, _, steps = _skip_covered(denied, now, steps_left)
        steps_left -= steps
        starts = [None if undenied is None else _allowed_from(allow, undenied) for allow in allows]
        # The instant moves to the latest begin; whether the other calendars are open there is
        # checked in the next round. It opens when a round moves nothing.
        later = max([undenied, *starts], key=lambda start: float("inf") if start is None else start)
        if later is None or later - at > HORIZON:
            return None
        if later == undenied and steps_left > 0:
            return later
        now = later
        steps_left -= 1 + sum(map(len, allows)) // _SPANS_PER_STEP
    return now


def _spans(
    windows: Iterable[RecurringWindow], at: int
) -> Iterator[tuple[RecurringWindow, WindowSpan]]:
    yield from ((it, span) for it in windows if (span := it.find_span(at)) is not None)


def _allowed_from(windows: Iterable[RecurringWindow], at: int) -> int | None:
    """Return the first instant from this one on that is in one of the windows, or None."""
    first: int | None = None
    for _, span in _spans(windows, at):
        if span.start <= at:
            return at
        first = span.start if first is None else min(first, span.start)
    return first


def _skip_covered(
    windows: Collection[RecurringWindow], at: int, steps_left: int
) -> tuple[int | None, tuple[RecurringWindow, ...], int]:
    """Return the first instant from this one on that is in no window, and the steps taken.

    The instant is None for never. With it the window, if any, that ends there: windows that follow
    each other without a break are one time. Stops after `steps_left` steps, where it has come to.
    """
    limit, steps = at + HORIZON, 0
    last_windows: tuple[RecurringWindow, ...] = ()
    is_covered = True
    while is_covered and at <= limit and steps < steps_left:
        is_covered = False
        steps += len(windows) // _SPANS_PER_STEP
        for window in windows:
            if (span := window.find_span(at)) is not None and span.start <= at:
                if span.end is None:
                    return None, (window,), steps
                at, last_windows, is_covered = span.end, (window,), True
                steps += 1
    return at if at <= limit else None, last_windows, steps

"""Publication calendars: whether publication is open, and the next change.

Deny beats allow; the allow windows of one PromotionPolicy are ORed, none means always;
a policy that several PromotionPolicies name is open when all of them are. (Design §7.)
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush

from fanout.calendar.recurring_window import HORIZON, RecurringWindow, WindowSpan
from fanout.values import frozen

MAX_STEPS = 20_000  # steps of the search for one edge, each to the end of a span
_SHOWN = 2
_SPANS_PER_STEP = 20  # spans checked in the time of one step


@frozen
class PublicationCalendar:
    """Allow and deny windows of one PromotionPolicy.

    The name is empty if it belongs to none.
    """

    name: str
    allow: tuple[RecurringWindow, ...] = ()
    deny: tuple[RecurringWindow, ...] = ()


@frozen
class WindowState:
    """State of publication: whether it is open, and until when.

    `until` is the next instant at which `open` changes, None when that is never. `calendar`
    and `window` are what closes it: now, or at `until`; empty when nothing does.
    """

    open: bool
    until: datetime | None
    sentence: str
    calendar: str = ""
    window: str = ""


@frozen
class _ClosureCause:
    """Cause of a closed time: a denied time, or the end of the allowed times."""

    calendar: str
    denies: bool
    windows: tuple[RecurringWindow, ...]

    @property
    def window_names(self) -> str:
        rest = len(self.windows) - _SHOWN
        shown = ", ".join(map(str, self.windows[:_SHOWN]))
        return f"{shown} and {rest} more" if rest > 0 else shown


def compute_window_state(calendars: Sequence[PublicationCalendar], now: datetime) -> WindowState:
    """Return the state of all calendars at `now`, and the next change.

    Two bounds apply. What does not change within five years never does: `until` is None.
    Where the search takes more than 20,000 spans, each beginning before another ends,
    `until` is how far it came: nothing changes before, and the caller has to ask again
    then.
    """
    at = int(now.timestamp())
    closed = _closing_cause(calendars, at)
    if closed is None:
        closes, cause = _closes_at(calendars, at)
        if cause is None:
            return WindowState(True, None, "publication is open")
        return WindowState(
            True,
            _to_datetime(closes),
            _open_until_sentence(cause),
            cause.calendar,
            cause.window_names,
        )
    opens_at = _to_datetime(_opens_at(calendars, at))
    return WindowState(
        False, opens_at, _closed_sentence(closed), closed.calendar, closed.window_names
    )


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


def _closing_cause(calendars: Iterable[PublicationCalendar], at: int) -> _ClosureCause | None:
    """Return the cause that closes an instant, or None.

    The longest denied time precedes all others.
    """
    denied: tuple[float, _ClosureCause] | None = None
    not_allowed: _ClosureCause | None = None
    for calendar in calendars:
        for window in calendar.deny:
            span = window.find_span(at)
            if span is None or span.start > at:
                continue
            end = float("inf") if span.end is None else span.end
            # People want to know when publication opens, which the longest denial decides.
            if denied is None or end > denied[0]:
                denied = end, _ClosureCause(calendar.name, denies=True, windows=(window,))
        if not_allowed is None and calendar.allow and _allowed_from(calendar.allow, at) != at:
            not_allowed = _ClosureCause(calendar.name, denies=False, windows=calendar.allow)
    return denied[1] if denied else not_allowed


def _closes_at(
    calendars: Iterable[PublicationCalendar], at: int
) -> tuple[int | None, _ClosureCause | None]:
    """Return when an open instant's time closes and the cause.

    Of several the first calendar's.
    """
    edges: list[tuple[int, _ClosureCause]] = []
    for calendar in calendars:
        starts = ((span.start, window) for window, span in _spans(calendar.deny, at))
        first = min(starts, key=lambda start: start[0], default=None)
        if first is not None:
            edges.append((first[0], _ClosureCause(calendar.name, denies=True, windows=(first[1],))))
        if calendar.allow and (allowed_end := _allowed_to(calendar.allow, at)) is not None:
            edges.append(
                (
                    allowed_end[0],
                    _ClosureCause(calendar.name, denies=False, windows=(allowed_end[1],)),
                )
            )
    closes, cause = min(edges, key=lambda edge: edge[0], default=(None, None))
    return (closes, cause) if closes is not None and closes - at <= HORIZON else (None, None)


def _opens_at(calendars: Sequence[PublicationCalendar], at: int) -> int | None:
    """Return when publication opens that is closed at an instant, None if never."""
    allows = [calendar.allow for calendar in calendars if calendar.allow]
    denied_times = _DeniedTimes([window for calendar in calendars for window in calendar.deny], at)
    now, steps_left = at, MAX_STEPS
    while steps_left > 0:
        undenied, steps = denied_times.skip_denied(now, steps_left)
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


class _DeniedTimes:
    """Denied times in the order in which they begin."""

    def __init__(self, windows: Iterable[RecurringWindow], at: int) -> None:
        numbered_spans = enumerate(_spans(dict.fromkeys(windows), at))
        self._limit = at + HORIZON
        self._ahead = [
            (span.start, number, span.end, window) for number, (window, span) in numbered_spans
        ]
        heapify(self._ahead)

    def skip_denied(self, at: int, steps_left: int) -> tuple[int | None, int]:
        """Return the first instant from `at` that is not denied, and the steps taken.

        The instant is None for never. Stops after `steps_left` steps and returns how far it
        came.
        """
        steps = 0
        while self._ahead and self._ahead[0][0] <= at and steps < steps_left:
            _, number, end, window = heappop(self._ahead)
            if end is None or end > self._limit:
                return None, steps
            at = max(at, end)
            if (span := window.find_span(at)) is not None:
                heappush(self._ahead, (span.start, number, span.end, window))
            steps += 1
        return at, steps


def _spans(
    windows: Iterable[RecurringWindow], at: int
) -> Iterator[tuple[RecurringWindow, WindowSpan]]:
    for window in windows:
        if (span := window.find_span(at)) is not None:
            yield window, span


def _allowed_from(windows: Iterable[RecurringWindow], at: int) -> int | None:
    """Return the first instant from this one on that is in one of the windows, or None."""
    first: int | None = None
    for _, span in _spans(windows, at):
        if span.start <= at:
            return at
        first = span.start if first is None else min(first, span.start)
    return first


def _allowed_to(windows: Sequence[RecurringWindow], at: int) -> tuple[int, RecurringWindow] | None:
    """Return when the allowed time ends that contains the instant, and its last window.

    None: never. Windows that follow each other without a break form one allowed time.
    """
    limit, steps_left = at + HORIZON, MAX_STEPS
    last_window: RecurringWindow | None = None
    covered = True
    while covered and at <= limit and steps_left > 0:
        covered = False
        steps_left -= len(windows) // _SPANS_PER_STEP
        for window in windows:
            span = window.find_span(at)
            if span is not None and span.start <= at:
                if span.end is None:
                    return None
                at, last_window, covered = span.end, window, True
                steps_left -= 1
    return None if last_window is None or at > limit else (at, last_window)


def _closed_sentence(cause: _ClosureCause) -> str:
    """Format why publication is closed."""
    if cause.denies:
        clause = f"by a denied time{_owner_clause(cause)}"
    else:
        times = "times" if len(cause.windows) > 1 else "time"
        clause = f"outside of the allowed {times}{_owner_clause(cause)}"
    return f"publication is closed {clause}: {cause.window_names}"


def _open_until_sentence(cause: _ClosureCause) -> str:
    """Format until when publication is open."""
    subject, verb = ("a denied time", "begins") if cause.denies else ("an allowed time", "ends")
    return f"publication is open until {subject}{_owner_clause(cause)} {verb}: {cause.window_names}"


def _owner_clause(cause: _ClosureCause) -> str:
    return f" of PromotionPolicy {cause.calendar}" if cause.calendar else ""


def _to_datetime(at: int | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)

"""Is publication open now, which window says so, and when does that change?

Deny beats allow; the allow windows of one PromotionPolicy are ORed, none means always; what several
PromotionPolicies name is open when all of them are. (Design §7.)
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush

from fanout.calendar.periods import HORIZON, Period, Span
from fanout.values import frozen

EFFORT = 20_000  # steps of the search for one edge, each to the end of a span
_SHOWN = 2
_GLANCES = 20  # spans that are looked at in the time of a step


@frozen
class Calendar:
    """The windows of one PromotionPolicy; without a name, of nobody in particular."""

    name: str
    allow: tuple[Period, ...] = ()
    deny: tuple[Period, ...] = ()


@frozen
class Opening:
    """Whether publication is open, and until when.

    `until` is the next instant at which `open` changes, None when that is never. `calendar` and
    `window` are what closes it: now, or at `until`; empty when nothing does.
    """

    open: bool
    until: datetime | None
    sentence: str
    calendar: str = ""
    window: str = ""


@frozen
class _Cause:
    """What closes: a denied time, or the end of the allowed times."""

    calendar: str
    denies: bool
    windows: tuple[Period, ...]

    @property
    def words(self) -> str:
        rest = len(self.windows) - _SHOWN
        shown = ", ".join(map(str, self.windows[:_SHOWN]))
        return f"{shown} and {rest} more" if rest > 0 else shown


def opening(calendars: Sequence[Calendar], now: datetime) -> Opening:
    """Whether all calendars are open at `now`, and the next instant at which that changes.

    Two bounds. What does not change within five years never does: `until` is None. And where it
    takes more than 20,000 spans, one beginning before another ends, `until` is how far they were
    looked at: nothing changes before, and it has to be asked again then.
    """
    at = int(now.timestamp())
    closed = _closed_by(calendars, at)
    if closed is None:
        closes, cause = _closes(calendars, at)
        if cause is None:
            return Opening(True, None, "publication is open")
        return Opening(True, _instant(closes), _said_ahead(cause), cause.calendar, cause.words)
    opens = _instant(_opens(calendars, at))
    return Opening(False, opens, _said(closed), closed.calendar, closed.words)


def changes(calendars: Sequence[Calendar], after: datetime) -> Iterator[tuple[datetime, Opening]]:
    """The instants after one at which `open` changes, in order, each with what it is from then on.

    It ends where nothing changes within five years.
    """
    found = opening(calendars, after)
    changed = after
    while found.until is not None and found.until - changed <= timedelta(seconds=HORIZON):
        at, was = found.until, found.open
        found = opening(calendars, at)
        if found.open != was:
            yield at, found
            changed = at


def is_open(calendars: Sequence[Calendar], now: datetime) -> bool:
    """Whether all calendars are open at `now`: `opening` without the search for the edge."""
    return _closed_by(calendars, int(now.timestamp())) is None


def _closed_by(calendars: Iterable[Calendar], at: int) -> _Cause | None:
    """What closes at an instant: of denied times the one that lasts longest, before all others."""
    denied: tuple[float, _Cause] | None = None
    missed: _Cause | None = None
    for calendar in calendars:
        for window in calendar.deny:
            span = window.span(at)
            if span is None or span.start > at:
                continue
            end = float("inf") if span.end is None else span.end
            if denied is None or end > denied[0]:
                denied = end, _Cause(calendar.name, denies=True, windows=(window,))
        if missed is None and calendar.allow and _allowed_from(calendar.allow, at) != at:
            missed = _Cause(calendar.name, denies=False, windows=calendar.allow)
    return denied[1] if denied else missed


def _closes(calendars: Iterable[Calendar], at: int) -> tuple[int | None, _Cause | None]:
    """When it closes that is open at an instant, and by what; the first calendar's of several."""
    edges: list[tuple[int, _Cause]] = []
    for calendar in calendars:
        starts = ((span.start, one) for one, span in _spans(calendar.deny, at))
        first = min(starts, key=lambda start: start[0], default=None)
        if first is not None:
            edges.append((first[0], _Cause(calendar.name, denies=True, windows=(first[1],))))
        if calendar.allow and (last := _allowed_to(calendar.allow, at)) is not None:
            edges.append((last[0], _Cause(calendar.name, denies=False, windows=(last[1],))))
    closes, cause = min(edges, key=lambda edge: edge[0], default=(None, None))
    return (closes, cause) if closes is not None and closes - at <= HORIZON else (None, None)


def _opens(calendars: Sequence[Calendar], at: int) -> int | None:
    """When it opens that is closed at an instant."""
    allows = [calendar.allow for calendar in calendars if calendar.allow]
    denials = _Denials([one for calendar in calendars for one in calendar.deny], at)
    now, effort = at, EFFORT
    while effort > 0:
        free, spent = denials.over(now, effort)
        effort -= spent
        starts = [None if free is None else _allowed_from(allow, free) for allow in allows]
        later = max([free, *starts], key=lambda start: float("inf") if start is None else start)
        if later is None or later - at > HORIZON:
            return None
        if later == free and effort > 0:
            return later
        now = later
        effort -= 1 + sum(map(len, allows)) // _GLANCES
    return now


class _Denials:
    """The denied times, as they come."""

    def __init__(self, windows: Iterable[Period], at: int) -> None:
        found = enumerate(_spans(dict.fromkeys(windows), at))
        self._limit = at + HORIZON
        self._ahead = [(span.start, number, span.end, one) for number, (one, span) in found]
        heapify(self._ahead)

    def over(self, at: int, effort: int) -> tuple[int | None, int]:
        """The first instant from this one on that is not denied, or as far as the effort goes; and
        what it took. None: never.
        """
        spent = 0
        while self._ahead and self._ahead[0][0] <= at and spent < effort:
            _, number, end, window = heappop(self._ahead)
            if end is None or end > self._limit:
                return None, spent
            at = max(at, end)
            if (span := window.span(at)) is not None:
                heappush(self._ahead, (span.start, number, span.end, window))
            spent += 1
        return at, spent


def _spans(windows: Iterable[Period], at: int) -> Iterator[tuple[Period, Span]]:
    for window in windows:
        if (span := window.span(at)) is not None:
            yield window, span


def _allowed_from(windows: Iterable[Period], at: int) -> int | None:
    """The first instant from this one on that is in one of the windows."""
    first: int | None = None
    for _, span in _spans(windows, at):
        if span.start <= at:
            return at
        first = span.start if first is None else min(first, span.start)
    return first


def _allowed_to(windows: Sequence[Period], at: int) -> tuple[int, Period] | None:
    """When the windows end that an instant is in, by one or by several without a break; and the
    last of them. None: never.
    """
    limit, effort = at + HORIZON, EFFORT
    last: Period | None = None
    covered = True
    while covered and at <= limit and effort > 0:
        covered = False
        effort -= len(windows) // _GLANCES
        for window in windows:
            span = window.span(at)
            if span is not None and span.start <= at:
                if span.end is None:
                    return None
                at, last, covered = span.end, window, True
                effort -= 1
    return None if last is None or at > limit else (at, last)


def _said(cause: _Cause) -> str:
    """Why it is closed."""
    if cause.denies:
        how = f"by a denied time{_whose(cause)}"
    else:
        times = "times" if len(cause.windows) > 1 else "time"
        how = f"outside of the allowed {times}{_whose(cause)}"
    return f"publication is closed {how}: {cause.words}"


def _said_ahead(cause: _Cause) -> str:
    """Until when it is open."""
    what, does = ("a denied time", "begins") if cause.denies else ("an allowed time", "ends")
    return f"publication is open until {what}{_whose(cause)} {does}: {cause.words}"


def _whose(cause: _Cause) -> str:
    return f" of PromotionPolicy {cause.calendar}" if cause.calendar else ""


def _instant(at: int | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)

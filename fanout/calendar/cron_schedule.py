"""Cron schedules: the grammar of a cron line, validated before any use.

The grammar is crontab(5)'s and nothing more. cronsim, which does the arithmetic, also
takes a sixth field, ``5/15``, ``L`` and ``#``; a line that means something else to
another cron is refused here, with the spelling that every cron reads alike.

cronsim counts on a clock without a zone; which instants its wall times are is decided
here, because clocks that jump by half an hour or at midnight need more care than it
takes. The rules are those of Debian's cron (docs/concepts/schedules.md):

* A schedule whose minute and hour name fixed times goes by the wall clock. A time that
  the clock skips fires at the gap's end; one that comes twice fires the first time.
* A schedule with a star in minute or hour goes by elapsed time: it fires whenever the
  clock shows a time that fits, the hour that comes twice included, and nothing is made
  up for skipped times.

Windows ask for fire times thousands of times per pass, so FireTimes looks them
up by day: a cron line is a set of days and a set of times of day. On a day without a
change of clocks its instants are midnight plus these times; on other days they are
computed one by one. Its instants are whole seconds since 1970.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from fanout.calendar.time_zone import SECOND, first_change, instant_of, wall_time
from fanout.errors import InvalidInput
from fanout.values import Value

REASON = "InvalidSchedule"
MACROS = MappingProxyType(
    {
        "@yearly": "0 0 1 1 *",
        "@annually": "0 0 1 1 *",
        "@monthly": "0 0 1 * *",
        "@weekly": "0 0 * * 0",
        "@daily": "0 0 * * *",
        "@midnight": "0 0 * * *",
        "@hourly": "0 * * * *",
    }
)
MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
MONTHS = MappingProxyType({name: number for number, name in enumerate(MONTH_NAMES, start=1)})
DAYS = MappingProxyType({name: number for number, name in enumerate(DAY_NAMES)})
_NUMBER = re.compile(r"[0-9]{1,9}")
ELEMENT = re.compile(
    r"(?:(?P<star>\*)|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\w+))?", re.ASCII
)
LONG_BEFORE = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall time; all patterns recur in 40 years


class CronField(Value):
    """One of the five fields of a cron line: name, range, and names for numbers."""

    name: str
    low: int
    high: int
    names: Mapping[str, int]


FIELDS = (
    CronField("minute", 0, 59, {}),
    CronField("hour", 0, 23, {}),
    CronField("day-of-month", 1, 31, {}),
    CronField("month", 1, 12, MONTHS),
    CronField("day-of-week", 0, 7, DAYS),
)


class CronSchedule(Value):
    """A valid cron line. `by_wall_clock`: neither minute nor hour begins with a star."""

    text: str  # as the user wrote it
    line: str  # five fields, names as numbers
    by_wall_clock: bool


@lru_cache(maxsize=32768)  # thousands of windows are parsed again in each pass
def parse_schedule(text: str) -> CronSchedule:
    """Parse a cron line or @macro: crontab(5)'s five fields.

    Raises InvalidInput with the spelling to use instead, also for a schedule that never fires.
    """
    line = text.strip()
    if line.startswith("@"):
        if line not in MACROS:
            remedy = f"write one of {', '.join(MACROS)}, or five fields"
            raise _refusal(text, f"{line} is not a schedule", remedy)
        line = MACROS[line]
    elif "=" in line:
        raise _refusal(text, "a cron line cannot set variables", "name the zone in timeZone")
    fields = line.split()
    if len(fields) == len(FIELDS) + 1:
        shorter = " ".join(fields[1:])
        raise _refusal(text, "it has six fields, cron has five", f"leave out seconds: {shorter!r}")
    if len(fields) != len(FIELDS):
        problem = f"it has {len(fields)} field{'s' * (len(fields) != 1)}, cron has five"
        remedy = "write minute, hour, day-of-month, month, day-of-week, such as '*/15 8-16 * * 1-5'"
        raise _refusal(text, problem, remedy)
    parts = [
        # A leading star stays, as cron gives it a meaning.
        ",".join(_normalize_element(text, field, element) for element in part.lower().split(","))
        for field, part in zip(FIELDS, fields, strict=True)
    ]
    # Normalized, so that equal schedules share memoized times whatever their spelling.
    line = " ".join(parts)
    try:
        next(CronSim(line, LONG_BEFORE))
    except (StopIteration, CronSimError):
        # One such as February 30 would be waited for in silence.
        problem = "it never fires: none of its months has that day"
        raise _refusal(text, problem, "change day-of-month or month") from None
    return CronSchedule(text, line, not (parts[0].startswith("*") or parts[1].startswith("*")))


def _normalize_element(text: str, field: CronField, element: str) -> str:
    """Normalize one element: a star, a number or a range, with an optional step."""
    # Signs of Quartz and similar crons, which crontab(5) does not know.
    signs = "?#lw" if field.name == "day-of-month" else "?#"
    if field.names is DAYS and re.fullmatch(r"l|[0-7]l|[a-z]{3}l", element):
        signs += "l"
    for sign in signs:
        if sign in element and element not in field.names:
            remedy = _suggest_for_sign(sign, field, element)
            raise _refusal(text, f"{field.name}: cron has no {sign.upper()!r}", remedy)
    if (match := ELEMENT.fullmatch(element)) is None:
        numbers = f"numbers from {field.low} to {field.high}"
        remedy = f"write {numbers}, ranges, lists or steps like '*/2'"
        raise _refusal(text, f"{field.name}: cannot read {element!r}", remedy)
    step = ""
    if (written := match["step"]) is not None:
        if not _NUMBER.fullmatch(written) or int(written) == 0:
            problem = f"{field.name}: the step is {written!r}"
            raise _refusal(text, problem, "write a number from 1 upward")
        step = f"/{int(written)}"
    if match["star"]:
        return f"*{step}"
    low = _parse_number(text, field, match["low"])
    # The highest number that is no other name for the lowest (Sunday: 0, 7).
    highest = min(field.high, 6) if field.names is DAYS else field.high
    if match["high"] is None:
        if step:
            suggestion = f"{low}-{highest}{step}"
            raise _refusal(text, f"{field.name}: a step needs a range", f"write {suggestion!r}")
        return str(low)
    if (high := _parse_number(text, field, match["high"])) < low:
        head = f"{low}-{highest}" if low < highest else str(low)
        tail = f"{field.low}-{high}" if high > field.low else str(high)
        remedy = f"write '{head},{tail}'"
        if field.names is DAYS and high == 0:
            remedy = f"write '{low}-7': Sunday is 7 as well"
        raise _refusal(text, f"{field.name}: the range {element!r} runs backward", remedy)
    if low == high:  # cronsim takes a step after a single number as a range from it
        return str(low)
    return f"{low}-{high}{step}"


def _parse_number(text: str, field: CronField, word: str) -> int:
    if word in field.names:
        return field.names[word]
    if _NUMBER.fullmatch(word) and field.low <= int(word) <= field.high:
        return int(word)
    names = f" or {', '.join(field.names)}" if field.names else ""
    remedy = f"write a number from {field.low} to {field.high}{names}"
    raise _refusal(text, f"{field.name}: there is no {word!r}", remedy)


def _suggest_for_sign(sign: str, field: CronField, element: str) -> str:
    weekday, _, week = element.partition("#")
    match sign:
        case "?":
            return "write '*'"
        case "#" if week == "1":  # a leading star makes cron require both day fields
            return f"write '*/100,1-7' as day-of-month and {weekday!r} as day-of-week"
        case "#":
            return (
                "cron cannot express 'the second Monday'; '8-14' as day-of-month is the second week"
            )
        case "w":
            return f"write {element.removesuffix('w')!r} for the day itself"
        case _ if field.names is DAYS and element != "l":
            return f"write {element.removesuffix('l')!r} for every week"
        case _ if field.names is DAYS:
            return "write '6' for Saturday"
        case _:
            return (
                "write '1' for the first day of the month, or '28' for a day that every month has"
            )


def _refusal(text: str, problem: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"schedule {text!r}: {problem}", reason=REASON, remedy=remedy)


# Seconds. The rarest pattern there is, a 29th of February on a given weekday, recurs in 40 years.
LONGEST_FIRE_INTERVAL = 50 * 366 * 24 * 3600


def next_fire(schedule: CronSchedule, zone: ZoneInfo, after: datetime) -> datetime:
    """Return the first instant after `after` (aware) at which the schedule fires, in UTC."""
    return list_fires(schedule, zone, after, 1)[0]


def list_fires(
    schedule: CronSchedule, zone: ZoneInfo, after: datetime, count: int
) -> list[datetime]:
    """List the first `count` fire times after `after`, in order, in UTC."""
    fire_times, instant = FireTimes(schedule, zone), int(after.timestamp())
    fires: list[datetime] = []
    while len(fires) < count:
        following = fire_times.next_after(instant)
        assert following is not None, "times are accepted until long before the calendar ends"
        instant = following
        fires.append(datetime.fromtimestamp(instant, UTC))
    return fires


def last_fire(schedule: CronSchedule, zone: ZoneInfo, before: datetime) -> datetime | None:
    """Return the latest fire time not after `before`, in UTC; None if there is none."""
    instant = int(before.timestamp())
    latest = FireTimes(schedule, zone).last_before(instant, instant - LONGEST_FIRE_INTERVAL)
    return datetime.fromtimestamp(latest, UTC) if latest is not None else None


DAY = 24 * 3600
FIRST_DAY, LAST_DAY = date(3, 1, 1).toordinal(), date(9998, 12, 31).toordinal()
RAREST = 42  # years in which every pattern recurs
_MIDNIGHT = datetime(2001, 1, 1)  # noqa: DTZ001 - a wall time


class ZoneDay(Value):
    """A day in a zone, from the first instant of its midnight to the next day's.

    `plain`: clocks change neither in it nor as it begins. Where midnight is skipped, a day
    begins at the end of the gap.
    """

    start: int
    end: int
    plain: bool


class FireTimes:
    """Fire times of a schedule in a zone, by day. Everything kept can be computed again."""

    def __init__(self, schedule: CronSchedule, zone: ZoneInfo) -> None:
        minute, hour, *days = schedule.line.split()
        self._schedule, self._zone = schedule, zone
        self._times = _times_of_day(minute, hour)
        self._days = " ".join(days)

    def next_after(self, instant: int) -> int | None:
        """Return the first instant after this one; None where the calendar ends."""
        ordinal = self._next_day(_ordinal_at(self._zone, instant))
        while ordinal is not None:
            start, seconds = self._seconds_on(ordinal)
            if (place := bisect_right(seconds, instant - start)) < len(seconds):
                return start + seconds[place]
            ordinal = self._next_day(ordinal + 1)
        return None

    def last_before(self, instant: int, earliest: int) -> int | None:
        """Return the last instant up to and including this one; None if before `earliest`."""
        first = _ordinal_at(self._zone, earliest)
        ordinal = self._previous_day(_ordinal_at(self._zone, instant), first)
        while ordinal is not None:
            start, seconds = self._seconds_on(ordinal)
            if place := bisect_right(seconds, instant - start):
                latest = start + seconds[place - 1]
                return latest if latest >= earliest else None
            ordinal = self._previous_day(ordinal - 1, first)
        return None

    def chain_end(self, instant: int, gap: int, limit: int) -> int:
        """Return the last instant of the chain whose members follow within `gap` seconds.

        The chain begins at `instant`. The search stops past `limit`: the first instant found
        there is returned.
        """
        while instant <= limit:
            ordinal = _ordinal_at(self._zone, instant)
            start = _compute_day(self._zone, ordinal).start
            ends = _chain_ends(self.times_on(ordinal), gap)
            last = start + ends[bisect_left(ends, instant - start)]
            if (following := self.next_after(last)) is None or following - last > gap:
                return last
            instant = following
        return instant

    def next_without(
        self, instant: int, other: "FireTimes", is_kept: Callable[[int], bool], limit: int
    ) -> int | None:
        """Return the first instant after this one that is none of the other schedule's.

        None: none by `limit`. On days on which clocks change, an instant of both counts if
        `is_kept` returns True for it.
        """
        ordinal = self._next_day(_ordinal_at(self._zone, instant))
        while ordinal is not None and _compute_day(self._zone, ordinal).start <= limit:
            day = _compute_day(self._zone, ordinal)
            others = frozenset(other.times_on(ordinal))
            # A time that clocks skip fires at the gap's end for both schedules, though their wall
            # times differ.
            for at in self.times_on(ordinal):
                is_own = at not in others or (not day.plain and is_kept(day.start + at))
                if day.start + at > instant and is_own:
                    return day.start + at
            ordinal = self._next_day(ordinal + 1)
        return None

    def _seconds_on(self, ordinal: int) -> tuple[int, tuple[int, ...]]:
        return _compute_day(self._zone, ordinal).start, self.times_on(ordinal)

    def times_on(self, ordinal: int) -> tuple[int, ...]:
        """Return the fire times of a day, by its ordinal, in seconds since the day began."""
        if not _compute_day(self._zone, ordinal).plain:
            return _times_with_change(self._schedule, self._zone, ordinal)
        return self._times if self._matches_day(ordinal) else ()

    # ---- days ----------------------------------------------------------------------------------
    # A time that clocks skip may fire on the following day, so that day is searched too.

    def _next_day(self, ordinal: int) -> int | None:
        """Return the first day from this one on that may have an instant, or None."""
        if ordinal > LAST_DAY or self._matches_day(ordinal - 1):
            return ordinal if ordinal <= LAST_DAY else None
        first = date.fromordinal(ordinal).year
        for year in range(first, min(first + RAREST, 9999)):
            days = _matching_days(self._days, year)
            if (place := bisect_left(days, ordinal)) < len(days):
                return days[place]
        return None

    def _previous_day(self, ordinal: int, first: int) -> int | None:
        """Return the last day from `first` to this one that may have an instant, or None."""
        for year in range(date.fromordinal(ordinal).year, date.fromordinal(first).year - 2, -1):
            days = _matching_days(self._days, year)
            if place := bisect_right(days, ordinal):
                latest = min(days[place - 1] + 1, ordinal)
                return latest if latest >= first else None
        return None

    def _matches_day(self, ordinal: int) -> bool:
        return _matches(self._days, date.fromordinal(ordinal))


def _ordinal_at(zone: ZoneInfo, instant: int) -> int:
    ordinal = datetime.fromtimestamp(instant, zone).toordinal()
    ordinal = min(max(ordinal, FIRST_DAY), LAST_DAY)
    if instant < _compute_day(zone, ordinal).start:
        # The local date alone is ambiguous where clocks change around midnight.
        return ordinal - 1  # clocks were set back over midnight
    return ordinal + 1 if instant >= _compute_day(zone, ordinal).end else ordinal


@lru_cache(maxsize=65536)
def _compute_day(zone: ZoneInfo, ordinal: int) -> ZoneDay:
    midnight = datetime.fromordinal(ordinal)
    start = instant_of(zone, midnight)
    end = instant_of(zone, midnight + timedelta(days=1))
    plain = (
        wall_time(zone, start) == midnight
        and end - start == timedelta(days=1)
        and first_change(zone, start - SECOND, end - SECOND) is None
    )
    return ZoneDay(int(start.timestamp()), int(end.timestamp()), plain)


@lru_cache(maxsize=32768)
def _matching_days(days: str, year: int) -> tuple[int, ...]:
    """Return the ordinals of a year's days that match the three day fields."""
    eve = datetime(year, 1, 1) - timedelta(minutes=1)  # noqa: DTZ001 - a wall time
    ordinals = []
    for midnight in CronSim(f"0 0 {days}", eve):
        if midnight.year != year:
            break
        ordinals.append(midnight.toordinal())
    return tuple(ordinals)


def _matches(days: str, day: date) -> bool:
    """Return whether a day matches the three day fields."""
    ordinals = _matching_days(days, day.year)
    place = bisect_left(ordinals, day.toordinal())
    return place < len(ordinals) and ordinals[place] == day.toordinal()


@lru_cache(maxsize=32768)
def longest_pause(days: str) -> int:
    """Return the longest pause, in days, between matches of a cron line's day fields.

    Computed over twelve years: a pattern that does not match in each of them has a pause of
    more than 366 days there.
    """
    matching = [day for year in range(2000, 2012) for day in _matching_days(days, year)]
    matching = [date(1999, 12, 31).toordinal(), *matching, date(2012, 1, 1).toordinal()]
    # Both ends of the interval count as matches, so that a pause beyond it is not overlooked.
    return max(later - day for day, later in pairwise(matching))


@lru_cache(maxsize=32768)
def _times_of_day(minute: str, hour: str) -> tuple[int, ...]:
    seconds: list[int] = []
    for wall in CronSim(f"{minute} {hour} * * *", _MIDNIGHT - timedelta(minutes=1)):
        if wall.date() != _MIDNIGHT.date():
            break
        seconds.append(wall.hour * 3600 + wall.minute * 60)
    return tuple(seconds)


@lru_cache(maxsize=8192)
def _times_with_change(schedule: CronSchedule, zone: ZoneInfo, ordinal: int) -> tuple[int, ...]:
    """Compute the fire times of a day on which clocks change, one by one."""
    day = _compute_day(zone, ordinal)
    minute, hour, *day_fields = schedule.line.split()
    times, days = _times_of_day(minute, hour), " ".join(day_fields)
    instants: set[int] = set()
    if schedule.by_wall_clock:
        # Times of the day before, too: those that clocks skip at its end fire in this day.
        for date_ordinal in (ordinal - 1, ordinal):
            midnight = datetime.fromordinal(date_ordinal)
            for second in times if _matches(days, midnight) else ():
                fire_time = instant_of(zone, midnight + timedelta(seconds=second))
                instants.add(int(fire_time.timestamp()))
    else:
        instant = day.start
        while instant < day.end:
            wall = wall_time(zone, datetime.fromtimestamp(instant, UTC))
            is_time = wall.hour * 3600 + wall.minute * 60 in times and not wall.second
            if is_time and _matches(days, wall):
                instants.add(instant)
            instant += 60 - wall.second
    return tuple(sorted(it - day.start for it in instants if day.start <= it < day.end))


@lru_cache(maxsize=32768)
def _chain_ends(seconds: tuple[int, ...], gap: int) -> tuple[int, ...]:
    """Return the times after which none follows within the gap on the same day."""
    follow = pairwise((*seconds, DAY * 1000))
    return tuple(second for second, following in follow if following - second > gap)

"""The instants of a schedule, looked up by day: windows ask for them thousands of times a pass.

A cron line is a set of days and a set of times of day. On a day without a change of clocks its
instants are midnight plus these times; on the others they are what `fires` says. Instants are whole
seconds since 1970.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from cronsim import CronSim

from fanout.calendar.fires import next_fire
from fanout.calendar.schedule import Schedule
from fanout.calendar.zone import SECOND, first_change, instant_of, wall_time
from fanout.values import frozen

DAY = 24 * 3600
FIRST_DAY, LAST_DAY = date(3, 1, 1).toordinal(), date(9998, 12, 31).toordinal()
RAREST = 42  # years: every pattern recurs within them (see `fires`)
_MIDNIGHT = datetime(2001, 1, 1)  # noqa: DTZ001 - a wall time


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: there are up to 1440 of them
class Times:
    """The instants of one day, as seconds since it began; ascending."""

    seconds: tuple[int, ...]


_NONE = Times(())


@frozen
class Day:
    """A day in a zone: from the first instant at which clocks show its midnight to the next day's.

    `plain`: clocks change neither in it nor as it begins. Where midnight is skipped, a day begins
    at the end of the gap.
    """

    start: int
    end: int
    plain: bool


class Instants:
    """A schedule in a zone. All that is kept is what could be computed again."""

    def __init__(self, schedule: Schedule, zone: ZoneInfo) -> None:
        minute, hour, *days = schedule.line.split()
        self._schedule, self._zone = schedule, zone
        self._times = _times_of_day(minute, hour)
        self._days = " ".join(days)

    def after(self, instant: int) -> int | None:
        """The first instant after this one; None where the calendar ends."""
        ordinal = self._from(_day_at(self._zone, instant))
        while ordinal is not None:
            start, seconds = self._of_day(ordinal)
            place = bisect_right(seconds, instant - start)
            if place < len(seconds):
                return start + seconds[place]
            ordinal = self._from(ordinal + 1)
        return None

    def last(self, instant: int, earliest: int) -> int | None:
        """The last instant up to and including this one, if it is not before `earliest`."""
        first = _day_at(self._zone, earliest)
        ordinal = self._back(_day_at(self._zone, instant), first)
        while ordinal is not None:
            start, seconds = self._of_day(ordinal)
            if place := bisect_right(seconds, instant - start):
                found = start + seconds[place - 1]
                return found if found >= earliest else None
            ordinal = self._back(ordinal - 1, first)
        return None

    def chain(self, instant: int, gap: int, limit: int) -> int:
        """The last of the instants from this one on that follow each other within `gap`.

        Past `limit` it is not looked any further: the first one found there is the answer.
        """
        while instant <= limit:
            ordinal = _day_at(self._zone, instant)
            start = _day(self._zone, ordinal).start
            ends = _ends(self.times_on(ordinal), gap)
            last = start + ends[bisect_left(ends, instant - start)]
            following = self.after(last)
            if following is None or following - last > gap:
                return last
            instant = following
        return instant

    def after_without(
        self, instant: int, other: "Instants", kept: Callable[[int], bool], limit: int
    ) -> int | None:
        """The first instant after this one that is none of the other schedule's; None: none by
        `limit`.

        Where clocks change, an instant of both counts all the same when `kept` says so.
        """
        ordinal = self._from(_day_at(self._zone, instant))
        while ordinal is not None and _day(self._zone, ordinal).start <= limit:
            day = _day(self._zone, ordinal)
            times, others = self.times_on(ordinal), other.times_on(ordinal)
            seconds = _without(times, others)
            if not day.plain:
                both = set(others.seconds)
                seconds = tuple(
                    at for at in times.seconds if at not in both or kept(day.start + at)
                )
            place = bisect_right(seconds, instant - day.start)
            if place < len(seconds):
                return day.start + seconds[place]
            ordinal = self._from(ordinal + 1)
        return None

    def _of_day(self, ordinal: int) -> tuple[int, tuple[int, ...]]:
        return _day(self._zone, ordinal).start, self.times_on(ordinal).seconds

    def times_on(self, ordinal: int) -> Times:
        """The instants of a day."""
        if not _day(self._zone, ordinal).plain:
            return _odd_times(self._schedule, self._zone, ordinal)
        return self._times if self._fits(ordinal) else _NONE

    # ---- days ----------------------------------------------------------------------------------
    # A time that clocks skip may fire on the day after, so that one is looked at as well.

    def _from(self, ordinal: int) -> int | None:
        """The first day from this one on that may have an instant."""
        if ordinal > LAST_DAY or self._fits(ordinal - 1):
            return ordinal if ordinal <= LAST_DAY else None
        first = date.fromordinal(ordinal).year
        for year in range(first, min(first + RAREST, 9999)):
            days = _matching(self._days, year)
            place = bisect_left(days, ordinal)
            if place < len(days):
                return days[place]
        return None

    def _back(self, ordinal: int, first: int) -> int | None:
        """The last day up to this one, and not before `first`, that may have an instant."""
        for year in range(date.fromordinal(ordinal).year, date.fromordinal(first).year - 2, -1):
            days = _matching(self._days, year)
            if place := bisect_right(days, ordinal):
                found = min(days[place - 1] + 1, ordinal)
                return found if found >= first else None
        return None

    def _fits(self, ordinal: int) -> bool:
        days = _matching(self._days, date.fromordinal(ordinal).year)
        place = bisect_left(days, ordinal)
        return place < len(days) and days[place] == ordinal


def _day_at(zone: ZoneInfo, instant: int) -> int:
    """The ordinal of the day that the instant is in."""
    ordinal = datetime.fromtimestamp(instant, zone).toordinal()
    ordinal = min(max(ordinal, FIRST_DAY), LAST_DAY)
    if instant < _day(zone, ordinal).start:
        return ordinal - 1  # clocks have gone back over midnight
    return ordinal + 1 if instant >= _day(zone, ordinal).end else ordinal


@lru_cache(maxsize=65536)
def _day(zone: ZoneInfo, ordinal: int) -> Day:
    midnight = datetime.fromordinal(ordinal)
    start = instant_of(zone, midnight)
    end = instant_of(zone, midnight + timedelta(days=1))
    plain = (
        wall_time(zone, start) == midnight
        and end - start == timedelta(days=1)
        and first_change(zone, start - SECOND, end - SECOND) is None
    )
    return Day(int(start.timestamp()), int(end.timestamp()), plain)


@lru_cache(maxsize=32768)
def _matching(days: str, year: int) -> tuple[int, ...]:
    """The ordinals of the days of a year that fit day-of-month, month and day-of-week."""
    eve = datetime(year, 1, 1) - timedelta(minutes=1)  # noqa: DTZ001 - a wall time
    found = []
    for midnight in CronSim(f"0 0 {days}", eve):
        if midnight.year != year:
            break
        found.append(midnight.toordinal())
    return tuple(found)


@lru_cache(maxsize=32768)
def longest_pause(days: str) -> int:
    """How many days may lie between two that fit the last three fields of a cron line.

    Of twelve years: what does not come in each of them has a pause of more than 366 days there.
    """
    found = [day for year in range(2000, 2012) for day in _matching(days, year)]
    found = [date(1999, 12, 31).toordinal(), *found, date(2012, 1, 1).toordinal()]
    return max(later - day for day, later in pairwise(found))


@lru_cache(maxsize=32768)
def _times_of_day(minute: str, hour: str) -> Times:
    seconds: list[int] = []
    for wall in CronSim(f"{minute} {hour} * * *", _MIDNIGHT - timedelta(minutes=1)):
        if wall.date() != _MIDNIGHT.date():
            break
        seconds.append(wall.hour * 3600 + wall.minute * 60)
    return Times(tuple(seconds))


@lru_cache(maxsize=8192)
def _odd_times(schedule: Schedule, zone: ZoneInfo, ordinal: int) -> Times:
    """The instants of a day on which clocks change, one by one."""
    day = _day(zone, ordinal)
    seconds: list[int] = []
    instant = day.start - 1
    while True:
        found = next_fire(schedule, zone, datetime.fromtimestamp(instant, UTC))
        instant = int(found.timestamp())
        if instant >= day.end:
            return Times(tuple(seconds))
        seconds.append(instant - day.start)


@lru_cache(maxsize=32768)
def _ends(times: Times, gap: int) -> tuple[int, ...]:
    """Those after which nothing follows within the gap on the same day."""
    follow = (*times.seconds[1:], DAY * 1000)
    return tuple(one for one, other in zip(times.seconds, follow, strict=True) if other - one > gap)


@lru_cache(maxsize=32768)
def _without(times: Times, others: Times) -> tuple[int, ...]:
    gone = frozenset(others.seconds)
    return tuple(second for second in times.seconds if second not in gone)

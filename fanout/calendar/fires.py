"""The instants at which a schedule fires in a time zone.

cronsim counts on a clock without a zone; which instants its wall times are is decided here, because
clocks that jump by half an hour or at midnight need more care than it takes. The rules are Debian's
cron's (design §7):

* A schedule whose minute and hour name fixed times goes by the wall clock. A time that the clock
  skips fires at the gap's end; one that comes twice fires the first time.
* A schedule with a star in minute or hour goes by elapsed time: it fires whenever the clock shows a
  time that fits, the hour that comes twice included, and what is skipped is nothing missed.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim

from fanout.calendar.schedule import Schedule
from fanout.calendar.zone import SECOND, first_change, instant_of, offset_at, wall_time

# The rarest pattern there is, a 29th of February on a given weekday, recurs within 40 years.
LONGEST = timedelta(days=50 * 366)
ANY_JUMP = timedelta(hours=26)  # zones lie between UTC-12 and UTC+14


def next_fire(schedule: Schedule, zone: ZoneInfo, after: datetime) -> datetime:
    """The first instant after `after` (aware) at which the schedule fires, in UTC."""
    after = after.astimezone(UTC)
    if schedule.by_wall_clock:
        return _next_by_wall_clock(schedule, zone, after)
    return _next_by_elapsed_time(schedule, zone, after)


def fires(schedule: Schedule, zone: ZoneInfo, after: datetime, count: int) -> list[datetime]:
    """The first `count` instants after `after`, in order."""
    return list(islice(_all_fires(schedule, zone, after), count))


def last_fire(schedule: Schedule, zone: ZoneInfo, before: datetime) -> datetime | None:
    """The latest instant not after `before` at which the schedule fires, in UTC, or None."""
    before = before.astimezone(UTC)
    span = timedelta(minutes=2)
    while (found := next_fire(schedule, zone, before - span)) > before:
        span *= 2
        if span > LONGEST:
            return None
    late = before
    while late - found > SECOND:
        middle = found + (late - found) / 2
        candidate = next_fire(schedule, zone, middle)
        if candidate <= before:
            found = candidate
        else:
            late = middle
    return found


def _all_fires(schedule: Schedule, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    while True:
        after = next_fire(schedule, zone, after)
        yield after


def _next_by_wall_clock(schedule: Schedule, zone: ZoneInfo, after: datetime) -> datetime:
    for wall in CronSim(schedule.line, wall_time(zone, after)):
        instant = instant_of(zone, wall)
        if instant > after:  # else it is the second time that clocks show it
            return instant
    raise AssertionError(schedule)  # parse_schedule refuses what never fires


def _next_by_elapsed_time(schedule: Schedule, zone: ZoneInfo, after: datetime) -> datetime:
    """Search from one change of the clock to the next: between them a wall time is unique.

    Changes farther than ANY_JUMP from both ends cannot matter: clocks there show times that lie
    between the one at `after` and the one searched for, and none of those fits.
    """
    while True:
        offset = offset_at(zone, after)
        wall = next(CronSim(schedule.line, after.replace(tzinfo=None) + offset))
        instant = (wall - offset).replace(tzinfo=UTC)
        near = min(instant, after + ANY_JUMP)
        change = first_change(zone, after, near)
        if change is None:
            if near == instant:
                return instant
            after = max(near, instant - ANY_JUMP)
            continue
        if (fitting := _at_change(schedule, zone, change)) is not None:
            return fitting
        after = change


def _at_change(schedule: Schedule, zone: ZoneInfo, change: datetime) -> datetime | None:
    """The instant of the change itself, when the schedule fires at what clocks then show."""
    wall = wall_time(zone, change)
    return change if next(CronSim(schedule.line, wall - SECOND)) == wall else None

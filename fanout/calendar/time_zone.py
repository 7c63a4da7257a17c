"""Time zones by their IANA names, and the instants at which their clocks change."""

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from fanout.errors import InvalidInput

# Names in some zone databases whose meaning depends on the machine.
LOCAL_NAMES = frozenset({"localtime", "posixrules", "Factory"})
PROBE = timedelta(hours=12)  # clocks of one zone never jump twice within this
SECOND = timedelta(seconds=1)


def parse_zone(name: str) -> ZoneInfo:
    """Return the zone of an IANA name. Raises InvalidInput, which suggests the closest name."""
    if name not in LOCAL_NAMES and not name.startswith(("posix/", "right/")):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            pass
    suggestion = _closest_name(name)
    remedy = f"did you mean {suggestion!r}?" if suggestion else "write one like 'Europe/Oslo'"
    problem = f"there is no time zone {name[:60]!r}"
    raise InvalidInput(problem, reason="UnknownTimeZone", remedy=remedy)


def _closest_name(name: str) -> str:
    """Return the zone with the most similar name, full or city alone, or ""."""
    zones = {zone.lower(): zone for zone in sorted(available_timezones()) if "/" in zone}
    cities = {lower.rpartition("/")[2]: zone for lower, zone in zones.items()}
    wanted = name.lower().replace(" ", "_")
    for names in (zones, cities):
        if matches := get_close_matches(wanted, names, n=1, cutoff=0.8):
            return names[matches[0]]
    return ""


def wall_time(zone: ZoneInfo, instant: datetime) -> datetime:
    """Return the wall time of an instant in the zone, as a datetime without a zone."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def offset_at(zone: ZoneInfo, instant: datetime) -> timedelta:
    """Return the zone's offset from UTC at an instant."""
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def instant_of(zone: ZoneInfo, wall: datetime) -> datetime:
    """Return the first instant at which clocks show `wall`, or the end of the gap over it."""
    instant = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if wall_time(zone, instant) == wall:
        return instant
    before_jump = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    # With fold=1 a skipped wall time maps to an instant before the jump, with fold=0 to one after
    # it.
    change = first_change(zone, before_jump, instant)
    assert change is not None
    return change


def first_change(zone: ZoneInfo, start: datetime, end: datetime) -> datetime | None:
    """Return the first instant in (start, end] with another offset, or None."""
    offset = offset_at(zone, start)
    low = start.replace(microsecond=0)  # clocks jump on whole seconds
    while low < end:
        high = min(low + PROBE, end)
        if offset_at(zone, high) != offset:
            while high - low > SECOND:
                middle = low + (high - low) // (2 * SECOND) * SECOND
                if offset_at(zone, middle) == offset:
                    low = middle
                else:
                    high = middle
            return high
        low = high
    return None

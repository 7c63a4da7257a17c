"""Timestamps and durations of CEL: their texts and their parts."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from fanout.sandbox.cel_operators import (
    Duration,
    EvaluationError,
    Timestamp,
    check_int,
    no_overload,
    not_convertible,
    to_string,
)

SECOND = 10**9  # nanoseconds
UNITS = {
    "h": 3600 * SECOND,
    "m": 60 * SECOND,
    "ms": 10**6,
    "ns": 1,
    "s": SECOND,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
}
DURATION_PART = r"(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(ns|us|\u00b5s|\u03bcs|ms|s|m|h)"
DURATION_PATTERN = re.compile(rf"([-+]?)((?:{DURATION_PART})+)")
DURATION_PART_PATTERN = re.compile(DURATION_PART)
TIMESTAMP_PATTERN = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?"
    r"(?:Z|([-+])([0-9]{2}):([0-9]{2}))"
)
OFFSET_PATTERN = re.compile(r"([-+]?)([0-9]{1,2}):([0-9]{1,2})")
MAX_DIGITS = 1024  # of a number of a duration; reading digits takes quadratic time
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_duration(value: Any) -> Duration:
    """Convert a text such as `1h30m` (`duration()`)."""
    if value.__class__ is Duration:
        return Duration(value.nanoseconds)
    if value.__class__ is not str:
        raise not_convertible(value, "duration")
    if value in ("0", "+0", "-0"):
        return Duration(0)
    if (match := DURATION_PATTERN.fullmatch(value)) is None or len(value) > MAX_DIGITS:
        raise not_convertible(value, "duration")
    nanoseconds = 0
    for part in DURATION_PART_PATTERN.finditer(match[2]):
        fraction = part[2] or part[3] or ""
        nanoseconds += int(part[1] or 0) * UNITS[part[4]]
        nanoseconds += int(fraction or 0) * UNITS[part[4]] // 10 ** len(fraction)
    return Duration(check_int(-nanoseconds if match[1] == "-" else nanoseconds))


def to_timestamp(value: Any) -> Timestamp:
    """Convert a text of RFC 3339, or seconds since 1970 (`timestamp()`)."""
    if value.__class__ is Timestamp:
        return Timestamp(value.nanoseconds)
    if value.__class__ is int:
        return Timestamp.within_range(value * SECOND)
    match = TIMESTAMP_PATTERN.fullmatch(value) if value.__class__ is str else None
    if match is None:
        raise not_convertible(value, "timestamp")
    date, fraction, sign, hours, minutes = match.groups()
    try:
        offset = _read_offset(sign, hours, minutes) if sign else UTC
        local = datetime.fromisoformat(date).replace(tzinfo=UTC)
    except ValueError:
        raise not_convertible(value, "timestamp") from None
    seconds = (local - EPOCH) // timedelta(seconds=1)
    seconds -= (offset.utcoffset(None) or timedelta()) // timedelta(seconds=1)
    return Timestamp.within_range(seconds * SECOND + int((fraction or "0")[:9].ljust(9, "0")))


def _read_offset(sign: str, hours: str, minutes: str) -> timezone:
    """Return a zone with a fixed offset. Raises ValueError."""
    if int(minutes) >= 60:
        raise ValueError
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-offset if sign == "-" else offset)


def format_value(value: Any) -> str:
    """Convert a scalar or a time (`string()`): in UTC, with the digits that it needs."""
    if value.__class__ is Timestamp:
        instant = EPOCH + timedelta(seconds=value.nanoseconds // SECOND)
        fraction = _format_fraction(value.nanoseconds % SECOND)
        return f"{instant.replace(tzinfo=None).isoformat()}{fraction}Z"
    if value.__class__ is Duration:
        seconds, rest = divmod(abs(value.nanoseconds), SECOND)
        sign = "-" if value.nanoseconds < 0 else ""
        return f"{sign}{seconds}{_format_fraction(rest)}s"
    return to_string(value)


def _format_fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09}".rstrip("0").rstrip(".")


def _divide(value: int, unit: int) -> int:
    """Divide towards zero."""
    return value // unit if value >= 0 else -(-value // unit)


PARTS_OF_TIMESTAMPS: dict[str, Callable[[datetime], int]] = {
    "getDate": lambda local: local.day,
    "getDayOfMonth": lambda local: local.day - 1,
    "getDayOfWeek": lambda local: local.isoweekday() % 7,  # Sunday is 0
    "getDayOfYear": lambda local: local.timetuple().tm_yday - 1,
    "getFullYear": lambda local: local.year,
    "getHours": lambda local: local.hour,
    "getMinutes": lambda local: local.minute,
    "getMonth": lambda local: local.month - 1,
    "getSeconds": lambda local: local.second,
}
PARTS_OF_DURATIONS: dict[str, Callable[[int], int]] = {
    "getHours": lambda value: _divide(value, UNITS["h"]),
    # those beside whole seconds; the others are all of them
    "getMilliseconds": lambda value: _divide(value, UNITS["ms"]) - _divide(value, SECOND) * 1000,
    "getMinutes": lambda value: _divide(value, UNITS["m"]),
    "getSeconds": lambda value: _divide(value, SECOND),
}


def build_part(name: str) -> Callable[..., int]:
    """Build a method such as `getHours` of timestamps, in UTC or a zone, and durations."""

    def operation(value: Any, *zone: Any) -> int:
        if value.__class__ is Duration and not zone and name in PARTS_OF_DURATIONS:
            return PARTS_OF_DURATIONS[name](value.nanoseconds)
        if value.__class__ is not Timestamp or any(each.__class__ is not str for each in zone):
            raise no_overload(name, value, *zone)
        if name == "getMilliseconds":
            return int(value.nanoseconds % SECOND // UNITS["ms"])
        zone_name = zone[0] if zone else "UTC"
        match = OFFSET_PATTERN.fullmatch(zone_name)
        try:
            offset = _read_offset(*match.groups()) if match is not None else ZoneInfo(zone_name)
        except (ValueError, OSError, KeyError):  # KeyError: there is no such zone
            raise EvaluationError("there is no time zone of that name") from None
        try:
            local = (EPOCH + timedelta(seconds=value.nanoseconds // SECOND)).astimezone(offset)
        except OverflowError:
            raise EvaluationError("a timestamp is out of range") from None
        return PARTS_OF_TIMESTAMPS[name](local)

    return operation

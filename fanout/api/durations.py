"""Durations as people write them, `1h30m10s`, RFC 3339 instants, and dates of HTTP.

Days and fractions are refused, and zero means absent: a day
does not always have 24 hours where there is daylight saving, so nobody shall have to
guess.
"""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from fanout.api.field_errors import InvalidValue

DURATION_PATTERN = r"^([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?$"
MAX_DURATION = timedelta(hours=87600)
INSTANT_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"
)

_DURATION = re.compile(r"(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?", re.ASCII)
_REMEDY = "write hours, minutes and seconds in this order, like 1h30m10s"


def parse_duration(text: str) -> timedelta:
    """Parse `1h30m10s`. Raises InvalidValue for anything else, days and fractions included."""
    match = _DURATION.fullmatch(text)
    if text and match:
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        total = timedelta(seconds=hours * 3600 + minutes * 60 + seconds)
        # The bound keeps instant plus duration inside the range of datetime.
        if total <= MAX_DURATION:
            return total
        raise InvalidValue(f"{text} is longer than ten years", "write at most 87600h")
    # Days get a message of their own: Prometheus and Flux accept them, so people will write them.
    if re.fullmatch(r"[0-9hmsd]*[0-9]d[0-9hmsd]*", text):
        problem = f"{text} is in days, which are not always 24 hours"
        raise InvalidValue(problem, "write hours, like 48h")
    if "." in text or "," in text:
        problem = f"{text} has a fraction"
        raise InvalidValue(problem, "write a smaller unit, 90m for one and a half hours")
    raise InvalidValue(f"{text!r} is not a duration", _REMEDY)


def format_duration(value: timedelta) -> str:
    """Return the shortest text that `parse_duration` reads as the same. Fractions are cut off."""
    minutes, seconds = divmod(int(value.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


# One pass writes the same instant into the lines of thousands of variants.
@lru_cache(4096)
def format_instant(at: datetime) -> str:
    """Format an instant as it is shown and recorded: RFC 3339, UTC, whole seconds."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def parse_instant(value: object) -> datetime:
    """Parse an RFC 3339 instant and return it in UTC. Raises InvalidValue, also without a zone."""
    if isinstance(value, str):
        if not re.fullmatch(INSTANT_PATTERN[1:-1], value, re.ASCII):
            raise InvalidValue(f"{value!r} is not an instant", "write it like 2030-01-31T16:00:00Z")
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise InvalidValue(f"{value} is not in the calendar: {error}", "correct it") from error
    if not isinstance(value, datetime) or value.tzinfo is None:
        problem = f"{value} is not an instant with a zone"
        raise InvalidValue(problem, "write it like 2030-01-31T16:00:00Z")
    return value.astimezone(UTC)


def _read_duration(value: Any) -> timedelta | None:
    if value is None or isinstance(value, timedelta):
        return value or None
    if not isinstance(value, str):
        raise InvalidValue(f"{value!r} is not a duration", _REMEDY)
    return parse_duration(value) or None


Duration = Annotated[
    timedelta | None,
    BeforeValidator(_read_duration),
    PlainSerializer(lambda value: None if value is None else format_duration(value)),
    WithJsonSchema(
        {"type": "string", "pattern": DURATION_PATTERN, "minLength": 1, "maxLength": 30}
    ),
]
Instant = Annotated[
    datetime | None,
    BeforeValidator(lambda value: None if value is None else parse_instant(value)),
    PlainSerializer(
        lambda value: None if value is None else value.isoformat().replace("+00:00", "Z")
    ),
    # the format alone allows a lower-case t and z, and any number of decimals
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": INSTANT_PATTERN}),
]


def parse_http_date(text: str | None) -> datetime | None:
    """Return the instant of an HTTP date (RFC 9110), or None if it is none."""
    try:
        instant = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def parse_retry_after(text: str | None, now: datetime, default: float, longest: float) -> float:
    """Return the seconds of a Retry-After header, which has seconds or an HTTP date.

    `default` is for a header with neither, `longest` for one that asks for more.
    """
    try:
        seconds = float(text or default)
    except ValueError:
        if (instant := parse_http_date(text)) is None:
            return default
        seconds = (instant - now).total_seconds()
    # Written so that it is the maximum for "nan" and "inf" too.
    return max(seconds, 0.0) if seconds < longest else longest

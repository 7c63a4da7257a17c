"""Cron schedules: the grammar of a cron line, validated before any use.

The grammar is crontab(5)'s and nothing more. cronsim, which does the arithmetic, also
takes a sixth field, ``5/15``, ``L`` and ``#``; a line that means something else to
another cron is refused here, with the spelling that every cron reads alike (design §7).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType

from cronsim import CronSim, CronSimError

from fanout.errors import InvalidInput
from fanout.values import frozen

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
ELEMENT = re.compile(
    r"(?:(?P<star>\*)|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\w+))?", re.ASCII
)
LONG_BEFORE = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall time; all patterns recur in 40 years


@frozen
class CronField:
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


@frozen
class CronSchedule:
    """A valid cron line. `by_wall_clock`: neither minute nor hour begins with a star."""

    text: str  # as the user wrote it
    line: str  # five fields, names as numbers
    by_wall_clock: bool


@lru_cache(maxsize=32768)  # thousands of windows are parsed again in each pass
def parse_schedule(text: str) -> CronSchedule:
    """Parse a cron line or @macro: crontab(5)'s five fields (design §7).

    Raises InvalidInput with the spelling to use instead, also for a schedule that never
    fires.
    """
    fields = _expand_macro(text).split()
    if len(fields) == len(FIELDS) + 1:
        shorter = " ".join(fields[1:])
        raise _refusal(text, "it has six fields, cron has five", f"leave out seconds: {shorter!r}")
    if len(fields) != len(FIELDS):
        problem = f"it has {len(fields)} field{'s' * (len(fields) != 1)}, cron has five"
        remedy = "write minute, hour, day-of-month, month, day-of-week, such as '*/15 8-16 * * 1-5'"
        raise _refusal(text, problem, remedy)
    parts = [
        _normalize_field(text, field, part.lower())
        for field, part in zip(FIELDS, fields, strict=True)
    ]
    # Normalized, so that equal schedules share memoized times whatever their spelling.
    line = " ".join(parts)
    _check_fires(text, line)
    return CronSchedule(text, line, not (parts[0].startswith("*") or parts[1].startswith("*")))


def _expand_macro(text: str) -> str:
    """Return the five fields of a macro; any other text unchanged."""
    word = text.strip()
    if word.startswith("@"):
        if word not in MACROS:
            raise _refusal(
                text, f"{word} is no schedule", f"write one of {', '.join(MACROS)}, or five fields"
            )
        return MACROS[word]
    if "=" in word:
        raise _refusal(text, "a cron line sets no variables", "name the zone in timeZone")
    return word


def _normalize_field(text: str, field: CronField, part: str) -> str:
    """Normalize one field: names become numbers.

    A leading star stays, as cron gives it a meaning.
    """
    return ",".join(_normalize_element(text, field, element) for element in part.split(","))


def _normalize_element(text: str, field: CronField, element: str) -> str:
    """Normalize one element: a star, a number or a range, with an optional step."""
    _refuse_other_crons(text, field, element)
    match = ELEMENT.fullmatch(element)
    if match is None:
        remedy = (
            f"write numbers from {field.low} to {field.high}, ranges, lists or steps like '*/2'"
        )
        raise _refusal(text, f"{field.name}: cannot read {element!r}", remedy)
    step = _parse_step(text, field, match["step"])
    if match["star"]:
        return f"*{step}"
    low = _parse_number(text, field, match["low"])
    if match["high"] is None:
        if step:
            suggestion = f"{low}-{_highest_number(field)}{step}"
            raise _refusal(text, f"{field.name}: a step needs a range", f"write {suggestion!r}")
        return str(low)
    high = _parse_number(text, field, match["high"])
    if high < low:
        raise _refusal(
            text,
            f"{field.name}: the range {element!r} runs backward",
            _suggest_unwrapped(field, low, high),
        )
    if low == high:  # cronsim takes a step after a single number as a range from it
        return str(low)
    return f"{low}-{high}{step}"


def _highest_number(field: CronField) -> int:
    """Return the highest number that is no other name for the lowest (Sunday: 0, 7)."""
    return min(field.high, 6) if field.names is DAYS else field.high


def _suggest_unwrapped(field: CronField, low: int, high: int) -> str:
    if field.names is DAYS and high == 0:
        return f"write '{low}-7': Sunday is 7 as well"
    head = f"{low}-{_highest_number(field)}" if low < _highest_number(field) else str(low)
    tail = f"{field.low}-{high}" if high > field.low else str(high)
    return f"write '{head},{tail}'"


def _parse_step(text: str, field: CronField, step: str | None) -> str:
    if step is None:
        return ""
    if not step.isdecimal() or int(step) == 0:
        raise _refusal(text, f"{field.name}: the step is {step!r}", "write a number from 1 upward")
    return f"/{int(step)}"


def _parse_number(text: str, field: CronField, word: str) -> int:
    if word in field.names:
        return field.names[word]
    if word.isdecimal() and field.low <= int(word) <= field.high:
        return int(word)
    names = f" or {', '.join(field.names)}" if field.names else ""
    raise _refusal(
        text,
        f"{field.name}: there is no {word!r}",
        f"write a number from {field.low} to {field.high}{names}",
    )


def _refuse_other_crons(text: str, field: CronField, element: str) -> None:
    """Refuse signs of Quartz and similar crons, which crontab(5) does not know."""
    signs = "?#"
    if field.name == "day-of-month":
        signs += "lw"
    elif field.names is DAYS and re.fullmatch(r"l|[0-7]l|[a-z]{3}l", element):
        signs += "l"
    for sign in signs:
        if sign in element and element not in field.names:
            remedy = _suggest_for_sign(sign, field, element)
            raise _refusal(text, f"{field.name}: cron has no {sign.upper()!r}", remedy)


def _suggest_for_sign(sign: str, field: CronField, element: str) -> str:
    """Suggest what cron can say instead, or the closest."""
    weekday, _, week = element.partition("#")
    match sign:
        case "?":
            return "write '*'"
        case "#" if week == "1":  # a leading star makes cron require both day fields
            return f"write '*/100,1-7' as day-of-month and {weekday!r} as day-of-week"
        case "#":
            return "it cannot say 'the second Monday'; '8-14' as day-of-month is the second week"
        case "w":
            return f"write {element.removesuffix('w')!r} for the day itself"
        case _ if field.names is DAYS and element != "l":
            return f"write {element.removesuffix('l')!r} for every week"
        case _ if field.names is DAYS:
            return "write '6' for Saturday"
        case _:
            return "write '1' for the first day of the month, or '28' for a day that each month has"


def _check_fires(text: str, line: str) -> None:
    """Refuse a schedule that never fires, such as February 30.

    It would be waited for in silence.
    """
    try:
        next(CronSim(line, LONG_BEFORE))
    except (StopIteration, CronSimError):
        problem = "it never fires: no month it names has such a day"
        raise _refusal(text, problem, "change day-of-month or month") from None


def _refusal(text: str, problem: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"schedule {text!r}: {problem}", reason=REASON, remedy=remedy)

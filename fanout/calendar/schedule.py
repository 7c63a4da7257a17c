"""What a cron line says, checked before anything is computed from it.

The grammar is crontab(5)'s and nothing more. cronsim, which does the arithmetic, takes a sixth
field, ``5/15``, ``L`` and ``#`` as well; a line that means something else to another cron is
refused here, with the spelling that every cron reads alike (design §7).
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
class Field:
    """One of the five fields: its name for people, its range, its names for numbers."""

    name: str
    low: int
    high: int
    names: Mapping[str, int]


FIELDS = (
    Field("minute", 0, 59, {}),
    Field("hour", 0, 23, {}),
    Field("day-of-month", 1, 31, {}),
    Field("month", 1, 12, MONTHS),
    Field("day-of-week", 0, 7, DAYS),
)


@frozen
class Schedule:
    """A valid cron line. `by_wall_clock`: neither minute nor hour begins with a star."""

    text: str  # as the user wrote it
    line: str  # five fields, names as numbers
    by_wall_clock: bool


@lru_cache(maxsize=32768)  # a policy may have thousands of windows, and each pass asks again
def parse_schedule(text: str) -> Schedule:
    """The schedule that a cron line or @macro names; InvalidInput says what to write instead.

    Rules of design §7: crontab(5)'s five fields; what never fires is refused.
    """
    fields = _expand(text).split()
    if len(fields) == len(FIELDS) + 1:
        shorter = " ".join(fields[1:])
        raise _refused(text, "it has six fields, cron has five", f"leave out seconds: {shorter!r}")
    if len(fields) != len(FIELDS):
        found = f"it has {len(fields)} field{'s' * (len(fields) != 1)}, cron has five"
        remedy = "write minute, hour, day-of-month, month, day-of-week, such as '*/15 8-16 * * 1-5'"
        raise _refused(text, found, remedy)
    parts = [_field(text, field, part.lower()) for field, part in zip(FIELDS, fields, strict=True)]
    line = " ".join(parts)
    _must_fire(text, line)
    return Schedule(text, line, not (parts[0].startswith("*") or parts[1].startswith("*")))


def _expand(text: str) -> str:
    """The five fields behind a macro; anything else as it is."""
    word = text.strip()
    if word.startswith("@"):
        if word not in MACROS:
            raise _refused(
                text, f"{word} is no schedule", f"write one of {', '.join(MACROS)}, or five fields"
            )
        return MACROS[word]
    if "=" in word:
        raise _refused(text, "a cron line sets no variables", "name the zone in timeZone")
    return word


def _field(text: str, field: Field, part: str) -> str:
    """One field with its names as numbers; a leading star stays, cron gives it a meaning."""
    return ",".join(_element(text, field, element) for element in part.split(","))


def _element(text: str, field: Field, element: str) -> str:
    """One element of a field's list: a star, a number or a range, and perhaps a step."""
    _refuse_other_crons(text, field, element)
    match = ELEMENT.fullmatch(element)
    if match is None:
        remedy = (
            f"write numbers from {field.low} to {field.high}, ranges, lists or steps like '*/2'"
        )
        raise _refused(text, f"{field.name}: cannot read {element!r}", remedy)
    step = _step(text, field, match["step"])
    if match["star"]:
        return f"*{step}"
    low = _number(text, field, match["low"])
    if match["high"] is None:
        if step:
            meant = f"{low}-{_last(field)}{step}"
            raise _refused(text, f"{field.name}: a step needs a range", f"write {meant!r}")
        return str(low)
    high = _number(text, field, match["high"])
    if high < low:
        raise _refused(
            text, f"{field.name}: the range {element!r} runs backward", _unwrapped(field, low, high)
        )
    if low == high:  # cronsim takes a step after one number as counting from there
        return str(low)
    return f"{low}-{high}{step}"


def _last(field: Field) -> int:
    """The highest number that is not another name for the lowest: Sunday is 0 and 7."""
    return min(field.high, 6) if field.names is DAYS else field.high


def _unwrapped(field: Field, low: int, high: int) -> str:
    if field.names is DAYS and high == 0:
        return f"write '{low}-7': Sunday is 7 as well"
    head = f"{low}-{_last(field)}" if low < _last(field) else str(low)
    tail = f"{field.low}-{high}" if high > field.low else str(high)
    return f"write '{head},{tail}'"


def _step(text: str, field: Field, step: str | None) -> str:
    if step is None:
        return ""
    if not step.isdecimal() or int(step) == 0:
        raise _refused(text, f"{field.name}: the step is {step!r}", "write a number from 1 upward")
    return f"/{int(step)}"


def _number(text: str, field: Field, word: str) -> int:
    if word in field.names:
        return field.names[word]
    if word.isdecimal() and field.low <= int(word) <= field.high:
        return int(word)
    names = f" or {', '.join(field.names)}" if field.names else ""
    raise _refused(
        text,
        f"{field.name}: there is no {word!r}",
        f"write a number from {field.low} to {field.high}{names}",
    )


def _refuse_other_crons(text: str, field: Field, element: str) -> None:
    """Signs of Quartz and its like, which crontab(5) does not know."""
    signs = "?#"
    if field.name == "day-of-month":
        signs += "lw"
    elif field.names is DAYS and re.fullmatch(r"l|[0-7]l|[a-z]{3}l", element):
        signs += "l"
    for sign in signs:
        if sign in element and element not in field.names:
            remedy = _in_cron(sign, field, element)
            raise _refused(text, f"{field.name}: cron has no {sign.upper()!r}", remedy)


def _in_cron(sign: str, field: Field, element: str) -> str:
    """What cron can say instead, or what comes nearest."""
    weekday, _, week = element.partition("#")
    match sign:
        case "?":
            return "write '*'"
        case "#" if week == "1":  # a star in front makes cron ask for both fields
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


def _must_fire(text: str, line: str) -> None:
    """Refuse the 30th of February: it would be waited for in silence."""
    try:
        next(CronSim(line, LONG_BEFORE))
    except (StopIteration, CronSimError):
        problem = "it never fires: no month it names has such a day"
        raise _refused(text, problem, "change day-of-month or month") from None


def _refused(text: str, problem: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"schedule {text!r}: {problem}", reason=REASON, remedy=remedy)

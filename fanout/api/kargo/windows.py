"""Promotion windows as windows: recurrence rules that a cron line can say, and no others.

A window that is not translated would leave open what it was to close. So automation stays off in
the Stages that it is about, until somebody has written it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from fanout.api.durations import format_duration
from fanout.api.faults import BadValue, Path
from fanout.api.foreign.pieces import Put, Remark
from fanout.api.kargo.objects import Item
from fanout.api.kargo.selectors import selector
from fanout.api.places import fields, items
from fanout.api.texts import shown
from fanout.values import frozen

WINDOWS: Path = ("spec", "promotionWindows")
_KINDS = {"Allow": "allow", "Deny": "deny"}
_TIME = re.compile(r"(?:TZID=([^:\s]+):)?([0-9]{8}T[0-9]{6})(Z?)", re.ASCII)
_DAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_BY_HAND = "write it in spec.windows by hand, as cron lines"
_LONGEST = {"DAILY": timedelta(days=1), "WEEKLY": timedelta(days=7)}


@frozen
class Windows:
    """What becomes of the windows, and the names of Stages where automation must stay off."""

    pieces: tuple[Put | Remark, ...]
    shut: frozenset[str]


def windows(config: Item, stages: Sequence[Item]) -> Windows:
    """The windows of a ProjectConfig; `stages` are those of its Project that have targets."""
    pieces: list[Put | Remark] = []
    shut: set[str] = set()
    for index, entry in enumerate(items(config.spec.get("promotionWindows"))):
        path: Path = (*WINDOWS, index)
        bound = {stage.name for stage in stages}
        try:
            if (chosen := fields(entry).get("stageSelector")) is not None:
                chooses = selector(chosen).chooses
                bound = {stage.name for stage in stages if chooses(stage)}
            if bound != {stage.name for stage in stages}:
                problem = "windows bind all stages of a policy, and this one chooses some"
                raise BadValue(problem, "part the policy, and write it for one of the parts")
            pieces += _window(fields(entry), path)
        except BadValue as error:
            shut |= bound
            off = f"; automation stays off in {', '.join(sorted(bound))}" if bound else ""
            pieces.append(Remark(path, f"{error.problem}{off}", error.remedy or _BY_HAND))
    return Windows(tuple(pieces), frozenset(shut))


def _window(entry: Mapping[str, Any], path: Path) -> Iterator[Put | Remark]:
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise BadValue(f"{shown(kind)} is no kind of a window", "write Allow or Deny")
    to: Path = ("spec", "windows", path[-1], _KINDS[kind])
    start, zone = _time(entry.get("dtstart"), "dtstart")
    end, zone_at_end = _time(entry.get("dtend"), "dtend")
    days, longest = _days(entry.get("rrule"), start)
    length = end - start
    if zone != zone_at_end or not timedelta() < length <= longest:
        raise BadValue("it does not end before it begins again, in the same zone", "")
    if start.second:
        raise BadValue("it begins within a minute, and cron lines know whole ones", "")
    line = f"{start.minute} {start.hour} * * {days}"
    yield Put((*to, "schedule"), line, (*path, "rrule"))
    yield Put((*to, "duration"), format_duration(length), (*path, "dtend"))
    yield Put((*to, "timeZone"), zone, (*path, "dtstart"))
    problem = "to Kargo the window is there from this day on; here it always was"
    yield Remark((*path, "dtstart"), problem, lost=False)


def _days(rule: Any, start: datetime) -> tuple[str, timedelta]:
    """The days of the week for a cron line, and how long one occurrence may last."""
    if not rule:
        raise BadValue("a window that comes once has no cron line", "")
    text = str(rule).upper().removeprefix("RRULE:").rstrip(";")
    parts = dict(part.partition("=")[::2] for part in text.split(";"))
    often = parts.pop("FREQ", "")
    if often not in _LONGEST or parts.pop("INTERVAL", "1") != "1":
        raise BadValue(f"{shown(rule)} is not every day, nor every week", "")
    parts.pop("WKST", None)
    named = parts.pop("BYDAY", "")
    if parts:
        raise BadValue(f"{next(iter(parts))} of {shown(rule)} is in no cron line", "")
    days = named.split(",") if named else []
    if not days:
        return ("*" if often == "DAILY" else str(start.isoweekday() % 7)), _LONGEST[often]
    if not set(days) <= set(_DAYS):
        raise BadValue(f"BYDAY of {shown(rule)} is in no cron line", "")
    numbers = sorted({_DAYS.index(day) for day in days})
    return ",".join(map(str, numbers)), _LONGEST["WEEKLY"]


def _time(value: Any, field: str) -> tuple[datetime, str]:
    """A wall time and its zone; one without a zone is in UTC."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    try:
        if found is None:
            raise ValueError
        zone = "UTC" if found[3] else found[1] or "UTC"
        return datetime.strptime(found[2], "%Y%m%dT%H%M%S"), zone  # noqa: DTZ007 - a wall time
    except ValueError as error:
        problem = f"{field} is {shown(value)}, which is no time like TZID=Europe/Oslo:20260101T0900"
        raise BadValue(f"{problem}00", "") from error

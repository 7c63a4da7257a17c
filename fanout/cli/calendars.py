"""The calendars that `fanout schedule windows` is asked about: given as flags, or declared."""

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from fanout.api.durations import parse_duration
from fanout.api.faults import BadValue
from fanout.api.promotion_policy import PromotionPolicy
from fanout.calendar.periods import Period, period
from fanout.calendar.schedule import parse_schedule
from fanout.calendar.windows import Calendar
from fanout.calendar.zone import parse_zone
from fanout.cli.lookup import not_found
from fanout.cli.terminal import say
from fanout.cluster.declared import Declared
from fanout.errors import InvalidInput, Where
from fanout.plan.rules import calendars
from fanout.values import frozen

UTC_NAME = "UTC"
Value = TypeVar("Value")


@frozen
class Stated:
    """Windows as flags state them: all last alike."""

    allow: Sequence[str]
    deny: Sequence[str]
    duration: str
    until: str
    zone: str

    def __bool__(self) -> bool:
        """Is anything stated?"""
        return bool(self.allow or self.deny or self.duration or self.until)


def stated_calendar(stated: Stated) -> tuple[tuple[Calendar, ...], ZoneInfo]:
    """The calendar of flags, and the zone it goes by. Raises InvalidInput naming the flag."""
    if not (stated.allow or stated.deny):
        remedy = "add --allow or --deny with a cron line in quotes, or name a PromotionPolicy"
        raise _setting("no window is given", remedy)
    if bool(stated.duration) == bool(stated.until):
        problem = "a window lasts for a time or until one"
        raise _setting(problem, "give one of --duration and --until")
    zone = stated.zone or UTC_NAME
    allow = tuple(_period(stated, "--allow", line, zone) for line in stated.allow)
    deny = tuple(_period(stated, "--deny", line, zone) for line in stated.deny)
    return (Calendar("", allow, deny),), parse_zone(zone)


def declared_calendars(
    names: Collection[str], declared: Declared, namespace: str, zone: str
) -> tuple[tuple[Calendar, ...], ZoneInfo]:
    """The calendars of PromotionPolicies, and the zone to show times in: the first one's, unless
    `zone` names another.

    One without windows is named, where others have some. Raises InvalidInput for a PromotionPolicy
    that is not there, that cannot be used or is in several namespaces, and where none has windows.
    """
    found = [_promotion(name, declared, namespace) for name in dict.fromkeys(names)]
    without = [it.metadata.name for it in found if not it.spec.windows]
    problem = f"PromotionPolicy {' and '.join(without)} {'have' if without[1:] else 'has'}"
    always = "that alone lets its policies be published at all times"
    if len(without) == len(found):
        raise InvalidInput(f"{problem} no windows", reason="NotFound", remedy=always)
    if without:  # it restricts nothing: what the others say holds
        say(f"{problem} no windows: {always}")
    return calendars(found), parse_zone(zone or found[0].spec.time_zone or UTC_NAME)


def _promotion(name: str, declared: Declared, namespace: str) -> PromotionPolicy:
    known = [it for it in declared.promotions if namespace in ("", it.metadata.namespace)]
    found = [it for it in known if it.metadata.name == name]
    for key in declared.left_out:
        same = key.kind == "PromotionPolicy" and key.name == name
        if same and namespace in ("", key.namespace):
            problem = f"PromotionPolicy {name} is declared and cannot be used"
            raise InvalidInput(problem, reason="InvalidObject", remedy="see `fanout validate`")
    if not found:
        raise not_found("PromotionPolicy", [name], [it.metadata.name for it in known])
    if len(found) > 1:
        problem = f"several namespaces have a PromotionPolicy {name}"
        raise _setting(problem, "name one with --namespace")
    return found[0]


def _period(stated: Stated, flag: str, line: str, zone: str) -> Period:
    _at(flag, lambda: parse_schedule(line))
    if stated.until:
        _at("--until", lambda: parse_schedule(stated.until))
        return _at("--until", lambda: period(line, zone, until=stated.until))
    duration = _at("--duration", lambda: _duration(stated.duration))
    return _at("--duration", lambda: period(line, zone, duration=duration))


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except BadValue as error:
        raise _setting(error.problem, error.remedy) from error


def _at(flag: str, read: Callable[[], Value]) -> Value:
    """What is read; an error names the flag."""
    try:
        return read()
    except InvalidInput as error:
        if error.reason == "UnknownTimeZone":
            raise
        where = Where(field=flag)
        raise InvalidInput(
            error.problem, reason=error.reason, remedy=error.remedy, where=where
        ) from error


def _setting(problem: str, remedy: str) -> InvalidInput:
    return InvalidInput(problem, reason="InvalidSetting", remedy=remedy)

"""Calendars for `fanout schedule windows`, from flags or PromotionPolicies."""

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from fanout.api.durations import parse_duration
from fanout.api.field_errors import InvalidValue
from fanout.api.promotion_policy import PromotionPolicy
from fanout.calendar.cron_schedule import parse_schedule
from fanout.calendar.publication_calendar import PublicationCalendar
from fanout.calendar.recurring_window import RecurringWindow, build_window
from fanout.calendar.time_zone import parse_zone
from fanout.cli.declarations import build_not_found
from fanout.cli.terminal import print_message
from fanout.cluster.declared_objects import DeclaredObjects
from fanout.errors import ErrorLocation, InvalidInput
from fanout.plan.gate_inputs.stage_rule_builder import build_calendars
from fanout.values import frozen

UTC_NAME = "UTC"
Value = TypeVar("Value")


@frozen
class WindowFlags:
    """Windows given as flags; all of them have the same duration or end."""

    allow: Sequence[str]
    deny: Sequence[str]
    duration: str
    until: str
    zone: str

    def __bool__(self) -> bool:
        """Return whether any window flag is given; a time zone alone is none."""
        return bool(self.allow or self.deny or self.duration or self.until)


def parse_window_flags(flags: WindowFlags) -> tuple[tuple[PublicationCalendar, ...], ZoneInfo]:
    """Return the calendar of the flags, and its time zone.

    Raises InvalidInput naming the flag.
    """
    if not (flags.allow or flags.deny):
        remedy = "add --allow or --deny with a cron line in quotes, or name a PromotionPolicy"
        raise _invalid_setting("no window is given", remedy)
    if bool(flags.duration) == bool(flags.until):
        problem = "a window lasts for a time or until one"
        raise _invalid_setting(problem, "give one of --duration and --until")
    zone = flags.zone or UTC_NAME
    allow = tuple(_parse_period(flags, "--allow", line, zone) for line in flags.allow)
    deny = tuple(_parse_period(flags, "--deny", line, zone) for line in flags.deny)
    return (PublicationCalendar("", allow, deny),), parse_zone(zone)


def find_declared_calendars(
    names: Collection[str], declared: DeclaredObjects, namespace: str, zone: str
) -> tuple[tuple[PublicationCalendar, ...], ZoneInfo]:
    """Return the calendars of PromotionPolicies, and the time zone to show times in.

    The zone is `zone`, else the one of the first PromotionPolicy. A PromotionPolicy without
    windows restricts nothing: it is reported if others have windows. Raises InvalidInput
    for a PromotionPolicy that does not exist, is invalid or is in several namespaces, and
    if none has windows.
    """
    promotions = [_find_promotion(name, declared, namespace) for name in dict.fromkeys(names)]
    unrestricted = [it.metadata.name for it in promotions if not it.spec.windows]
    problem = (
        f"PromotionPolicy {' and '.join(unrestricted)} {'have' if unrestricted[1:] else 'has'}"
    )
    remedy = "that alone lets its policies be published at all times"
    if len(unrestricted) == len(promotions):
        raise InvalidInput(f"{problem} no windows", reason="NotFound", remedy=remedy)
    # Reported and not refused: its name may be listed together with others that have windows.
    if unrestricted:
        print_message(f"{problem} no windows: {remedy}")
    return build_calendars(promotions), parse_zone(zone or promotions[0].spec.time_zone or UTC_NAME)


def _find_promotion(name: str, declared: DeclaredObjects, namespace: str) -> PromotionPolicy:
    in_namespace = [it for it in declared.promotions if namespace in ("", it.metadata.namespace)]
    matches = [it for it in in_namespace if it.metadata.name == name]
    for key in declared.left_out:
        is_named = key.kind == "PromotionPolicy" and key.name == name
        if is_named and namespace in ("", key.namespace):
            problem = f"PromotionPolicy {name} is declared and cannot be used"
            raise InvalidInput(problem, reason="InvalidObject", remedy="see `fanout validate`")
    if not matches:
        raise build_not_found("PromotionPolicy", [name], [it.metadata.name for it in in_namespace])
    if len(matches) > 1:
        problem = f"several namespaces have a PromotionPolicy {name}"
        raise _invalid_setting(problem, "name one with --namespace")
    return matches[0]


def _parse_period(flags: WindowFlags, flag: str, line: str, zone: str) -> RecurringWindow:
    _read_flag(flag, lambda: parse_schedule(line))
    if flags.until:
        _read_flag("--until", lambda: parse_schedule(flags.until))
        return _read_flag("--until", lambda: build_window(line, zone, until=flags.until))
    duration = _read_flag("--duration", lambda: _parse_window_duration(flags.duration))
    return _read_flag("--duration", lambda: build_window(line, zone, duration=duration))


def _parse_window_duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except InvalidValue as error:
        raise _invalid_setting(error.problem, error.remedy) from error


def _read_flag(flag: str, read: Callable[[], Value]) -> Value:
    """Return what `read` returns; an InvalidInput that it raises names the flag."""
    try:
        return read()
    except InvalidInput as error:
        # The zone is checked together with each window, and comes from a flag of its own.
        if error.reason == "UnknownTimeZone":
            raise
        where = ErrorLocation(field=flag)
        raise InvalidInput(
            error.problem, reason=error.reason, remedy=error.remedy, where=where
        ) from error


def _invalid_setting(problem: str, remedy: str) -> InvalidInput:
    return InvalidInput(problem, reason="InvalidSetting", remedy=remedy)

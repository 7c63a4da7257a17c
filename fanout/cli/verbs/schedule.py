"""`fanout schedule`: print the meaning of cron lines and windows."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import click

from fanout.api.durations import format_instant, parse_duration
from fanout.api.field_errors import InvalidValue
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.table_column import TableColumn
from fanout.calendar.cron_schedule import list_fires, parse_schedule
from fanout.calendar.publication_calendar import (
    PublicationCalendar,
    RecurringWindow,
    WindowState,
    build_window,
    compute_window_state,
    iterate_changes,
)
from fanout.calendar.time_zone import parse_zone
from fanout.cli.declarations import build_not_found, open_files
from fanout.cli.input.completion import complete_promotions
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, namespace_option, with_settings
from fanout.cli.output.printer import print_objects, print_value
from fanout.cli.process_exit import invalid_setting, not_found
from fanout.cli.settings import OutputFormat, Settings, parse_instant_option
from fanout.cli.terminal import print_message
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import ErrorLocation, InvalidInput
from fanout.plan.gates.stage_rules import build_calendars

UTC_NAME = "UTC"
Result = TypeVar("Result")
_INSTANT_COLUMNS = (
    TableColumn("DAY", "status.weekday"),
    TableColumn("LOCAL", "status.local"),
    TableColumn("UTC", "metadata.name"),
)
_WINDOW_COLUMNS = (
    TableColumn("PUBLICATION", lambda view: "open" if view["status"]["open"] else "closed"),
    *_INSTANT_COLUMNS,
    TableColumn("UNTIL", lambda view: view["status"]["until"] or "for ever"),
    TableColumn("MESSAGE", "status.message", wide=True),
)
_AT_COLUMNS = (*_WINDOW_COLUMNS[:-1], TableColumn("MESSAGE", "status.message"))


def _serialize_instant(at: datetime, zone: ZoneInfo) -> dict[str, Any]:
    """Return an InstantView: an instant in UTC and in a time zone."""
    local = at.astimezone(zone)
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "InstantView",
        "metadata": {"name": format_instant(at)},
        "spec": {"timeZone": zone.key},
        "status": {"local": local.isoformat(), "weekday": local.strftime("%a")},
    }


def _serialize_opening(at: datetime, opening_state: WindowState, zone: ZoneInfo) -> dict[str, Any]:
    """Return a WindowView: whether publication is allowed, from when and until when."""
    view, cause = _serialize_instant(at, zone), opening_state.cause
    return {
        **view,
        "kind": "WindowView",
        "status": {
            **view["status"],
            "open": opening_state.open,
            "until": format_instant(opening_state.until) if opening_state.until else None,
            "promotionPolicy": cause.calendar if cause is not None else "",
            "window": cause.window_names if cause is not None else "",
            "message": opening_state.message,
        },
    }


def parse_window_flags(
    flags: Mapping[str, Any],
) -> tuple[tuple[PublicationCalendar, ...], ZoneInfo]:
    """Return the calendar of the flags, and its time zone. Raises InvalidInput naming the flag.

    All windows of the flags have the same duration or end.
    """
    if not (flags["allow"] or flags["deny"]):
        remedy = "add --allow or --deny with a cron line in quotes, or name a PromotionPolicy"
        raise invalid_setting("no window is given", remedy)
    if bool(flags["duration"]) == bool(flags["until"]):
        problem = "a window needs a duration or an end"
        raise invalid_setting(problem, "set either --duration or --until")
    zone = flags["time_zone"] or UTC_NAME
    allow = tuple(_parse_period(flags, "--allow", line, zone) for line in flags["allow"])
    deny = tuple(_parse_period(flags, "--deny", line, zone) for line in flags["deny"])
    return (PublicationCalendar("", allow, deny),), parse_zone(zone)


def find_declared_calendars(
    names: Collection[str], declared: DeclaredObjects, namespace: str, zone: str
) -> tuple[tuple[PublicationCalendar, ...], ZoneInfo]:
    """Return the calendars of PromotionPolicies, and the time zone to show times in.

    The zone is `zone`, else the one of the first PromotionPolicy. One without windows restricts
    nothing: it is reported if others have windows. Raises InvalidInput for a PromotionPolicy that
    does not exist, is invalid or is in several namespaces, and if none has windows.
    """
    in_namespace = [it for it in declared.promotions if namespace in ("", it.metadata.namespace)]
    broken = {
        key.name
        for key in declared.left_out
        if key.kind == "PromotionPolicy" and namespace in ("", key.namespace)
    }
    promotions: list[PromotionPolicy] = []
    for name in dict.fromkeys(names):
        matches = [it for it in in_namespace if it.metadata.name == name]
        if name in broken:
            problem = f"PromotionPolicy {name} has an error"
            raise InvalidInput(problem, reason="InvalidObject", remedy="run `fanout validate`")
        if not matches:
            existing = [it.metadata.name for it in in_namespace]
            raise build_not_found("PromotionPolicy", [name], existing)
        if len(matches) > 1:
            problem = f"several namespaces have a PromotionPolicy {name}"
            raise invalid_setting(problem, "choose one with --namespace")
        promotions += matches
    unrestricted = [it.metadata.name for it in promotions if not it.spec.windows]
    problem = (
        f"PromotionPolicy {' and '.join(unrestricted)} {'have' if unrestricted[1:] else 'has'}"
    )
    remedy = "so its policies can be published at all times"
    if len(unrestricted) == len(promotions):
        raise not_found(f"{problem} no windows", remedy)
    # Reported and not refused: its name may be listed together with others that have windows.
    if unrestricted:
        print_message(f"{problem} no windows: {remedy}")
    return build_calendars(promotions), parse_zone(zone or promotions[0].spec.time_zone or UTC_NAME)


def _parse_period(flags: Mapping[str, Any], flag: str, line: str, zone: str) -> RecurringWindow:
    _read_flag(flag, lambda: parse_schedule(line))
    if until := flags["until"]:
        _read_flag("--until", lambda: parse_schedule(until))
        return _read_flag("--until", lambda: build_window(line, zone, until=until))
    try:
        duration = parse_duration(flags["duration"])
    except InvalidValue as error:
        raise invalid_setting(error.problem, error.remedy, "--duration") from error
    return _read_flag("--duration", lambda: build_window(line, zone, duration=duration))


def _read_flag(flag: str, read: Callable[[], Result]) -> Result:
    """Return what `read` returns; an InvalidInput that it raises names the flag."""
    try:
        return read()
    except InvalidInput as error:
        # The zone is checked together with each window, and comes from a flag of its own.
        if error.reason == "UnknownTimeZone":
            raise
        raise InvalidInput(
            error.problem, reason=error.reason, remedy=error.remedy, where=ErrorLocation(field=flag)
        ) from error


_count_option = click.option(
    "-n",
    "--count",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Number of entries to print.",
)


@click.group()
def command() -> None:
    """Print the times of a schedule or of windows."""


@command.command("next", cls=VerbCommand)
@click.argument("words", nargs=-1, metavar='"SCHEDULE"')
@click.option(
    "--time-zone", default="UTC", show_default=True, metavar="ZONE", help="IANA time zone."
)
@click.option("--after", metavar="TIME", help="Start at this time.  [default: now]")
@_count_option
@with_settings(("now", *ERROR_OPTIONS), formats=tuple(OutputFormat))
def next_(
    settings: Settings, words: tuple[str, ...], time_zone: str, after: str | None, count: int
) -> None:
    """Print the next times at which a schedule fires.

    SCHEDULE has the syntax of PromotionPolicy spec.schedule: the five fields of crontab(5), or a
    macro such as @daily. When clocks are set forward, a skipped time fires at the end of the gap.
    When clocks are set back, a time that occurs twice fires once. If the minute or hour field
    starts with `*`, a skipped time does not fire, and a time that occurs twice fires twice.
    """
    zone = parse_zone(time_zone)
    start = parse_instant_option(after, "--after") if after else settings.now()
    # Joining the words would hide that the shell has replaced `*` with names of files.
    if len(words) != 1:
        problem = f"the schedule has {len(words)} arguments" if words else "no schedule is given"
        remedy = "write it in quotes, as in: fanout schedule next '0 8 * * 1-5'"
        raise invalid_setting(problem, remedy)
    instants = list_fires(parse_schedule(words[0]), zone, start, count)
    print_objects([_serialize_instant(at, zone) for at in instants], _INSTANT_COLUMNS, settings)


@command.command("windows", cls=VerbCommand)
@click.argument("names", nargs=-1, metavar="[NAMES]...", shell_complete=complete_promotions)
@click.option(
    "--allow",
    multiple=True,
    metavar='"SCHEDULE"',
    help="Cron schedule; an allowed period starts each time it fires.",
)
@click.option(
    "--deny",
    multiple=True,
    metavar='"SCHEDULE"',
    help="Cron schedule; a denied period starts each time it fires.",
)
@click.option(
    "--duration",
    default="",
    metavar="TIME",
    help="Length of each allowed or denied time, such as 8h30m.",
)
@click.option(
    "--until",
    default="",
    metavar='"SCHEDULE"',
    help="Cron schedule; the allowed or denied periods end each time it fires.",
)
@click.option("--time-zone", default="", metavar="ZONE", help="IANA time zone.  [default: UTC]")
@click.option("--after", metavar="TIME", help="Start at this time.  [default: now]")
@click.option(
    "--at",
    metavar="TIME",
    help="Print only whether the windows are open at this time, and until when.",
)
@_count_option
@with_settings(
    ("files", "namespace", "quiet", "now", *ERROR_OPTIONS),
    # -n is the number of entries, as in `schedule next`.
    namespace=namespace_option("Only objects of this namespace."),
    formats=tuple(OutputFormat),
)
def windows(settings: Settings, names: tuple[str, ...], **flags: Any) -> None:
    """Print when windows open and close.

    NAMES are names of PromotionPolicy objects in the files of -f. Publication is allowed when the
    windows of all these objects are open. Without -f, define the windows with --allow and --deny,
    which can be repeated. One --duration or --until applies to all windows.
    """
    if flags["at"] and flags["after"]:
        raise invalid_setting("--at and --after exclude each other", "keep one of them")
    has_windows = any(flags[it] for it in ("allow", "deny", "duration", "until"))
    if names and has_windows:
        raise invalid_setting("NAMES and flags for windows exclude each other", "keep one of them")
    if names:
        declared, zone_name = open_files(settings).read(), flags["time_zone"]
        calendars, zone = find_declared_calendars(names, declared, settings.namespace, zone_name)
    else:
        calendars, zone = parse_window_flags(flags)
    if flags["at"]:
        at = parse_instant_option(flags["at"], "--at")
        view = _serialize_opening(at, compute_window_state(calendars, at), zone)
        if settings.output.is_data:
            print_value(view, settings.output)
        else:
            print_objects([view], _AT_COLUMNS, settings)
        return
    start = parse_instant_option(flags["after"], "--after") if flags["after"] else settings.now()
    edges = list(islice(iterate_changes(calendars, start), flags["count"]))
    views = [_serialize_opening(at, state, zone) for at, state in edges]
    print_objects(views, _WINDOW_COLUMNS, settings)
    if not edges:
        print_message(
            f"nothing changes within five years: {compute_window_state(calendars, start).message}"
        )

"""`fanout schedule`: what cron lines and windows mean, before a production relies on them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import click

from fanout.calendar.fires import fires
from fanout.calendar.schedule import parse_schedule
from fanout.calendar.windows import Calendar, Opening, changes, opening
from fanout.calendar.zone import parse_zone
from fanout.cli.calendars import Stated, declared_calendars, stated_calendar
from fanout.cli.completing import complete_promotions
from fanout.cli.files import files_of
from fanout.cli.options import with_settings
from fanout.cli.output import Column, show, show_value
from fanout.cli.settings import Format, Settings, parse_instant
from fanout.cli.terminal import say
from fanout.errors import InvalidInput

_COLUMNS = (
    Column("DAY", lambda view: view["weekday"]),
    Column("LOCAL", lambda view: view["local"]),
    Column("UTC", lambda view: view["metadata"]["name"]),
)
_WINDOWS = (
    Column("PUBLICATION", lambda view: "open" if view["open"] else "closed"),
    *_COLUMNS,
    Column("UNTIL", lambda view: view["until"] or "for ever"),
    Column("MESSAGE", lambda view: view["message"], wide=True),
)
_AT = (*_WINDOWS[:-1], Column("MESSAGE", lambda view: view["message"]))


@click.group()
def command() -> None:
    """Say what a cron line or a window means."""


@command.command("next")
@click.argument("words", nargs=-1, metavar='"SCHEDULE"')
@click.option("--time-zone", default="UTC", show_default=True, metavar="ZONE", help="IANA name.")
@click.option("--after", metavar="TIME", help="From this time on; now, if not said.")
@click.option(
    "-n", "--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many."
)
@with_settings(sources=False, formats=tuple(Format))
def next_(
    settings: Settings, words: tuple[str, ...], time_zone: str, after: str | None, count: int
) -> None:
    """Print the next instants at which a schedule fires.

    The schedule is what PromotionPolicy spec.schedule takes: the five fields of crontab(5), or a
    macro such as @daily. Times that the clock skips or shows twice are what a sweep would do.
    """
    zone = parse_zone(time_zone)
    start = parse_instant(after, "--after") if after else settings.now()
    instants = fires(parse_schedule(_one(words)), zone, start, count)
    show([_view(at, at.astimezone(zone)) for at in instants], _COLUMNS, settings.output)


@command.command("windows")
@click.argument("names", nargs=-1, metavar="[NAMES]...", shell_complete=complete_promotions)
@click.option("--allow", multiple=True, metavar='"SCHEDULE"', help="When an allowed time begins.")
@click.option("--deny", multiple=True, metavar='"SCHEDULE"', help="When a denied time begins.")
@click.option("--duration", default="", metavar="TIME", help="How long they last, as 8h30m.")
@click.option("--until", default="", metavar='"SCHEDULE"', help="When they end.")
@click.option("--time-zone", default="", metavar="ZONE", help="IANA name; UTC if not said.")
@click.option("--after", metavar="TIME", help="From this time on; now, if not said.")
@click.option("--at", metavar="TIME", help="What holds at this time, and until when, alone.")
@click.option(
    "-n", "--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many."
)
@with_settings(sources=False, files=True, formats=tuple(Format))
def windows(settings: Settings, names: tuple[str, ...], **flags: Any) -> None:
    """Print when windows open and close.

    They are those of the PromotionPolicies NAMES in the files of -f: open is when all of them are.
    Or they are given by flags: --allow and --deny may be repeated, and all last alike.
    """
    if flags["at"] and flags["after"]:
        raise _setting("--at and --after exclude each other", "keep one of them")
    stated = Stated(*(flags[name] for name in ("allow", "deny", "duration", "until", "time_zone")))
    calendars, zone = _calendars(settings, names, stated)
    if flags["at"]:
        at = parse_instant(flags["at"], "--at")
        view = _opening(at, opening(calendars, at), zone)
        if settings.output in (Format.JSON, Format.YAML):
            show_value(view, settings.output)
        else:
            show([view], _AT, settings.output)
        return
    start = parse_instant(flags["after"], "--after") if flags["after"] else settings.now()
    edges = list(islice(changes(calendars, start), flags["count"]))
    show([_opening(at, found, zone) for at, found in edges], _WINDOWS, settings.output)
    if not edges:
        say(f"nothing changes within five years: {opening(calendars, start).sentence}")


def _calendars(
    settings: Settings, names: Sequence[str], stated: Stated
) -> tuple[Sequence[Calendar], ZoneInfo]:
    """The windows that are asked about, and the zone to show times in."""
    if names and stated:
        raise _setting("windows are given by NAMES and by flags", "give them in one way")
    if not names:
        return stated_calendar(stated)
    declared = files_of(settings).read()
    return declared_calendars(names, declared, settings.namespace, stated.zone)


def _one(words: Sequence[str]) -> str:
    """The schedule, which is one word for the shell: it would replace stars by names of files."""
    if len(words) != 1:
        problem = f"the schedule is {len(words)} words" if words else "no schedule is given"
        remedy = "write it in quotes, as in: fanout schedule next '0 8 * * 1-5'"
        raise _setting(problem, remedy)
    return words[0]


def _setting(problem: str, remedy: str) -> InvalidInput:
    return InvalidInput(problem, reason="InvalidSetting", remedy=remedy)


def _view(at: datetime, local: datetime) -> Mapping[str, Any]:
    """An InstantView."""
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "InstantView",
        "metadata": {"name": _utc(at)},
        "local": local.isoformat(),
        "weekday": local.strftime("%a"),
    }


def _opening(at: datetime, found: Opening, zone: ZoneInfo) -> Mapping[str, Any]:
    """A WindowView: what holds from an instant on."""
    return {
        **_view(at, at.astimezone(zone)),
        "kind": "WindowView",
        "open": found.open,
        "until": _utc(found.until) if found.until else None,
        "promotionPolicy": found.calendar,
        "window": found.window,
        "message": found.sentence,
    }


def _utc(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")

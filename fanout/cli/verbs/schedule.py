"""`fanout schedule`: what a cron line means, before it is trusted with a production."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from fanout.calendar.fires import fires
from fanout.calendar.schedule import parse_schedule
from fanout.calendar.zone import parse_zone
from fanout.cli.options import with_settings
from fanout.cli.output import Column, show
from fanout.cli.settings import Format, Settings, parse_instant
from fanout.errors import InvalidInput

_COLUMNS = (
    Column("DAY", lambda view: view["weekday"]),
    Column("LOCAL", lambda view: view["local"]),
    Column("UTC", lambda view: view["metadata"]["name"]),
)


@click.group()
def command() -> None:
    """Say what a cron line means."""


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


def _one(words: Sequence[str]) -> str:
    """The schedule, which is one word for the shell: it would replace stars by names of files."""
    if len(words) != 1:
        problem = f"the schedule is {len(words)} words" if words else "no schedule is given"
        raise InvalidInput(
            problem,
            reason="InvalidSetting",
            remedy="write it in quotes, as in: fanout schedule next '0 8 * * 1-5'",
        )
    return words[0]


def _view(at: datetime, local: datetime) -> Mapping[str, Any]:
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "InstantView",
        "metadata": {"name": at.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "local": local.isoformat(),
        "weekday": local.strftime("%a"),
    }

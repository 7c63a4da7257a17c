"""`fanout schedule`: what a cron line means, before it is trusted with a production."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from fanout.calendar.fires import fires
from fanout.calendar.schedule import parse_schedule
from fanout.calendar.zone import parse_zone
from fanout.cli.options import with_settings
from fanout.cli.output import Column, show
from fanout.cli.settings import Format, Settings, parse_instant

_COLUMNS = (
    Column("DAY", lambda view: view["weekday"]),
    Column("LOCAL", lambda view: view["local"]),
    Column("UTC", lambda view: view["metadata"]["name"]),
)


@click.group()
def command() -> None:
    """Say what a cron line means."""


@command.command("next")
@click.argument("schedule", metavar='"SCHEDULE"')
@click.option("--time-zone", default="UTC", show_default=True, metavar="ZONE", help="IANA name.")
@click.option("--after", metavar="TIME", help="From this time on; now, if not said.")
@click.option(
    "-n", "--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many."
)
@with_settings(sources=False, formats=tuple(Format))
def next_(settings: Settings, schedule: str, time_zone: str, after: str | None, count: int) -> None:
    """Print the next instants at which a schedule fires.

    The schedule is what PromotionPolicy spec.schedule takes: the five fields of crontab(5), or a
    macro such as @daily. Times that the clock skips or shows twice are what a sweep would do.
    """
    zone = parse_zone(time_zone)
    start = parse_instant(after, "--after") if after else settings.now()
    instants = fires(parse_schedule(schedule), zone, start, count)
    show([_view(at, at.astimezone(zone)) for at in instants], _COLUMNS, settings.output)


def _view(at: datetime, local: datetime) -> Mapping[str, Any]:
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "InstantView",
        "metadata": {"name": at.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "local": local.isoformat(),
        "weekday": local.strftime("%a"),
    }

"""`fanout package diff`: two packages side by side, or three with what is in dispute marked."""

import sys
from pathlib import Path

import click

from fanout.cli.directories import read_files
from fanout.cli.exit_codes import ExitCode, detailed
from fanout.cli.options import detailed_option, with_settings
from fanout.cli.output import write
from fanout.cli.patches import patch
from fanout.cli.settings import Settings
from fanout.cli.terminal import printable
from fanout.cli.threeway import three_way
from fanout.cli.verbs.package_merge import DIRECTORY


@click.command()
@click.option("--upstream", required=True, type=DIRECTORY, help="The upstream package.")
@click.option("--local", required=True, type=DIRECTORY, help="The package with people's edits.")
@click.option("--origin", type=DIRECTORY, help="What both began with: show what each side did.")
@detailed_option
@with_settings(sources=False)
def diff(
    settings: Settings,  # noqa: ARG001
    upstream: Path,
    local: Path,
    origin: Path | None,
    **how: bool,
) -> int:
    """Compare a local package with upstream's.

    Prints a patch that makes upstream's package the local one. With --origin, prints what each
    side changed since then, and where they disagree.
    """
    theirs, ours = read_files(upstream), read_files(local)
    lines = (
        patch(theirs, ours, ("upstream", "local"))
        if origin is None
        else three_way(read_files(origin), theirs, ours)
    )
    text = "".join(f"{line}\n" for line in lines)
    write(printable(text) if sys.stdout.isatty() else text)
    return detailed(ExitCode.OK, changes=bool(text)) if how["detailed"] else ExitCode.OK

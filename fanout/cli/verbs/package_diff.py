"""`fanout package diff`: compare two packages, or three with conflicts marked."""

from pathlib import Path

import click

from fanout.cli.input.options import detailed_option, with_settings
from fanout.cli.input.package_directory import read_files
from fanout.cli.output.merge_view import format_masked_three_way, print_patch
from fanout.cli.process_exit import ExitCode, detailed_exit_code
from fanout.cli.settings import Settings
from fanout.cli.verbs.package_merge import DIRECTORY
from fanout.package.package_patch import format_masked_patch


@click.command()
@click.option("--upstream", required=True, type=DIRECTORY, help="The upstream package.")
@click.option("--local", required=True, type=DIRECTORY, help="The package with people's edits.")
@click.option("--origin", type=DIRECTORY, help="What both began with: show what each side did.")
@detailed_option
@with_settings(objects=False)
def diff(
    settings: Settings,  # noqa: ARG001
    upstream: Path,
    local: Path,
    origin: Path | None,
    **how: bool,
) -> int:
    """Compare a local package with upstream's.

    Prints a patch that makes upstream's package the local one. With --origin, prints what each
    side changed since then, and where they disagree. Values of Secrets are masked as `***`.
    """
    upstream_files, local_files = read_files(upstream), read_files(local)
    lines = (
        format_masked_patch(upstream_files, local_files, ("upstream", "local"))
        if origin is None
        else format_masked_three_way(read_files(origin), upstream_files, local_files)
    )
    print_patch(lines)
    return detailed_exit_code(ExitCode.OK, changes=bool(lines)) if how["detailed"] else ExitCode.OK

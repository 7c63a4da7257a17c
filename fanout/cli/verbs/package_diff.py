"""`fanout package diff`: compare two packages, or three with conflicts marked."""

from pathlib import Path

import click

from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, detailed_option, with_settings
from fanout.cli.input.package_directory import read_files
from fanout.cli.output.merge_view import format_masked_three_way, print_patch
from fanout.cli.process_exit import ExitCode, detailed_exit_code
from fanout.cli.settings import Settings
from fanout.cli.verbs.package_merge import DIRECTORY
from fanout.package.package_patch import format_masked_patch


@click.command(cls=VerbCommand)
@click.option("--upstream", required=True, type=DIRECTORY, help="Upstream package.")
@click.option("--local", required=True, type=DIRECTORY, help="Local package with edits.")
@click.option(
    "--origin",
    type=DIRECTORY,
    help="Common origin of both packages. Prints what each package changed since this origin.",
)
@detailed_option
@with_settings(ERROR_OPTIONS)
def diff(
    settings: Settings,  # noqa: ARG001
    upstream: Path,
    local: Path,
    origin: Path | None,
    **how: bool,
) -> int:
    """Compare a local package with the upstream package.

    Prints a patch from the upstream package to the local package. With --origin, prints what each
    package changed since their common origin, and the conflicts. Values of Secrets are masked as
    `***`.
    """
    upstream_files, local_files = read_files(upstream), read_files(local)
    lines = (
        format_masked_patch(upstream_files, local_files, ("upstream", "local"))
        if origin is None
        else format_masked_three_way(read_files(origin), upstream_files, local_files)
    )
    print_patch(lines)
    return detailed_exit_code(ExitCode.OK, changes=bool(lines)) if how["detailed"] else ExitCode.OK

"""`fanout package validate`: every fault of a package, each with file and line."""

from pathlib import Path

import click

from fanout.api.reasons import Reason
from fanout.cli.directories import located, scan
from fanout.cli.exit_codes import ExitCode
from fanout.cli.options import with_settings
from fanout.cli.output import show_value, write
from fanout.cli.package_faults import faults_of
from fanout.cli.package_merge import DIRECTORY
from fanout.cli.settings import Format, Settings
from fanout.cli.terminal import printable
from fanout.errors import InvalidInput


@click.command()
@click.argument("directory", type=DIRECTORY)
@with_settings(sources=False, formats=(Format.TABLE, Format.JSON, Format.YAML))
def validate(settings: Settings, directory: Path) -> ExitCode:
    """Name every fault of a package.

    Its Kptfiles, manifests, duplicate objects, injection points and functions, and what no package
    may have. Leaves with 2 when there are any.
    """
    files, refused = scan(directory)
    whole = all(fault.reason != Reason.LIMIT_EXCEEDED for fault in refused)
    inside = faults_of(files) if whole else []
    faults = [*refused, *(located(fault, directory) for fault in inside)]
    if settings.output is Format.TABLE:
        write("".join(f"{printable(str(fault))}\n" for fault in faults) or "no faults\n")
    else:
        show_value([_plain(fault) for fault in faults], settings.output)
    return ExitCode.INVALID if faults else ExitCode.OK


def _plain(fault: InvalidInput) -> dict[str, object]:
    """As in the answer of `fanout validate`."""
    return {
        "file": fault.where.file,
        "line": fault.where.line,
        "object": fault.where.object,
        "field": fault.where.field,
        "problem": fault.problem,
        "remedy": fault.remedy,
        "severity": "error",
    }

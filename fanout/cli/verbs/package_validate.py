"""`fanout package validate`: every fault of a package, each with file and line."""

from pathlib import Path

import click

from fanout.api.reasons import Reason
from fanout.cli.directories import located, scan
from fanout.cli.exit_codes import ExitCode
from fanout.cli.options import with_settings
from fanout.cli.output import show_value, write
from fanout.cli.package_faults import Faults, faults_of
from fanout.cli.settings import Format, Settings
from fanout.cli.terminal import printable
from fanout.cli.verbs.package_merge import DIRECTORY
from fanout.cli.workshop import workshop
from fanout.errors import InvalidInput
from fanout.variants.functions.function import Result


@click.command()
@click.argument("directory", type=DIRECTORY)
@with_settings(sources=False, config=True, formats=(Format.TABLE, Format.JSON, Format.YAML))
def validate(settings: Settings, directory: Path) -> ExitCode:
    """Name every fault of a package.

    Its Kptfiles, manifests, duplicate objects, injection points and functions, and what no package
    may have. Exits with 2 when there are any.
    """
    files, refused = scan(directory)
    whole = all(fault.reason != Reason.LIMIT_EXCEEDED for fault in refused)
    found = faults_of(files, workshop(settings)) if whole else Faults([])
    faults = [*refused, *(located(fault, directory) for fault in found.faults)]
    warnings = [_located(result, directory) for result in found.warnings]
    if settings.output is Format.TABLE:
        lines = [*map(str, faults), *(f"warning: {result.sentence}" for result in warnings)]
        told = "".join(f"{printable(line)}\n" for line in lines)
        write(told if faults else f"{told}no faults\n")
    else:
        plain = [*map(_plain, faults), *map(_warning, warnings)]
        show_value(plain, settings.output)
    return ExitCode.INVALID if faults else ExitCode.OK


def _located(result: Result, directory: Path) -> Result:
    return result._replace(file=str(directory / result.file)) if result.file else result


def _warning(result: Result) -> dict[str, object]:
    """A warning of a function, which is no fault."""
    return {
        "file": result.file,
        "line": result.line,
        "object": result.object,
        "field": result.field,
        "problem": f"{result.message} ({result.function})",
        "remedy": "",
        "severity": result.severity,
    }


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

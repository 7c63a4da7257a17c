"""`fanout package validate`: report every error of a package with its file and line."""

from pathlib import Path

import click

from fanout.api.reasons import Reason
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.input.package_directory import scan_directory, with_directory
from fanout.cli.input.package_validation import (
    PackageFindings,
    load_package_functions,
    validate_package,
)
from fanout.cli.output.printer import print_value, write_lines
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.cli.verbs.package_merge import DIRECTORY
from fanout.errors import InvalidInput
from fanout.values import replace
from fanout.variants.functions.function_interface import FunctionResult


@click.command(cls=VerbCommand)
@click.argument("directory", type=DIRECTORY)
@with_settings(("config", *ERROR_OPTIONS), formats=REPORT_FORMATS)
def validate(settings: Settings, directory: Path) -> ExitCode:
    """Validate a package and report every error.

    Checks Kptfiles, manifests, injection points and functions. Reports duplicate objects, and files
    that are not allowed in a package. Exits with code 2 if there are errors.
    """
    files, scan_errors = scan_directory(directory)
    # Of a package that was read in part, missing files would be reported as errors of the
    # others.
    is_complete = all(fault.reason != Reason.LIMIT_EXCEEDED for fault in scan_errors)
    package_faults = (
        validate_package(files, load_package_functions(settings))
        if is_complete
        else PackageFindings([])
    )
    faults = [*scan_errors, *(with_directory(fault, directory) for fault in package_faults.errors)]
    warnings = [_with_directory(result, directory) for result in package_faults.warnings]
    if settings.output is OutputFormat.TABLE:
        lines = [*map(str, faults), *(f"warning: {result.sentence}" for result in warnings)]
        write_lines(lines if faults else [*lines, "the package is valid"])
    else:
        plain = [*map(_serialize_error, faults), *map(_serialize_warning, warnings)]
        print_value(plain, settings.output)
    return ExitCode.INVALID if faults else ExitCode.OK


def _with_directory(result: FunctionResult, directory: Path) -> FunctionResult:
    file = result.where.file
    where = replace(result.where, file=str(directory / file) if file else "")
    return result._replace(where=where)


def _serialize_warning(result: FunctionResult) -> dict[str, object]:
    """Return a warning of a function as data."""
    return {
        "file": result.where.file,
        "line": result.where.line,
        "object": result.where.object,
        "field": result.where.field,
        "problem": f"{result.message} ({result.function})",
        "remedy": "",
        "severity": result.severity,
    }


def _serialize_error(fault: InvalidInput) -> dict[str, object]:
    """Return an error as data, in the form of `fanout validate`."""
    return {
        "file": fault.where.file,
        "line": fault.where.line,
        "object": fault.where.object,
        "field": fault.where.field,
        "problem": fault.problem,
        "remedy": fault.remedy,
        "severity": "error",
    }

"""`fanout package render`: run a package's own pipeline on a directory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.input.package_directory import (
    find_changed_paths,
    read_files,
    require_new_directory,
    with_directory,
    write_files,
)
from fanout.cli.input.package_validation import load_package_functions, run_pipeline
from fanout.cli.output.printer import print_value, write_lines
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.cli.verbs.package_merge import DIRECTORY, NEW_DIRECTORY
from fanout.errors import InvalidInput
from fanout.package.merge.package_update import Files
from fanout.values import asdict
from fanout.variants.functions.function_interface import FunctionResult
from fanout.variants.package_preparation import find_errors


@click.command(cls=VerbCommand)
@click.argument("directory", type=DIRECTORY)
@click.option(
    "--to",
    type=NEW_DIRECTORY,
    help="Write the result to this new or empty directory, and do not change the package.",
)
@with_settings(("config", *ERROR_OPTIONS), formats=REPORT_FORMATS)
def render(settings: Settings, directory: Path, to: Path | None) -> ExitCode:
    """Run the functions of a package's Kptfile.

    Functions of subpackages run first. The package is changed in place, completely or not at all.
    If a function reports an error, the package is not changed.
    """
    target = directory if to is None else require_new_directory(to)
    before = read_files(directory)
    try:
        after, results = run_pipeline(before, load_package_functions(settings))
    except InvalidInput as error:
        raise with_directory(error, directory) from None
    failed = bool(find_errors(results))
    # Functions that ran before the failing one may have changed files; none of that is written.
    if not failed:
        write_files(target, before if to is None else {}, after)
    changed = [] if failed else find_changed_paths(before, after)
    if settings.output is OutputFormat.TABLE:
        write_lines(_format_changes(before, after, changed, results))
    else:
        report = {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "RenderReport",
            "changed": changed,
            "results": [_serialize_result(result) for result in results],
        }
        print_value(report, settings.output)
    return ExitCode.INVALID if failed else ExitCode.OK


def _format_changes(
    before: Files, after: Files, changed: list[str], results: tuple[FunctionResult, ...]
) -> Iterator[str]:
    for result in results:
        yield f"{result.severity}: {result.sentence}"
    for path in changed:
        verb = "changed" if path in before and path in after else "added"
        yield f"{verb if path in after else 'removed'}: {path}"


def _serialize_result(result: FunctionResult) -> dict[str, Any]:
    names = {"message": result.message, "severity": result.severity, "function": result.function}
    return {**names, **asdict(result.where)}

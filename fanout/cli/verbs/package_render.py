"""`fanout package render`: the functions of a package's own pipeline, run on a directory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from fanout.cli.directories import (
    differing,
    located,
    new_directory,
    read_files,
    write_files,
)
from fanout.cli.exit_codes import ExitCode
from fanout.cli.options import with_settings
from fanout.cli.output import show_value, write
from fanout.cli.pipelines import rendered
from fanout.cli.settings import Format, Settings
from fanout.cli.terminal import printable
from fanout.cli.verbs.package_merge import DIRECTORY, NEW_DIRECTORY
from fanout.cli.workshop import workshop
from fanout.errors import InvalidInput
from fanout.package.merge.packages import Files
from fanout.variants.functions.function import Result
from fanout.variants.results import errors_of


@click.command()
@click.argument("directory", type=DIRECTORY)
@click.option("--to", type=NEW_DIRECTORY, help="Write to a new or empty directory instead.")
@with_settings(sources=False, config=True, formats=(Format.TABLE, Format.JSON, Format.YAML))
def render(settings: Settings, directory: Path, to: Path | None) -> ExitCode:
    """Run the functions of a package's Kptfile.

    Those of subpackages run first. The package is changed in place, as a whole or not at all; not
    at all where a function finds an error.
    """
    target = directory if to is None else new_directory(to)
    before = read_files(directory)
    try:
        after, results = rendered(before, workshop(settings))
    except InvalidInput as error:
        raise located(error, directory) from None
    failed = bool(errors_of(results))
    if not failed:
        write_files(target, before if to is None else {}, after)
    changed = [] if failed else differing(before, after)
    if settings.output is Format.TABLE:
        write("".join(f"{printable(line)}\n" for line in _lines(before, after, changed, results)))
    else:
        show_value(_report(changed, results), settings.output)
    return ExitCode.INVALID if failed else ExitCode.OK


def _lines(
    before: Files, after: Files, changed: list[str], results: tuple[Result, ...]
) -> Iterator[str]:
    for result in results:
        yield f"{result.severity}: {result.sentence}"
    for path in changed:
        verb = "changed" if path in before and path in after else "added"
        yield f"{verb if path in after else 'removed'}: {path}"


def _report(changed: list[str], results: tuple[Result, ...]) -> dict[str, Any]:
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "RenderReport",
        "changed": changed,
        "results": [result._asdict() for result in results],
    }

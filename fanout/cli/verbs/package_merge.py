"""`fanout package merge`: merge three directories into one."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from fanout.cli.command_errors import invalid_setting
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.input.package_directory import (
    read_files,
    require_new_directory,
    with_directory,
    write_files,
)
from fanout.cli.output.printer import print_value, write_lines
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.control_characters import escape_unprintable
from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING
from fanout.package.merge.merge_conflicts import MergeConflict
from fanout.package.merge.package_update import KptUpdateStrategy, MergeResult, update_package

DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.command(cls=VerbCommand)
@click.option("--origin", required=True, type=DIRECTORY, help="Common origin of both packages.")
@click.option("--upstream", required=True, type=DIRECTORY, help="Newer upstream package.")
@click.option("--local", required=True, type=DIRECTORY, help="Local package with edits.")
@click.option("--to", type=NEW_DIRECTORY, help="Write the result to this new or empty directory.")
@click.option("--in-place", is_flag=True, help="Write the result to the local directory.")
@click.option(
    "--strategy",
    type=click.Choice([strategy.value for strategy in KptUpdateStrategy]),
    default=KptUpdateStrategy.RESOURCE_MERGE.value,
    show_default=True,
    help="Merge strategy, as in the field updateStrategy of a Kptfile.",
)
@with_settings(ERROR_OPTIONS, formats=REPORT_FORMATS)
def merge(
    settings: Settings,
    origin: Path,
    upstream: Path,
    local: Path,
    to: Path | None,
    in_place: bool,
    strategy: str,
) -> ExitCode:
    """Merge upstream changes into a local package.

    Writes the result even if there are conflicts. If both packages changed a value, the upstream
    value is used. If one package changed an object or file and the other package deleted it, the
    state in the local package is kept. Exits with code 3 if there are conflicts.
    """
    target = _require_target(local, to, in_place)
    origin_files, upstream_files, local_files = (
        read_files(origin),
        read_files(upstream),
        read_files(local),
    )
    try:
        result = update_package(
            KptUpdateStrategy(strategy), origin_files, upstream_files, local_files
        )
    except InvalidInput as error:
        raise with_directory(error, local) from None
    write_files(target, local_files if in_place else {}, result.files)
    if settings.output is OutputFormat.TABLE:
        write_lines(format_merge_report(result))
    else:
        print_value(_serialize_merge(result), settings.output)
    return ExitCode.SOME_FAILED if result.conflicts else ExitCode.OK


def _require_target(local: Path, to: Path | None, in_place: bool) -> Path:
    # --to that names the local directory contradicts nothing.
    if in_place and (to is None or to.resolve() == local.resolve()):
        return local
    if to is None or in_place:
        raise invalid_setting(
            "the output directory is missing",
            "use --to NEW-DIRECTORY or --in-place",
            "--to",
        )
    return require_new_directory(to)


def format_merge_report(result: MergeResult) -> Iterator[str]:
    """Yield the conflicts, dropped files and notes of a merge, one line each."""
    for conflict in result.conflicts:
        yield f"conflict: {conflict}"
    for path in result.dropped:
        yield f"dropped: {escape_unprintable(path)}: its local changes are lost"
    for note in result.notes:
        yield f"note: {note}"


def _serialize_merge(result: MergeResult) -> dict[str, Any]:
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "MergeReport",
        "conflicts": [_serialize_conflict(conflict) for conflict in result.conflicts],
        "dropped": list(result.dropped),
        "notes": list(result.notes),
    }


def _serialize_conflict(conflict: MergeConflict) -> dict[str, Any]:
    """Return a conflict as data.

    A side without a value has no field, since null is a value too. Values of a Secret are
    left out.
    """
    values = {"base": conflict.origin, "upstream": conflict.upstream, "local": conflict.local}
    return {
        "file": conflict.where.file,
        "line": conflict.where.line,
        "object": conflict.where.object,
        "field": conflict.where.field,
        "cause": str(conflict.cause),
        "winner": str(conflict.winner),
        **({} if conflict.is_secret else _present_values(values)),
    }


def _present_values(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _serialize_value(value) for name, value in values.items() if value is not MISSING}


def _serialize_value(value: Any) -> Any:
    """Return the value; for a complete file its size and digest."""
    if isinstance(value, bytes):
        return {"bytes": len(value), "sha256": sha256(value).hexdigest()}
    return value

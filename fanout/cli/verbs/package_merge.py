"""`fanout package merge`: three directories become one."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from fanout.cli.directories import located, new_directory, read_files, write_files
from fanout.cli.exit_codes import ExitCode
from fanout.cli.options import with_settings
from fanout.cli.output import show_value, write
from fanout.cli.settings import Format, Settings
from fanout.cli.terminal import printable
from fanout.errors import InvalidInput, Where
from fanout.package.edits import MISSING
from fanout.package.merge.conflicts import Conflict
from fanout.package.merge.packages import MergeResult
from fanout.package.merge.strategies import Strategy, update_package

DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option("--origin", required=True, type=DIRECTORY, help="What the other two began with.")
@click.option("--upstream", required=True, type=DIRECTORY, help="The newer upstream package.")
@click.option("--local", required=True, type=DIRECTORY, help="The package with people's edits.")
@click.option("--to", type=NEW_DIRECTORY, help="Where the result goes: a new or empty directory.")
@click.option("--in-place", is_flag=True, help="The result goes to the local directory.")
@click.option(
    "--strategy",
    type=click.Choice([strategy.value for strategy in Strategy]),
    default=Strategy.RESOURCE_MERGE.value,
    show_default=True,
    help="How to merge; the names are those of a Kptfile.",
)
@with_settings(sources=False, formats=(Format.TABLE, Format.JSON, Format.YAML))
def merge(
    settings: Settings,
    origin: Path,
    upstream: Path,
    local: Path,
    to: Path | None,
    in_place: bool,
    strategy: str,
) -> ExitCode:
    """Make upstream's changes to a local package.

    The result is written also where there are conflicts: it has the winner's values. Exits with 3
    when there are any.
    """
    target = _target(local, to, in_place)
    base, theirs, mine = read_files(origin), read_files(upstream), read_files(local)
    try:
        result = update_package(Strategy(strategy), base, theirs, mine)
    except InvalidInput as error:
        raise located(error, local) from None
    write_files(target, mine if in_place else {}, result.files)
    if settings.output is Format.TABLE:
        write("".join(f"{printable(line)}\n" for line in report_lines(result)))
    else:
        show_value(_report(result), settings.output)
    return ExitCode.SOME_FAILED if result.conflicts else ExitCode.OK


def _target(local: Path, to: Path | None, in_place: bool) -> Path:
    if in_place and (to is None or to.resolve() == local.resolve()):
        return local
    if to is None or in_place:
        raise InvalidInput(
            "it is not clear where the result goes",
            reason="InvalidSetting",
            remedy="give --to a new directory, or give --in-place without it",
            where=Where(field="--to"),
        )
    return new_directory(to)


def report_lines(result: MergeResult) -> Iterator[str]:
    """What people should know of a merge, one line each."""
    for conflict in result.conflicts:
        yield f"conflict: {conflict}"
    for path in result.dropped:
        yield f"dropped: {path}: what was changed here is lost"
    for note in result.notes:
        yield f"note: {note}"


def _report(result: MergeResult) -> dict[str, Any]:
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "MergeReport",
        "conflicts": [_plain(conflict) for conflict in result.conflicts],
        "dropped": list(result.dropped),
        "notes": list(result.notes),
    }


def _plain(conflict: Conflict) -> dict[str, Any]:
    """A conflict as data. A side that has no value has no field, for null is a value too.

    Of a Secret no value is told.
    """
    values = {"base": conflict.origin, "upstream": conflict.upstream, "local": conflict.local}
    return {
        "file": conflict.file,
        "line": conflict.line,
        "object": conflict.object,
        "field": conflict.field,
        "cause": str(conflict.cause),
        "winner": str(conflict.winner),
        **({} if conflict.is_secret else _present(values)),
    }


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in values.items() if value is not MISSING}


def _value(value: Any) -> Any:
    """The value; of a whole file its size and digest."""
    if isinstance(value, bytes):
        return {"bytes": len(value), "sha256": sha256(value).hexdigest()}
    return value

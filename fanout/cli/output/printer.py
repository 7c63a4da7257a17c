"""Printer of data on stdout: columns that awk can read, JSON or YAML."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from fanout.cli.settings import OutputFormat
from fanout.cli.terminal import OutputClosed, escape_control
from fanout.package.yaml_scalars import dump
from fanout.values import frozen

Object = Mapping[str, Any]


@frozen
class TableColumn:
    """Column of a table: its head in capitals, and the cell that it shows of an object."""

    head: str
    cell: Callable[[Object], object]
    wide: bool = False  # only with -o wide


def print_objects(
    items: Sequence[Object], columns: Sequence[TableColumn], output: OutputFormat
) -> None:
    """Print objects in the format of `-o`.

    In JSON and YAML as a `kind: List`, however many there are. The objects are plain data
    with apiVersion, kind and metadata.name. A verb that was asked for one object by name
    prints it alone with `print_value`.
    """
    match output:
        case OutputFormat.TABLE | OutputFormat.WIDE:
            visible = [
                column for column in columns if output is OutputFormat.WIDE or not column.wide
            ]
            rows = [[_format_cell(column.cell(item)) for column in visible] for item in items]
            write_stdout(format_table([column.head for column in visible], rows))
        case OutputFormat.NAME:
            write_stdout("".join(f"{format_name(item)}\n" for item in items))
        case OutputFormat.JSON | OutputFormat.YAML:
            print_value(build_list(items), output)


def print_value(value: Any, output: OutputFormat) -> None:
    """Print plain data as JSON, or as YAML for `-o yaml`, with sorted keys."""
    if output is OutputFormat.YAML:
        write_stdout(format_yaml(value))
    else:
        write_stdout(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def format_yaml(value: Any) -> str:
    """Format plain data as one YAML document with sorted keys, like kubectl."""
    return dump(_sort_keys(value))


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout with control characters escaped."""
    write_stdout("".join(f"{escape_control(line)}\n" for line in lines))


def write_stdout(text: str) -> None:
    """Write text to stdout unchanged. Raises OutputClosed if the reader of a pipe has exited."""
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        raise OutputClosed from None


def build_list(items: Iterable[Object]) -> Object:
    """Return the `kind: List` object that kubectl prints for several objects."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def format_name(item: Object) -> str:
    """Return the name of an object as kubectl accepts it.

    An example is `upstreampolicy.fanout.dev/monitoring`.
    """
    group, slash, _ = str(item["apiVersion"]).partition("/")
    kind = str(item["kind"]).lower()
    resource = f"{kind}.{group}" if slash else kind
    return escape_control(f"{resource}/{item['metadata']['name']}")


def format_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format left-aligned columns, three spaces apart, without trailing spaces."""
    lines = [heads, *rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    # One format string serves all lines of a table, which can have ten thousand.
    line_format = "   ".join([f"%-{width}s" for width in widths])
    return "".join([f"{(line_format % tuple(line)).rstrip()}\n" for line in lines])


def _sort_keys(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _sort_keys(value[key]) for key in sorted(value)}
        case str():
            return str(value)  # a StrEnum becomes plain text
        case list() | tuple():
            return [_sort_keys(item) for item in value]
        case _:
            return value


def _format_cell(value: object) -> str:
    """Format a cell as one line that is never empty, so that columns can be counted."""
    if isinstance(value, bool):
        return "True" if value else "False"
    text = "" if value is None else escape_control(str(value)).replace("\n", " ").replace("\t", " ")
    return text or "<none>"

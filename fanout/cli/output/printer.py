"""Printer of data on stdout: columns that awk can read, JSON or YAML."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

import click

from fanout.api.table_column import Object, TableColumn
from fanout.cli.output.object_path import (
    ObjectPath,
    format_selected,
    parse_relaxed,
    parse_template,
    render_template,
)
from fanout.cli.output.text_layout import format_fitted
from fanout.cli.process_exit import invalid_setting, not_found
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.terminal import OutputClosed, escape_control, terminal_width
from fanout.package.yaml_scalars import dump


def print_objects(
    items: Sequence[Object],
    columns: Sequence[TableColumn],
    settings: Settings,
    *,
    is_single: bool = False,
) -> None:
    """Print objects in the format of `-o`.

    In JSON and YAML as a `kind: List`; an object that was asked for by its name alone (`is_single`)
    is printed itself. The objects are plain data with apiVersion, kind and metadata.name.
    """
    output = settings.output
    ordered = sort_objects(items, settings.sort_by)
    match output:
        case OutputFormat.TABLE | OutputFormat.WIDE:
            is_wide = output is OutputFormat.WIDE
            visible = [column for column in columns if is_wide or not column.wide]
            _print_columns(ordered, visible, settings)
        case OutputFormat.CUSTOM_COLUMNS:
            _print_columns(ordered, parse_columns(settings.template), settings)
        case OutputFormat.NAME:
            write_stdout("".join(f"{format_name(item)}\n" for item in ordered))
        case _:
            value = ordered[0] if is_single and len(ordered) == 1 else build_list(ordered)
            if output is OutputFormat.JSONPATH:
                text = render_template(parse_template(settings.template), value)
                write_stdout(escape_control(text) if sys.stdout.isatty() else text)
            else:
                print_value(value, output)


def sort_objects(items: Sequence[Object], sort_by: str) -> Sequence[Object]:
    """Return the objects sorted by a field. Raises InvalidInput if none has the field."""
    if not sort_by:
        return items
    path = parse_relaxed(sort_by, "--sort-by")
    keys: list[tuple[int, float, str]] = []
    for selected in map(path.select, items):
        value = selected[0] if selected else None
        if not selected:
            keys.append((0, 0, ""))
        elif isinstance(value, int | float):
            keys.append((1, value, ""))
        else:
            keys.append((2, 0, format_selected(value)))
    if items and not any(rank for rank, *_ in keys):
        raise not_found(
            f"no object has the field {sort_by}",
            "see the fields with -o yaml; a path looks like .metadata.name",
        )
    return [items[index] for index in sorted(range(len(items)), key=keys.__getitem__)]


def check_output(settings: Settings) -> None:
    """Raise InvalidInput for a template or a path that cannot be parsed, before any work."""
    if settings.output is OutputFormat.JSONPATH:
        parse_template(settings.template)
    if settings.output is OutputFormat.CUSTOM_COLUMNS:
        parse_columns(settings.template)
    if settings.sort_by:
        parse_relaxed(settings.sort_by, "--sort-by")


def _print_columns(
    items: Sequence[Object], columns: Sequence[TableColumn], settings: Settings
) -> None:
    cells = [column.reader for column in columns]
    rows = [[_format_cell(cell(item)) for cell in cells] for item in items]
    heads = [] if settings.no_headers else [column.head for column in columns]
    # Who asks for certain columns, or for all of them, gets them in full.
    width = terminal_width(sys.stdout) if settings.output is OutputFormat.TABLE else None
    priorities = [column.priority for column in columns]
    cut_widths = [column.cut_width for column in columns]
    write_stdout(format_fitted(heads, rows, width, priorities, cut_widths))


_COLUMN_SEPARATOR = re.compile(r",(?![^\[]*\])")  # a comma that is not within brackets


def parse_columns(text: str) -> Sequence[TableColumn]:
    """Parse the value of `-o custom-columns=`, such as `NAME:.metadata.name,STATE:.status.state`.

    Raises InvalidInput for a column without a path.
    """

    def join_selected(path: ObjectPath, item: Object) -> str:
        return ",".join(map(format_selected, path.select(item)))

    columns = []
    for part in _COLUMN_SEPARATOR.split(text):
        head, colon, path_text = part.partition(":")
        if not head or not colon or not path_text:
            raise invalid_setting(
                f"custom column {part!r} has no header or no path",
                "write HEAD:PATH, as in -o custom-columns=NAME:.metadata.name,STATE:.status.state",
                "-o custom-columns",
            )
        path = parse_relaxed(path_text, "-o custom-columns")
        columns.append(TableColumn(head, partial(join_selected, path)))
    return columns


def print_value(value: Any, output: OutputFormat) -> None:
    """Print plain data as JSON, or as YAML for `-o yaml`, with sorted keys."""
    if output is OutputFormat.YAML:
        write_stdout(format_yaml(value))
    else:
        write_stdout(format_json(value) + "\n")


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout with control characters escaped."""
    write_stdout("".join(f"{escape_control(line)}\n" for line in lines))


def write_stdout(text: str, *, is_colored: bool = False) -> None:
    """Write text to stdout unchanged. Raises OutputClosed if the reader of a pipe has exited."""
    try:
        # click removes colors in a pipe, where `--color always` wants them.
        click.echo(text, nl=False, color=is_colored or None)
    except BrokenPipeError:
        raise OutputClosed from None


def build_list(items: Iterable[Object]) -> Object:
    """Return the `kind: List` object that kubectl prints for several objects."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def format_name(item: Object) -> str:
    """Return an object's name for kubectl, such as `upstreampolicy.fanout.dev/monitoring`."""
    group, slash, _ = str(item["apiVersion"]).partition("/")
    kind = str(item["kind"]).lower()
    resource = f"{kind}.{group}" if slash else kind
    return escape_control(f"{resource}/{item['metadata']['name']}")


def format_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], priorities: Sequence[int] = ()
) -> str:
    """Format left-aligned columns, three spaces apart, without trailing spaces.

    On a terminal that is too narrow, columns are left out by `priorities` (0 is left out last).
    Without priorities cells of the last column are cut, and then columns left out from the right.
    """
    rows = [[_format_cell(cell) for cell in row] for row in rows]
    cut_widths = [*(0 for _ in heads[1:]), 0 if priorities else 12]
    width = terminal_width(sys.stdout)
    return format_fitted(heads, rows, width, priorities or range(len(heads)), cut_widths)


def _format_cell(value: object) -> str:
    """Format a cell as one line that is never empty, so that columns can be counted."""
    # Nearly all cells of ten thousand rows are plain text.
    if value.__class__ is str and value.isprintable():
        return value or "<none>"
    if isinstance(value, bool):
        return "True" if value else "False"
    text = "" if value is None else escape_control(str(value)).replace("\n", " ").replace("\t", " ")
    return text or "<none>"


def format_json(value: Any, line_start: str = "\n") -> str:
    """Format plain data as JSON with sorted keys, two spaces of indentation for each level.

    `line_start`: line break and indentation of the value. The standard library indents in Python,
    token by token, and takes twice the time for ten thousand objects.
    """
    if isinstance(value, str):
        return _format_json_string(value)
    inner = f"{line_start}  "
    if isinstance(value, (list, tuple)):
        texts = [format_json(it, inner) for it in value]
        return f"[{inner}{f',{inner}'.join(texts)}{line_start}]" if texts else "[]"
    if isinstance(value, (dict, Mapping)):
        pairs = sorted(value.items())
        texts = [f"{_format_json_string(key)}: {format_json(it, inner)}" for key, it in pairs]
        return f"{{{inner}{f',{inner}'.join(texts)}{line_start}}}" if texts else "{}"
    return json.dumps(value)


def _format_json_string(value: str) -> str:
    text = encode_basestring(value)
    # What JSON leaves as it is may still command a terminal, or turn the direction of its text.
    if text.isprintable():
        return text
    return "".join(it if it.isprintable() else encode_basestring_ascii(it)[1:-1] for it in text)


def format_yaml(value: Any) -> str:
    """Format plain data as one YAML document with sorted keys, like kubectl."""
    return dump(_sort_keys(value))


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

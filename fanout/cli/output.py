"""Data on stdout: aligned columns that awk can read, or the objects themselves as JSON or YAML."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from fanout.cli.settings import Format
from fanout.cli.terminal import ReaderGone, printable
from fanout.package.dump import dump
from fanout.values import frozen

Object = Mapping[str, Any]


@frozen
class Column:
    """A column of a table: its head in capitals and what it shows of an object."""

    head: str
    cell: Callable[[Object], object]
    wide: bool = False  # only with -o wide


def show(items: Sequence[Object], columns: Sequence[Column], output: Format) -> None:
    """Print objects, as `-o` says; in JSON and YAML a `kind: List`, however many there are.

    The objects are plain data with apiVersion, kind and metadata.name. Who was asked for one by
    name prints it alone with `show_value`.
    """
    match output:
        case Format.TABLE | Format.WIDE:
            shown = [column for column in columns if output is Format.WIDE or not column.wide]
            rows = [[_text(column.cell(item)) for column in shown] for item in items]
            write(table([column.head for column in shown], rows))
        case Format.NAME:
            write("".join(f"{name_of(item)}\n" for item in items))
        case Format.JSON | Format.YAML:
            show_value(list_of(items), output)


def show_value(value: Any, output: Format) -> None:
    """Print plain data as JSON, or as YAML where `-o yaml` says so; keys are sorted."""
    if output is Format.YAML:
        write(as_yaml(value))
    else:
        write(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def as_yaml(value: Any) -> str:
    """Plain data as one YAML document, keys sorted as kubectl does."""
    return dump(_sorted(value))


def write(text: str) -> None:
    """Text to stdout as it is. Raises ReaderGone."""
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        raise ReaderGone from None


def list_of(items: Iterable[Object]) -> Object:
    """The list object that kubectl prints for several objects."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def name_of(item: Object) -> str:
    """`upstreampolicy.fanout.dev/monitoring`, as kubectl takes it back."""
    group, slash, _ = str(item["apiVersion"]).partition("/")
    kind = str(item["kind"]).lower()
    resource = f"{kind}.{group}" if slash else kind
    return printable(f"{resource}/{item['metadata']['name']}")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns, three spaces apart; nothing trails the last one."""
    lines = [heads, *rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    form = "   ".join([f"%-{width}s" for width in widths])
    return "".join([f"{(form % tuple(line)).rstrip()}\n" for line in lines])


def _sorted(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _sorted(value[key]) for key in sorted(value)}
        case str():
            return str(value)  # a word of a closed list is text too
        case list() | tuple():
            return [_sorted(item) for item in value]
        case _:
            return value


def _text(value: object) -> str:
    """A cell: one line, never empty, so that columns can be counted."""
    if isinstance(value, bool):
        return "True" if value else "False"
    text = "" if value is None else printable(str(value)).replace("\n", " ").replace("\t", " ")
    return text or "<none>"

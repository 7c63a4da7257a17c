"""Data on stdout: aligned columns that awk can read, or the objects themselves as JSON or YAML."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from fanout.cli.settings import Format
from fanout.cli.terminal import printable
from fanout.package.manifests import dump

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its head in capitals and what it shows of an object."""

    head: str
    cell: Callable[[Object], object]
    wide: bool = False  # only with -o wide


def show(items: Sequence[Object], columns: Sequence[Column], output: Format) -> None:
    """Print objects, as `-o` says; more or fewer than one are a `kind: List` in JSON and YAML.

    The objects are plain data with apiVersion, kind and metadata.name.
    """
    match output:
        case Format.TABLE | Format.WIDE:
            shown = [column for column in columns if output is Format.WIDE or not column.wide]
            rows = [[_text(column.cell(item)) for column in shown] for item in items]
            write(table([column.head for column in shown], rows))
        case Format.NAME:
            write("".join(f"{name_of(item)}\n" for item in items))
        case Format.JSON | Format.YAML:
            show_value(items[0] if len(items) == 1 else list_of(items), output)


def show_value(value: Any, output: Format) -> None:
    """Print plain data as JSON, or as YAML where `-o yaml` says so; keys are sorted."""
    if output is Format.YAML:
        write(dump(value))
    else:
        write(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write(text: str) -> None:
    """Text to stdout as it is."""
    click.echo(text, nl=False, file=sys.stdout)


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
    return "".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )


def _text(value: object) -> str:
    """A cell: one line, never empty, so that columns can be counted."""
    if isinstance(value, bool):
        return "True" if value else "False"
    text = "" if value is None else printable(str(value)).replace("\n", " ").replace("\t", " ")
    return text or "<none>"

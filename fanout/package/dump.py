"""Plain data as YAML text in block style: new files, new parts of files, output for people."""

from typing import Any

from fanout.package.scalars import is_literal, key_scalar, scalar
from fanout.values import frozen


@frozen
class Style:
    """How a file is indented: mappings, and lists below the key that they belong to."""

    mapping: int = 2
    sequence: int = 0
    literals: bool = True  # text of several lines may stand as a literal block


def dump(value: Any) -> str:
    """A document as text, keys in their order; empty collections and scalars are one line.

    Text that some reader of YAML 1.1 or 1.2 would take for something else is quoted. Raises
    InvalidInput for what is no JSON data.
    """
    if isinstance(value, dict | list) and value:
        return "".join(f"{line}\n" for line in block(value, 0, Style()))
    return f"{scalar(value)}\n"


def dump_all(values: list[Any]) -> str:
    """Several documents in one text."""
    return "---\n".join(map(dump, values))


def block(value: dict[str, Any] | list[Any], column: int, style: Style) -> list[str]:
    """The lines of a mapping or list that is not empty, each from the line's beginning."""
    pad = " " * column
    lines: list[str] = []
    if isinstance(value, dict):
        for key, child in value.items():
            name = f"{pad}{key_scalar(key)}:"
            if isinstance(child, dict | list) and child:
                lines.append(name)
                step = style.mapping if isinstance(child, dict) else style.sequence
                lines += block(child, column + step, style)
            else:
                head, *more = single(child, column + style.mapping, style)
                lines += [f"{name} {head}", *more]
        return lines
    for child in value:
        if isinstance(child, dict | list) and child:
            head, *more = block(child, column + 2, style)
            lines += [f"{pad}- {head[column + 2 :]}", *more]
        else:
            head, *more = single(child, column + 2, style)
            lines += [f"{pad}- {head}", *more]
    return lines


def single(value: Any, column: int, style: Style) -> list[str]:
    """A value without children: one line, or a literal block whose text begins at the column."""
    if isinstance(value, str) and "\n" in value and style.literals and is_literal(value):
        return literal(value, column)
    return [scalar(value)]


def literal(text: str, column: int) -> list[str]:
    """A literal block: its header, then its lines."""
    pad = " " * column
    header = "|" if text.endswith("\n") else "|-"
    return [
        header,
        *(f"{pad}{line}" if line else "" for line in text.removesuffix("\n").split("\n")),
    ]

"""Plain data as YAML text in block style, for files and command output."""

from typing import Any

from fanout.package.yaml_scalars import format_key, format_scalar, is_literal
from fanout.values import frozen


@frozen
class YamlStyle:
    """Indentation of a file: columns per mapping, and of lists below their key."""

    mapping: int = 2
    sequence: int = 0
    literals: bool = True  # text of several lines may stand as a literal block


def dump(value: Any) -> str:
    """Return a document as YAML text.

    Keys keep their order; empty collections take one line. Text that a reader of YAML 1.1
    or 1.2 would take for another type is quoted. Raises InvalidInput for values that are
    not JSON data.
    """
    if isinstance(value, dict | list) and value:
        return "".join(f"{line}\n" for line in block_lines(value, 0, YamlStyle()))
    return f"{format_scalar(value)}\n"


def dump_all(values: list[Any]) -> str:
    """Return several documents as one text, separated by markers."""
    return "---\n".join(map(dump, values))


def block_lines(value: dict[str, Any] | list[Any], column: int, style: YamlStyle) -> list[str]:
    """Return the lines of a mapping or list that is not empty, indented to the column."""
    padding = " " * column
    lines: list[str] = []
    if isinstance(value, dict):
        for key, child in value.items():
            name = f"{padding}{format_key(key)}:"
            if isinstance(child, dict | list) and child:
                lines.append(name)
                step = style.mapping if isinstance(child, dict) else style.sequence
                lines += block_lines(child, column + step, style)
            else:
                head, *following = single_lines(child, column + style.mapping, style)
                lines += [f"{name} {head}", *following]
        return lines
    for child in value:
        if isinstance(child, dict | list) and child:
            # The first line of the element moves behind the dash, so its indentation is cut
            # off.
            head, *following = block_lines(child, column + 2, style)
            lines += [f"{padding}- {head[column + 2 :]}", *following]
        else:
            head, *following = single_lines(child, column + 2, style)
            lines += [f"{padding}- {head}", *following]
    return lines


def single_lines(value: Any, column: int, style: YamlStyle) -> list[str]:
    """Return the lines of a value without children: one, or a literal block at the column."""
    if isinstance(value, str) and "\n" in value and style.literals and is_literal(value):
        return literal_lines(value, column)
    return [format_scalar(value)]


def literal_lines(text: str, column: int) -> list[str]:
    """Return a literal block: its header, then its lines at the column."""
    padding = " " * column
    header = "|" if text.endswith("\n") else "|-"
    return [
        header,
        *(f"{padding}{line}" if line else "" for line in text.removesuffix("\n").split("\n")),
    ]

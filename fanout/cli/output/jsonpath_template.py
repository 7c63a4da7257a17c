"""Templates of `-o jsonpath=`: text with paths in braces, as kubectl has them.

`{range .items[*]}…{end}` repeats what is between them, and `{"\\n"}` is literal text. Values that
one path selects are joined by a space.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from fanout.cli.output.object_path import ObjectPath, build_path_error, parse_path

ORIGIN: Final = "-o jsonpath"
_PART: Final = re.compile(r"""\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}""")
_RANGE: Final = re.compile(r"\s*range\s+(.*?)\s*\Z", re.DOTALL)


class _Loop(NamedTuple):
    path: ObjectPath
    parts: "list[_Part]"


_Part = str | ObjectPath | _Loop


class JsonPathTemplate:
    """Parsed template; `render` fills it from a value."""

    def __init__(self, text: str) -> None:
        """Parse the template. Raises InvalidInput with the position of the error.

        A template without braces is one path.
        """
        self._parts = [parse_path(text, 0, ORIGIN)] if "{" not in text else _parse_parts(text)

    def render(self, value: Any) -> str:
        """Return the text of the template for the value."""
        return _render(self._parts, value)


def format_selected(value: Any) -> str:
    """Format a selected value: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=_as_plain)


def _as_plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)


def _parse_parts(text: str) -> "list[_Part]":
    top: list[_Part] = []
    open_loops: list[tuple[list[_Part], int]] = [(top, 0)]
    at = 0
    while at < len(text):
        if text[at] != "{":
            end = text.find("{", at)
            literal = text[at : end if end >= 0 else len(text)]
            if "}" in literal:
                raise build_path_error("unexpected }", at + literal.index("}"), ORIGIN)
            open_loops[-1][0].append(literal)
            at += len(literal)
            continue
        match = _PART.match(text, at)
        if match is None:
            raise build_path_error("missing } for the {", at, ORIGIN)
        content = match[1]
        if loop := _RANGE.match(content):
            parts: list[_Part] = []
            path = parse_path(loop[1], at + 1 + loop.start(1), ORIGIN)
            open_loops[-1][0].append(_Loop(path, parts))
            open_loops.append((parts, at))
        elif content.strip() == "end":
            if len(open_loops) == 1:
                raise build_path_error("{end} without {range}", at, ORIGIN)
            open_loops.pop()
        else:
            open_loops[-1][0].append(_parse_part(content, at + 1))
        at = match.end()
    if len(open_loops) > 1:
        raise build_path_error("missing {end} for the {range}", open_loops[-1][1], ORIGIN)
    return top


def _parse_part(content: str, position: int) -> "_Part":
    text = content.strip()
    if text[:1] in ("'", '"'):
        try:
            return str(json.loads(f'"{text[1:-1]}"')) if text[-1] == text[0] else ""
        except ValueError:
            raise build_path_error(f"cannot read {text}", position, ORIGIN) from None
    return parse_path(text, position + len(content) - len(content.lstrip()), ORIGIN)


def _render(parts: "Sequence[_Part]", value: Any) -> str:
    texts: list[str] = []
    for part in parts:
        match part:
            case str():
                texts.append(part)
            case ObjectPath():
                texts.append(" ".join(format_selected(it) for it in part.select(value)))
            case _Loop(path, inner):
                texts += [_render(inner, it) for it in path.select(value)]
    return "".join(texts)

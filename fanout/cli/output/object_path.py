"""Paths into objects, in the dialect of kubectl: `.metadata.labels.fanout\\.dev/stage`.

Fields, `['field']`, `[0]`, `[1:3]`, `[*]`, `..field` and filters such as
`[?(@.state=="Held")]` are supported. Unions and scripts are refused by name. No library parses
this dialect: standard JSONPath has neither `\\.` nor names with slashes.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from fanout.cli.process_exit import invalid_setting
from fanout.errors import InvalidInput

Step = Callable[[Any], Iterator[Any]]
"""Step of a path: yields the values that it selects from one value."""

_FIELD: Final = re.compile(r"(?:\\.|[^.\[\]\s{}()=!<>'\"\\])+")
_INDEX: Final = re.compile(r"-?\d+\Z")
_SLICE: Final = re.compile(r"(-?\d*):(-?\d*)(?::(-?\d*))?\Z")
_QUOTED: Final = re.compile(r"'((?:\\.|[^'\\])*)'\Z|\"((?:\\.|[^\"\\])*)\"\Z")
_COMPARISON: Final = re.compile(r"(.+?)\s*(==|!=|<=|>=|<|>|=~)\s*(.+)\Z", re.DOTALL)
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class ObjectPath(NamedTuple):
    """Parsed path; `select` returns what it finds in a value."""

    steps: Sequence[Step]

    def select(self, value: Any) -> list[Any]:
        """Return the selected values in order; empty if a field is missing."""
        values = [value]
        for step in self.steps:
            values = [selected for it in values for selected in step(it)]
        return values


def parse_path(text: str, offset: int = 0, origin: str = "") -> ObjectPath:
    """Parse a path such as `.status.state`, with or without the first dot or `$`.

    `offset`: position of the path in the value of the option `origin`. Raises InvalidInput.
    """
    return ObjectPath(_PathParser(text, offset, origin).parse())


def parse_relaxed(text: str, origin: str) -> ObjectPath:
    """Parse a path of --sort-by or custom-columns, which may have braces around it."""
    braced = text.startswith("{") and text.endswith("}")
    return parse_path(text[1:-1] if braced else text, int(braced), origin)


def build_path_error(problem: str, position: int, origin: str) -> InvalidInput:
    """Build the error for a path or template; `position` counts characters from 0."""
    remedy = "write a path as in '{.metadata.name}' or '{.items[*].status.state}'"
    return invalid_setting(f"{problem} at position {position + 1}", remedy, origin)


class _PathParser:
    def __init__(self, text: str, offset: int, origin: str) -> None:
        self._text, self._offset, self._origin = text, offset, origin
        self._at = 0

    def parse(self) -> list[Step]:
        text = self._text
        self._at = 1 if text[:1] in ("$", "@") else 0
        steps: list[Step] = []
        if text[self._at :] in ("", "."):
            return steps
        if text[self._at] not in ".[":
            steps.append(self._parse_field())
        while self._at < len(text):
            if text.startswith("..", self._at):
                self._at += 2
                steps.append(partial(_descend, self._parse_field()))
            elif text[self._at] == ".":
                self._at += 1
                steps.append(self._parse_field())
            elif text[self._at] == "[":
                if (end := _find_closing(text, self._at)) < 0:
                    raise self._error("missing ]")
                steps.append(self._parse_bracket(text[self._at + 1 : end].strip()))
                self._at = end + 1
            else:
                raise self._error(f"unexpected {text[self._at]!r}")
        return steps

    def _parse_field(self) -> Step:
        if (match := _FIELD.match(self._text, self._at)) is None:
            raise self._error("expected the name of a field")
        self._at = match.end()
        return _field_step(_unescape(match[0]))

    def _parse_bracket(self, content: str) -> Step:
        if content == "*":
            return _iterate
        if _INDEX.match(content):
            # A slice of one value selects none beyond the ends.
            index = int(content)
            return _slice_step(slice(index, index + 1 or None))
        if content.startswith("?(") and content.endswith(")"):
            return self._parse_filter(content[2:-1].strip())
        if quoted := _QUOTED.match(content):
            return _field_step(_unescape(quoted[1] or quoted[2] or ""))
        if sliced := _SLICE.match(content):
            numbers = (int(it) if it else None for it in sliced.groups())
            return _slice_step(slice(*numbers))
        if "," in content:
            raise self._error("unions such as [0,1] are not supported")
        if content.startswith("("):
            raise self._error("scripts such as [(@.length-1)] are not supported")
        raise self._error(f"cannot read [{content}]")

    def _parse_filter(self, text: str) -> Step:
        if "&&" in text or "||" in text:
            raise self._error("filters with && or || are not supported")
        match = _COMPARISON.match(text)
        path_text, sign, literal = match.groups() if match is not None else (text, "", "")
        if sign == "=~":
            raise self._error("filters with =~ are not supported")
        path = parse_path(path_text.strip(), self._offset + self._at, self._origin)
        if not sign:
            return lambda value: (it for it in _iterate(value) if path.select(it))
        literal = literal.strip()
        if quoted := _QUOTED.match(literal):
            expected = _unescape(quoted[1] or quoted[2] or "")
        else:
            try:
                expected = json.loads(literal)
            except ValueError:
                raise self._error(f"{literal} is neither a quoted string nor a number") from None

        def is_match(field: Any) -> bool:
            try:
                return _OPERATORS[sign](field, expected)
            except TypeError:  # values of two types have no order
                return False

        return lambda value: (it for it in _iterate(value) if any(map(is_match, path.select(it))))

    def _error(self, problem: str) -> InvalidInput:
        return build_path_error(problem, self._offset + self._at, self._origin)


def _find_closing(text: str, start: int) -> int:
    """Return the index of the `]` that closes the bracket at `start`; -1 if there is none."""
    depth, quote, index = 0, "", start
    while index < len(text):
        if (char := text[index]) == "\\":
            index += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[]":
            depth += 1 if char == "[" else -1
            if depth == 0:
                return index
        index += 1
    return -1


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _field_step(name: str) -> Step:
    def select(value: Any) -> Iterator[Any]:
        if name == "*":
            yield from _iterate(value)
        elif isinstance(value, Mapping) and name in value:
            yield value[name]

    return select


def _slice_step(bounds: slice) -> Step:
    return lambda value: iter(value[bounds] if isinstance(value, list | tuple) else ())


def _iterate(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value


def _descend(step: Step, value: Any) -> Iterator[Any]:
    yield from step(value)
    for item in _iterate(value):
        yield from _descend(step, item)


ORIGIN: Final = "-o jsonpath"
_PART: Final = re.compile(r"""\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}""")
_RANGE: Final = re.compile(r"\s*range\s+(.*?)\s*\Z", re.DOTALL)


class TemplateLoop(NamedTuple):
    """Parts of a template between `{range PATH}` and `{end}`."""

    path: ObjectPath
    parts: "list[TemplatePart]"


TemplatePart = str | ObjectPath | TemplateLoop


def format_selected(value: Any) -> str:
    """Format a selected value: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return str(value)
    return json.dumps(
        value,
        ensure_ascii=False,
        default=lambda it: dict(it) if isinstance(it, Mapping) else list(it),
    )


def parse_template(text: str) -> list[TemplatePart]:
    """Parse a template, which is one path if it has no braces. Raises InvalidInput."""
    if "{" not in text:
        return [parse_path(text, 0, ORIGIN)]
    top: list[TemplatePart] = []
    open_loops: list[tuple[list[TemplatePart], int]] = [(top, 0)]
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
        if (match := _PART.match(text, at)) is None:
            raise build_path_error("missing } for the {", at, ORIGIN)
        content = match[1]
        if loop := _RANGE.match(content):
            parts: list[TemplatePart] = []
            path = parse_path(loop[1], at + 1 + loop.start(1), ORIGIN)
            open_loops[-1][0].append(TemplateLoop(path, parts))
            open_loops.append((parts, at))
        elif content.strip() == "end":
            if len(open_loops) == 1:
                raise build_path_error("{end} without {range}", at, ORIGIN)
            open_loops.pop()
        elif (quoted := content.strip())[:1] in ("'", '"'):
            try:
                is_closed = quoted[-1] == quoted[0]
                open_loops[-1][0].append(json.loads(f'"{quoted[1:-1]}"') if is_closed else "")
            except ValueError:
                raise build_path_error(f"cannot read {quoted}", at + 1, ORIGIN) from None
        else:
            position = at + 1 + len(content) - len(content.lstrip())
            open_loops[-1][0].append(parse_path(content.strip(), position, ORIGIN))
        at = match.end()
    if len(open_loops) > 1:
        raise build_path_error("missing {end} for the {range}", open_loops[-1][1], ORIGIN)
    return top


def render_template(parts: Sequence[TemplatePart], value: Any) -> str:
    """Return the text of a parsed template for the value."""
    texts: list[str] = []
    for part in parts:
        match part:
            case str():
                texts.append(part)
            case ObjectPath():
                texts.append(" ".join(format_selected(it) for it in part.select(value)))
            case TemplateLoop(path, inner):
                texts += [render_template(inner, it) for it in path.select(value)]
    return "".join(texts)

"""Syntax of kustomize's replacements: field paths and label selectors.

A field path is `spec.containers.[name=app].env.*.value`; a label selector is
`app=web,tier in (a, b),!canary`, as kubectl reads it.
"""

import re
from collections.abc import Iterator, Mapping

from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING, get_value
from fanout.values import frozen
from fanout.variants.functions.function_interface import Path, UnfitObject

ANY_ELEMENT = "*"


@frozen
class ElementMatch:
    """The element of a list in which a key has a value."""

    key: str
    value: str

    def matches(self, element: object) -> bool:
        """Return whether this is the element.

        With an empty key the element itself must have the value.
        """
        present = get_value(element, (self.key,)) if self.key else element
        return present is not MISSING and _match_text(present) == self.value


PathPart = str | ElementMatch


def parse_field_path(text: str) -> tuple[PathPart, ...]:
    """Parse a path separated by dots, except dots in brackets or after a backslash.

    Raises InvalidInput.
    """
    parts: list[PathPart] = []
    part, bracket, escaped = "", False, False
    for char in f"{text}.":
        if escaped:
            part += char if char in ".\\" else f"\\{char}"
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == "." and not bracket:
            parts.append(_parse_part(part, text))
            part = ""
        else:
            bracket = char == "[" if not bracket else char != "]"
            part += char
    if bracket or escaped:
        raise InvalidInput(f"the field path {text} does not end", remedy="close the bracket")
    return tuple(parts)


def _parse_part(text: str, path: str) -> PathPart:
    if text.startswith("[") and text.endswith("]"):
        key, equals, value = text[1:-1].partition("=")
        if equals:
            return ElementMatch(key, value)
        text = key
    if not text:
        raise InvalidInput(f"the field path {path} has an empty part", remedy="take it out")
    return text


def find_paths(value: object, parts: tuple[PathPart, ...], path: Path = ()) -> Iterator[Path]:
    """Yield the paths of the existing values that the field path selects."""
    if not parts:
        yield path
        return
    for part in _matching_keys(value, parts[0]):
        yield from find_paths(get_value(value, (part,)), parts[1:], (*path, part))


def find_deepest_path(value: object, parts: tuple[PathPart, ...]) -> Path:
    """Return the path of the deepest existing value on the field path."""
    path: Path = ()
    for part in parts:
        keys = _matching_keys(value, part)
        if not keys:
            break
        path = (*path, keys[0])
        value = get_value(value, (keys[0],))
    return path


def _matching_keys(value: object, part: PathPart) -> list[str | int]:
    if isinstance(value, dict):
        if part == ANY_ELEMENT:
            return list(value)
        return [part] if isinstance(part, str) and part in value else []
    if not isinstance(value, list):
        return []
    if part == ANY_ELEMENT:
        return list(range(len(value)))
    if isinstance(part, ElementMatch):
        return [index for index, element in enumerate(value) if part.matches(element)]
    return [int(part)] if part.isdecimal() and int(part) < len(value) else []


def plan_creation(value: object, parts: tuple[PathPart, ...]) -> Iterator[tuple[Path, object]]:
    """Yield the changes that create the field, the last one with MISSING for its value.

    Changes before the last create the elements of lists on the way. Raises UnfitObject
    where the path does not name a single place.
    """
    path: Path = ()
    for depth, part in enumerate(parts):
        if part == ANY_ELEMENT:
            raise UnfitObject(path, "what every element is cannot be made", "name one element")
        keys = _matching_keys(value, part)
        if keys:
            path = (*path, keys[0])
            value = get_value(value, (keys[0],))
            continue
        if isinstance(part, ElementMatch):
            if not part.key or not (value is MISSING or value is None or isinstance(value, list)):
                raise UnfitObject(
                    path, f"there is no list for [{part.key}={part.value}]", "make one"
                )
            path = (*path, len(value) if isinstance(value, list) else 0)
            yield path, {part.key: part.value}
            value = {part.key: part.value}
            continue
        if isinstance(value, list) or (depth and isinstance(value, str | int | float | bool)):
            raise UnfitObject(
                path, f"there is no {part} in what is there", "correct the field path"
            )
        path = (*path, part)
        value = MISSING
    yield path, MISSING


def _match_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_LABEL_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?"
_LABEL_VALUE = rf"(?:{_LABEL_NAME})?"
_REQUIREMENT = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<none>{_LABEL_NAME})"
    rf"|(?P<key>{_LABEL_NAME})(?:\s*(?P<sign>==|=|!=)\s*(?P<value>{_LABEL_VALUE})"
    r"|\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|\Z)"
)


@frozen
class LabelRequirement:
    """A requirement of a label selector on the value or presence of a label."""

    key: str
    positive: bool
    values: frozenset[str] | None  # None: any

    def is_met(self, labels: Mapping[str, object]) -> bool:
        """Return whether the labels meet it; an absent label has none of the values."""
        if self.values is None:
            return (self.key in labels) is self.positive
        return (labels.get(self.key) in self.values) is self.positive


def parse_label_selector(text: str) -> tuple[LabelRequirement, ...]:
    """Parse the requirements, all of which must be met; an empty text has none.

    Raises InvalidInput.
    """
    requirements, position = [], 0
    if not text.strip():
        return ()
    while position < len(text):
        # The values in parentheses contain commas, so the text cannot be split at them beforehand.
        match = _REQUIREMENT.match(text, position)
        if match is None:
            raise InvalidInput(
                f"{text!r} is no selector", remedy="write it like app=web,tier in (a,b),!canary"
            )
        requirements.append(_build_requirement(match))
        position = match.end()
    return tuple(requirements)


def _build_requirement(match: re.Match[str]) -> LabelRequirement:
    if match["absent"]:
        return LabelRequirement(match["none"], False, None)
    if match["word"]:
        values = frozenset(value.strip() for value in match["values"].split(","))
        return LabelRequirement(match["key"], match["word"] == "in", values)
    if match["sign"]:
        return LabelRequirement(match["key"], match["sign"] != "!=", frozenset({match["value"]}))
    return LabelRequirement(match["key"], True, None)

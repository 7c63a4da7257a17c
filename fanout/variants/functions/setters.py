"""apply-setters, create-setters and list-setters.

A setter is a part of a value that a comment names: `image: nginx:1.25 # kpt-set: nginx:${tag}`. The
text of the comment is the pattern. apply-setters sets the values that patterns name, create-setters
finds values that become setters and names them in comments, and list-setters reports the setters
with their values, types and number of fields.
"""

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING, get_value
from fanout.package.manifest import Manifest
from fanout.package.yaml_scalars import resolve_scalar
from fanout.values import KeyedValue
from fanout.variants.functions.field_specs import SortedTexts
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    FunctionResult,
    LineComment,
    Matching,
    Object,
    ObjectFinding,
    ObjectText,
    PackageFacts,
    Path,
    SizeLimiter,
    UnfitObject,
    VisibleObject,
    infer_value,
    no_object_changes,
    parse_data,
    refuse_settings,
)

SETTER_PREFIX = "kpt-set:"
_SETTER = re.compile(r"\$\{([^}]*)\}")


def find_setter_patterns(text: ObjectText) -> Iterator[tuple[Path, str]]:
    """Yield the patterns of an object, each with the path of its value."""
    for path, comment in text.comments().items():
        if comment.startswith(SETTER_PREFIX) and (pattern := comment[len(SETTER_PREFIX) :].strip()):
            yield path, pattern


def setter_names(pattern: str) -> tuple[str, ...]:
    """Return the names of the setters in a pattern, in order."""
    return tuple(_SETTER.findall(pattern))


def single_setter(pattern: str) -> str:
    """Return the setter that is the complete pattern, or "" for other patterns."""
    match = _SETTER.fullmatch(pattern)
    return match[1] if match else ""


def fill_pattern(
    pattern: str, values: Mapping[str, str], size_limiter: SizeLimiter, path: Path
) -> str:
    """Return the pattern with values for its setters. Raises UnfitObject if it gets too long."""
    return size_limiter.substitute(_SETTER, pattern, lambda match: values[match[1]], path)


def derive_values(pattern: str, text: str) -> dict[str, str]:
    """Return the values of the setters that make `text` from the pattern.

    Empty where there are none, or where a setter would be empty or have two values. Among
    several solutions the first setter is the longest possible, as in the catalog. Each
    separator is searched from the end, so the time is linear.
    """
    literals = _SETTER.split(pattern)[::2]
    keys = setter_names(pattern)
    prefix, suffix = literals[0], literals[-1]
    start, end = len(prefix), len(text) - len(suffix)
    if not keys or end < start or not text.startswith(prefix) or not text.endswith(suffix):
        return {}
    values: dict[str, str] = {}
    # A regular expression with a group per setter gives the same answer, but can backtrack far too
    # long on a text of the package that almost fits.
    for key, literal in zip(reversed(keys[1:]), reversed(literals[1:-1]), strict=True):
        position = text.rfind(literal, start, end)
        if position < 0 or not _add_value(values, key, text[position + len(literal) : end]):
            return {}
        end = position
    return values if _add_value(values, keys[0], text[start:end]) else {}


def _add_value(values: dict[str, str], key: str, value: str) -> bool:
    # A setter that occurs twice must have the same value in both places.
    return bool(value) and values.setdefault(key, value) == value


_PLAIN_TEXT = re.compile(r"[A-Za-z0-9_/][^\n]*\Z")


def _apply_changes(
    config: SortedTexts, item: VisibleObject, _facts: PackageFacts
) -> Iterator[Change]:
    values = dict(config)
    for path, pattern in find_setter_patterns(item.text):
        value = get_value(item.value, path)
        if value is MISSING or not any(name in values for name in setter_names(pattern)):
            continue
        if isinstance(value, list):
            if not (name := single_setter(pattern)):
                raise UnfitObject(path, f"{pattern} is not a setter of a list", "name one setter")
            if (list_elements := parse_elements(values[name])) is None:
                raise UnfitObject(path, f"{name} is not a list", "write a list as YAML")
            yield path, list_elements
        elif not isinstance(value, dict):
            spelling = item.text.spelling(path)
            # A pattern may combine several setters of which only some are given; the others keep
            # the values that they have in the text.
            setter_values = ChainMap(values, derive_values(pattern, spelling.text or ""))
            missing_names = [name for name in setter_names(pattern) if name not in setter_values]
            if missing_names:
                raise UnfitObject(
                    path,
                    f"there is no value for {', '.join(dict.fromkeys(missing_names))}",
                    "add it; it cannot be derived from the current value",
                )
            text = fill_pattern(pattern, setter_values, item.size_limiter, path)
            yield path, infer_value(text, spelling, path, item.value)


def parse_elements(text: str) -> list[object] | None:
    """Return the list that the text represents, empty for no text, or None if it is no list."""
    if not text.strip():
        return []
    try:
        documents = Manifest.parse(text.encode(), "setter").documents
    except InvalidInput:
        return None
    value = documents[0].value if len(documents) == 1 else None
    return value if isinstance(value, list) else None


APPLY_SETTERS = CatalogFunction(
    "apply-setters",
    "2",
    parse_data,
    _apply_changes,
    includes_local=True,
    # The present values, from which setters without a given value are derived.
    depends_on=lambda _config, item: (
        get_value(item.value, path) for path, _ in find_setter_patterns(item.text)
    ),
    # A text that stays text everywhere, being neither number nor list.
    passes_through=lambda _name, text: (
        _PLAIN_TEXT.match(text) is not None and isinstance(resolve_scalar(text), str)
    ),
    matching=Matching(
        lambda config: frozenset(dict(config)),
        lambda _config, item: (
            name for _, pattern in find_setter_patterns(item.text) for name in setter_names(pattern)
        ),
        "no field has a setter {}".format,
    ),
)


class _NewSetters(KeyedValue):
    UNCOMPARED: ClassVar = ("names_by_value", "names_by_elements", "lengths")
    scalars: SortedTexts  # value and name, the longest value first
    lists: tuple[tuple[tuple[str, ...], str], ...]  # sorted elements, and the setter's name
    # The same for lookups. There are few lengths: trying each value at each position of a text
    # takes quadratic time.
    names_by_value: Mapping[str, str]
    names_by_elements: Mapping[tuple[str, ...], str]
    lengths: tuple[int, ...]  # of the values, the longest first

    def make_pattern(self, text: str) -> str:
        """Return the text with setters in place of their values. Unchanged if it contains none."""
        parts: list[str] = []
        position = 0
        while position < len(text):
            candidates = (text[position : position + length] for length in self.lengths)
            value = next((it for it in candidates if it in self.names_by_value), "")
            parts.append(f"${{{self.names_by_value[value]}}}" if value else text[position])
            position += len(value) or 1
        return "".join(parts)

    def changes(self, item: VisibleObject, _facts: PackageFacts) -> Iterator[Change]:
        for path, comment, fits_comment in self.find_setters(item.value, (), item.text):
            if fits_comment:
                yield path, LineComment(f"{SETTER_PREFIX} {comment}")

    def check_object(self, item: VisibleObject, _facts: PackageFacts) -> Iterator[ObjectFinding]:
        """Warn about values that would become setters but cannot have a comment on their line.

        The text is not reformatted, since that would appear in every later diff against upstream.
        """
        for path, comment, fits_comment in self.find_setters(item.value, (), item.text):
            if not fits_comment:
                problem = (
                    f"no comment `{comment}` fits on its line; write the enclosing list or map"
                    " in block style"
                )
                yield ObjectFinding(path, problem, "warning")

    def find_names(self, item: VisibleObject) -> Iterator[str]:
        """Yield the setters whose values the object has."""
        for _, comment, _ in self.find_setters(item.value, (), item.text):
            yield from setter_names(comment)

    def find_setters(
        self, value: object, path: Path, object_text: ObjectText
    ) -> Iterator[tuple[Path, str, bool]]:
        """Yield path, comment, and whether it fits the line, for each value to be a setter."""
        if isinstance(value, dict):
            for key, child in value.items():
                yield from self.find_setters(child, (*path, key), object_text)
            return
        spelling = object_text.spelling(path)
        if spelling.aliased:
            return  # found at its anchor
        if not isinstance(value, list):
            text = spelling.text or ""
            pattern = self.make_pattern(text)
            if pattern != text and "\n" not in text:  # several lines get no comment, as documented
                yield path, pattern, spelling.has_comment_room
            return
        texts = [object_text.spelling((*path, at)).text for at in range(len(value))]
        list_elements = tuple(sorted(text for text in texts if text is not None))
        if (setter_name := self.names_by_elements.get(list_elements, "")) and None not in texts:
            yield path, f"${{{setter_name}}}", spelling.has_comment_room
        for at, child in enumerate(value):
            yield from self.find_setters(child, (*path, at), object_text)


def _configure_create(config: Object) -> _NewSetters:
    scalars: dict[str, str] = {}
    lists: dict[tuple[str, ...], str] = {}
    for name, text in parse_data(config):
        if not text.strip() or "}" in name:
            raise InvalidInput(
                f"data.{name} is not a valid setter", remedy="write a name without } and a value"
            )
        if (elements := _parse_elements(name, text)) is None:
            scalars.setdefault(text, name)
        else:
            lists.setdefault(elements, name)
    if not scalars and not lists:
        raise InvalidInput("data is empty", remedy="add at least one setter and its value")
    # A value that begins with another value must be tried before it.
    longest_first = sorted(scalars.items(), key=lambda pair: (-len(pair[0]), pair))
    lengths = tuple(sorted({len(value) for value in scalars}, reverse=True))
    return _NewSetters(tuple(longest_first), tuple(sorted(lists.items())), scalars, lists, lengths)


def _parse_elements(name: str, text: str) -> tuple[str, ...] | None:
    """Return the sorted elements if the text is a list, or None for a single value."""
    try:
        (document,) = Manifest.parse(text.encode(), "setter").documents
    except (InvalidInput, ValueError):
        return None  # text that is not YAML is a single value
    if not isinstance(document.value, list):
        if isinstance(document.value, dict):
            raise InvalidInput(f"data.{name} is a map", remedy="write one value, or a list")
        return None
    spellings = [document.spellings().get((at,)) for at in range(len(document.value))]
    if not spellings or any(spelling is None or spelling.text is None for spelling in spellings):
        raise InvalidInput(f"data.{name} is not a list of scalars", remedy="write scalars")
    return tuple(sorted(spelling.text or "" for spelling in spellings if spelling))


CREATE_SETTERS = CatalogFunction(
    "create-setters",
    "3",
    _configure_create,
    _NewSetters.changes,
    includes_local=True,
    check_object=_NewSetters.check_object,
    matching=Matching(
        lambda config: frozenset(name for _, name in (*config.scalars, *config.lists)),
        _NewSetters.find_names,
        "no field has the value of the setter {}".format,
    ),
)


_TYPES = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}


@dataclass(slots=True)
class _Setter:
    value: str
    type: str
    count: int = 0


def _report_setters(
    _config: None, items: Sequence[VisibleObject], _facts: PackageFacts
) -> Iterator[FunctionResult]:
    setters: dict[str, _Setter] = {}
    for item in items:
        for path, pattern in find_setter_patterns(item.text):
            value = get_value(item.value, path)
            if isinstance(value, list):
                texts = (item.text.spelling((*path, at)).text for at in range(len(value)))
                list_text = f"[{', '.join(text for text in texts if text is not None)}]"
                _count_setter(setters, single_setter(pattern), list_text, "array")
            elif value is not MISSING and not isinstance(value, dict):
                kind = _TYPES[type(value)] if single_setter(pattern) else "str"
                text = item.text.spelling(path).text or ""
                for name, part in derive_values(pattern, text).items():
                    _count_setter(setters, name, part, kind)
    for name, setter in sorted(setters.items()):
        yield FunctionResult(
            f"Name: {name}, Value: {setter.value}, Type: {setter.type}, Count: {setter.count}"
        )


def _count_setter(setters: dict[str, _Setter], name: str, value: str, kind: str) -> None:
    if not name:
        return  # a list with several setters is not a setter
    setter = setters.setdefault(name, _Setter(value, kind))
    setter.count += 1
    if setter.type == "str":  # a setter of a complete value has a precise type
        setter.type = kind


LIST_SETTERS = CatalogFunction(
    "list-setters",
    "1",
    refuse_settings,
    no_object_changes,
    includes_local=True,
    report_package=_report_setters,
)

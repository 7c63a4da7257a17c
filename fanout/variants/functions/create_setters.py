"""create-setters: find values that become setters and name them in comments."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from fanout.errors import InvalidInput
from fanout.package.manifest import Manifest
from fanout.values import KeyedValue
from fanout.variants.functions.field_specs import SortedTexts
from fanout.variants.functions.function_config import parse_data
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    LineComment,
    Matching,
    Object,
    ObjectFinding,
    PackageFacts,
    Path,
)
from fanout.variants.functions.setter_patterns import SETTER_PREFIX, setter_names


class _Config(KeyedValue):
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


def _configure(config: Object) -> _Config:
    scalars: dict[str, str] = {}
    lists: dict[tuple[str, ...], str] = {}
    for name, text in parse_data(config):
        if not text.strip() or "}" in name:
            raise InvalidInput(
                f"data.{name} is not a valid setter", remedy="write a name without } and a value"
            )
        elements = _parse_elements(name, text)
        if elements is None:
            scalars.setdefault(text, name)
        else:
            lists.setdefault(elements, name)
    if not scalars and not lists:
        raise InvalidInput("data is empty", remedy="add at least one setter and its value")
    # A value that begins with another value must be tried before it.
    longest_first = sorted(scalars.items(), key=lambda pair: (-len(pair[0]), pair))
    lengths = tuple(sorted({len(value) for value in scalars}, reverse=True))
    return _Config(tuple(longest_first), tuple(sorted(lists.items())), scalars, lists, lengths)


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


def _changes(config: _Config, item: Object, facts: PackageFacts) -> Iterator[Change]:
    for path, comment, fits_comment in _find_setters(config, item, (), facts):
        if fits_comment:
            yield path, LineComment(f"{SETTER_PREFIX} {comment}")


def _check_object(config: _Config, item: Object, facts: PackageFacts) -> Iterator[ObjectFinding]:
    """Warn about values that would become setters but cannot have a comment on their line.

    The text is not reformatted, since that would appear in every later diff against upstream.
    """
    for path, comment, fits_comment in _find_setters(config, item, (), facts):
        if not fits_comment:
            problem = (
                f"no comment `{comment}` fits on its line; write the enclosing list or map"
                " in block style"
            )
            yield ObjectFinding(path, problem, "warning")


def _find_setters(
    config: _Config, value: object, path: Path, facts: PackageFacts
) -> Iterator[tuple[Path, str, bool]]:
    """Yield path, comment, and whether it fits the line, for each value to be a setter."""
    assert facts.text is not None
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _find_setters(config, child, (*path, key), facts)
        return
    spelling = facts.text.spelling(path)
    if spelling.aliased:
        return  # found at its anchor
    if not isinstance(value, list):
        text = spelling.text or ""
        pattern = config.make_pattern(text)
        if pattern != text and "\n" not in text:  # several lines get no comment, as documented
            yield path, pattern, spelling.has_comment_room
        return
    texts = [facts.text.spelling((*path, at)).text for at in range(len(value))]
    list_elements = tuple(sorted(text for text in texts if text is not None))
    setter_name = config.names_by_elements.get(list_elements, "")
    if setter_name and None not in texts:
        yield path, f"${{{setter_name}}}", spelling.has_comment_room
    for at, child in enumerate(value):
        yield from _find_setters(config, child, (*path, at), facts)


def _find_names(config: _Config, item: Object, facts: PackageFacts) -> Iterator[str]:
    """Yield the setters whose values the object has."""
    for _, comment, _ in _find_setters(config, item, (), facts):
        yield from setter_names(comment)


CREATE_SETTERS = CatalogFunction(
    "create-setters",
    "3",
    _configure,
    _changes,
    reads_text=True,
    includes_local=True,
    check_object=_check_object,
    matching=Matching(
        lambda config: frozenset(name for _, name in (*config.scalars, *config.lists)),
        _find_names,
        "no field has the value of the setter {}".format,
    ),
)

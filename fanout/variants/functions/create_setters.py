"""create-setters: finds the values that are to become setters and names them in comments."""

import re
from collections.abc import Iterator

from fanout.errors import InvalidInput
from fanout.package.manifests import Manifest
from fanout.values import frozen
from fanout.variants.functions.config import data_of
from fanout.variants.functions.fields import Values
from fanout.variants.functions.function import (
    Change,
    Comment,
    Facts,
    InProcess,
    Object,
    Path,
    Written,
)
from fanout.variants.functions.setters import MARK


@frozen
class _Config:
    scalars: Values  # value and name, the longest value first
    lists: tuple[tuple[tuple[str, ...], str], ...]  # sorted elements, and the setter's name

    def pattern(self, text: str) -> str:
        """The text with setters in the place of their values; the same where there are none."""
        if not self.scalars:
            return text
        found = dict(self.scalars)
        anyone = "|".join(re.escape(value) for value, _ in self.scalars)
        return re.sub(anyone, lambda match: f"${{{found[match[0]]}}}", text)

    def setter_of(self, texts: tuple[str, ...]) -> str:
        """The setter that has just these elements, in whatever order; "" when there is none."""
        return next((name for elements, name in self.lists if elements == texts), "")


def _configure(config: Object) -> _Config:
    scalars: dict[str, str] = {}
    lists: dict[tuple[str, ...], str] = {}
    for name, text in data_of(config):
        if not text.strip() or "}" in name:
            raise InvalidInput(
                f"data.{name} is no setter", remedy="give a name without } and a value"
            )
        elements = _elements(name, text)
        if elements is None:
            scalars.setdefault(text, name)
        else:
            lists.setdefault(elements, name)
    if not scalars and not lists:
        raise InvalidInput("data is empty", remedy="name at least one setter and its value")
    longest_first = sorted(scalars.items(), key=lambda pair: (-len(pair[0]), pair))
    return _Config(tuple(longest_first), tuple(sorted(lists.items())))


def _elements(name: str, text: str) -> tuple[str, ...] | None:
    """The sorted elements if the text is a list; None if it is one value."""
    try:
        (document,) = Manifest.parse(text.encode(), "setter").documents
    except (InvalidInput, ValueError):
        return None  # text that is no YAML is a value like any other
    if not isinstance(document.value, list):
        if isinstance(document.value, dict):
            raise InvalidInput(f"data.{name} is a map", remedy="give one value, or a list")
        return None
    spelled = [document.spellings().get((at,)) for at in range(len(document.value))]
    if not spelled or any(spelling is None or spelling.text is None for spelling in spelled):
        raise InvalidInput(f"data.{name} is no list of values", remedy="give plain values")
    return tuple(sorted(spelling.text or "" for spelling in spelled if spelling))


def _changes(config: _Config, item: Object, facts: Facts) -> Iterator[Change]:
    assert facts.written is not None
    yield from _walk(config, item, (), facts.written)


def _walk(config: _Config, value: object, path: Path, written: Written) -> Iterator[Change]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _walk(config, child, (*path, key), written)
        return
    if not isinstance(value, list):
        yield from _scalar(config, path, written)
        return
    texts = [written.spelling((*path, at)).text for at in range(len(value))]
    setter = config.setter_of(tuple(sorted(text for text in texts if text is not None)))
    if setter and None not in texts and written.spelling(path).comments:
        yield path, Comment(f"{MARK} ${{{setter}}}")
    for at, child in enumerate(value):
        yield from _walk(config, child, (*path, at), written)


def _scalar(config: _Config, path: Path, written: Written) -> Iterator[Change]:
    spelling = written.spelling(path)
    text = spelling.text or ""
    pattern = config.pattern(text)
    # no comment fits on several lines, nor between others on one line
    if pattern != text and "\n" not in text and spelling.comments:
        yield path, Comment(f"{MARK} {pattern}")


CREATE_SETTERS = InProcess(
    "create-setters", "2", _configure, _changes, in_text=True, sees_local=True
)

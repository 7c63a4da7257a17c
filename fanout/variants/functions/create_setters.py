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
    Finding,
    InProcess,
    Object,
    Path,
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
    for path, comment, fits in _found(config, item, (), facts):
        if fits:
            yield path, Comment(f"{MARK} {comment}")


def _judges(config: _Config, item: Object, facts: Facts) -> Iterator[Finding]:
    """Warn of values that are to become setters and stand where no comment can.

    The text is not laid out anew: that would be in every diff against upstream from then on.
    """
    for path, comment, fits in _found(config, item, (), facts):
        if not fits:
            problem = (
                f"no comment `{comment}` fits on its line; write what it is part of as a block"
            )
            yield Finding(path, problem, "warning")


def _found(
    config: _Config, value: object, path: Path, facts: Facts
) -> Iterator[tuple[Path, str, bool]]:
    """Values that are to become setters: path, comment, and whether the line has room for it."""
    assert facts.written is not None
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _found(config, child, (*path, key), facts)
        return
    spelling = facts.written.spelling(path)
    if spelling.aliased:
        return  # it is found where it stands
    if not isinstance(value, list):
        text = spelling.text or ""
        pattern = config.pattern(text)
        if pattern != text and "\n" not in text:  # several lines get no comment, as documented
            yield path, pattern, spelling.comments
        return
    texts = [facts.written.spelling((*path, at)).text for at in range(len(value))]
    setter = config.setter_of(tuple(sorted(text for text in texts if text is not None)))
    if setter and None not in texts:
        yield path, f"${{{setter}}}", spelling.comments
    for at, child in enumerate(value):
        yield from _found(config, child, (*path, at), facts)


CREATE_SETTERS = InProcess(
    "create-setters", "3", _configure, _changes, in_text=True, sees_local=True, judges=_judges
)

"""search-replace: finds values by what they are and where, and puts others, or comments, there.

All that is given to search by must fit. In the catalog an expression is content with a part of a
value; here it is about the whole of it, as its documentation says (porch.md §11). Where nothing is
given to put, what is found is reported and stays.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from fanout.errors import InvalidInput
from fanout.values import frozen
from fanout.variants.functions.config import data_of, fields_of
from fanout.variants.functions.function import (
    Change,
    Comment,
    Facts,
    Finding,
    InProcess,
    Object,
    Path,
    Unfit,
)
from fanout.variants.functions.patterns import elements, fits, glob, is_literal
from fanout.variants.functions.regex import Regex
from fanout.variants.functions.typed import typed

_SEARCH = ("by-value", "by-value-regex", "by-path", "by-file-path")
_PUT = ("put-value", "put-comment")
_GROUP = re.compile(r"\$\{([0-9]+)\}")


@frozen
class _Config:
    value: str
    expression: str
    path: str
    files: str
    put_value: str
    put_comment: str

    @property
    def searches_values(self) -> bool:
        return bool(self.value or self.expression)


def _configure(config: Object) -> _Config:
    values = fields_of(dict(data_of(config)), "data", (*_SEARCH, *_PUT))
    found = _Config(*(values.get(key, "") for key in (*_SEARCH, *_PUT)))
    if found.value and found.expression:
        raise InvalidInput("data has by-value and by-value-regex", remedy="give one of them")
    if not found.searches_values and not found.path:
        raise InvalidInput(
            "data says nothing to search by", remedy="give by-value, by-value-regex or by-path"
        )
    if any(ord(char) < 32 for char in found.put_comment):
        raise InvalidInput("data.put-comment is more than one line", remedy="make it one")
    regex = _checked("by-value-regex", found.expression, Regex.of)
    _checked("by-file-path", found.files, glob)
    for key in _PUT if found.expression else ():
        if any(int(number) not in range(1, regex.groups + 1) for number in _groups(values, key)):
            raise InvalidInput(
                f"data.{key} refers to a group that by-value-regex has not",
                remedy="count its parentheses, from 1",
            )
    return found


def _checked(key: str, text: str, make: Callable[[str], Regex]) -> Regex:
    try:
        return make(text)
    except InvalidInput as problem:
        raise InvalidInput(f"data.{key}: {problem.problem}", remedy=problem.remedy) from None


def _groups(values: Mapping[str, str], key: str) -> list[str]:
    return _GROUP.findall(values.get(key, ""))


def _changes(config: _Config, item: Object, facts: Facts) -> Iterator[Change]:
    if not config.put_value and not config.put_comment:
        return
    pattern = config.path.split(".") if config.path else None
    wanted = pattern is not None and not config.searches_values and is_literal(pattern)
    if wanted and config.files and glob(config.files).match(facts.file) is None:
        return
    for path, value, groups in _matches(config, item, facts):
        wanted = False
        if not isinstance(value, list):
            yield from _put(config, item, path, groups, facts)
        elif config.put_comment:
            yield path, Comment(config.put_comment)
    if wanted and config.put_value and pattern is not None:
        yield from _missing(config, item, tuple(pattern), facts)


def _judges(config: _Config, item: Object, facts: Facts) -> Iterator[Finding]:
    """Report what is found where nothing is to be put; the values of Secrets are not shown."""
    if config.put_value or config.put_comment:
        return
    for path, value, groups in _matches(config, item, facts):
        if isinstance(value, list):
            found = f"a list of {len(value)}"
        else:
            found = "a value" if item.get("kind") == "Secret" else f"the value {groups[0]!r}"
        yield Finding(path, f"{found} is found", "info")


def _matches(
    config: _Config, item: Object, facts: Facts
) -> Iterator[tuple[Path, object, tuple[str | None, ...]]]:
    """All values that fit, each with the groups of the expression, the whole text first.

    A list has no value of its own; it is found by its path alone.
    """
    if config.files and glob(config.files).match(facts.file) is None:
        return
    pattern = config.path.split(".") if config.path else None
    for path, value in _walk(item, ()):
        if pattern is not None and not fits(elements(path), pattern):
            continue
        if isinstance(value, list):
            if not config.searches_values:
                yield path, value, ()
            continue
        groups = _groups_in(config, path, facts)
        if groups is not None:
            yield path, value, groups


def _walk(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    """All scalars and lists in the object."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _walk(child, (*path, key))
        return
    yield path, value
    if isinstance(value, list):
        for at, child in enumerate(value):
            yield from _walk(child, (*path, at))


def _groups_in(config: _Config, path: Path, facts: Facts) -> tuple[str | None, ...] | None:
    """The groups of the expression in the value's text; None where the value does not fit."""
    assert facts.written is not None
    text = facts.written.spelling(path).text or ""
    if config.value and config.value != text:
        return None
    if config.expression:
        return Regex.of(config.expression).match(text) if text else None
    return (text,)


def _put(
    config: _Config, item: Object, path: Path, groups: tuple[str | None, ...], facts: Facts
) -> Iterator[Change]:
    assert facts.written is not None
    spelling = facts.written.spelling(path)
    if config.put_value:
        value = typed(
            _resolved(config, config.put_value, groups, facts, path), spelling, path, item
        )
        yield path, value
    if config.put_comment:
        if not spelling.comments:
            raise Unfit(path, "there is no room for a comment", "write the value on its own line")
        yield path, Comment(_resolved(config, config.put_comment, groups, facts, path))


def _resolved(
    config: _Config, text: str, groups: tuple[str | None, ...], facts: Facts, path: Path
) -> str:
    if not config.expression:
        return text
    assert facts.room is not None, "it looks at the text"
    return facts.room.substituted(_GROUP, text, lambda match: groups[int(match[1])] or "", path)


def _missing(config: _Config, item: Object, path: Path, facts: Facts) -> Iterator[Change]:
    """The field is made where the object has none."""
    assert facts.written is not None
    place: object = item
    for at, part in enumerate(path):
        if place is not None and not isinstance(place, dict):
            raise Unfit(path[:at], "by-path leads through what is no map", "correct by-path")
        place = (place or {}).get(part)
    if isinstance(place, dict):
        raise Unfit(path, "by-path leads to a map", "correct by-path")
    spelling = facts.written.spelling(path)._replace(quoted=False)
    yield path, typed(config.put_value, spelling, path, item)
    if config.put_comment:
        yield path, Comment(config.put_comment)


SEARCH_REPLACE = InProcess(
    "search-replace", "3", _configure, _changes, in_text=True, sees_local=True, judges=_judges
)

"""gives new values to what `kpt-set` comments name."""

import re
from collections.abc import Iterator, Mapping

from fanout.errors import InvalidInput
from fanout.package.edits import MISSING, get
from fanout.package.manifests import Manifest
from fanout.package.scalars import resolve
from fanout.values import frozen
from fanout.variants.functions.config import data_of
from fanout.variants.functions.fields import Values
from fanout.variants.functions.function import Change, Facts, InProcess, Object, Path, Unfit
from fanout.variants.functions.setters import derived, filled, names, setter_comments, single
from fanout.variants.functions.typed import typed

_TEXT = re.compile(r"[A-Za-z0-9_/][^\n]*\Z")


@frozen
class _Config:
    given: Values

    @property
    def values(self) -> Mapping[str, str]:
        return dict(self.given)


def _configure(config: Object) -> _Config:
    return _Config(data_of(config))


def _changes(config: _Config, item: Object, facts: Facts) -> Iterator[Change]:
    assert facts.written is not None
    values = config.values
    for path, pattern in setter_comments(facts.written):
        value = get(item, path)
        if value is MISSING or not any(name in values for name in names(pattern)):
            continue
        if isinstance(value, list):
            yield path, _elements(values, path, pattern)
        elif not isinstance(value, dict):
            yield path, _scalar(values, item, path, pattern, facts)


def _scalar(
    values: Mapping[str, str], item: Object, path: Path, pattern: str, facts: Facts
) -> object:
    assert facts.written is not None
    spelling = facts.written.spelling(path)
    known = {**derived(pattern, spelling.text or ""), **values}
    missing = [name for name in names(pattern) if name not in known]
    if missing:
        raise Unfit(
            path,
            f"there is no value for {', '.join(dict.fromkeys(missing))}",
            "give it, for it cannot be had from the present value",
        )
    assert facts.room is not None, "it looks at the text"
    return typed(filled(pattern, known, facts.room, path), spelling, path, item)


def _elements(values: Mapping[str, str], path: Path, pattern: str) -> list[object]:
    name = single(pattern)
    if not name:
        raise Unfit(path, f"{pattern} is no setter of a list", "name one setter")
    found = elements(values[name])
    if found is None:
        raise Unfit(path, f"{name} is no list", "give a list, written as YAML")
    return found


def elements(text: str) -> list[object] | None:
    """The list that a setter's text is; none is empty; None for anything else."""
    if not text.strip():
        return []
    try:
        documents = Manifest.parse(text.encode(), "setter").documents
    except InvalidInput:
        return None
    value = documents[0].value if len(documents) == 1 else None
    return value if isinstance(value, list) else None


def _heeds(_config: _Config, item: Object, facts: Facts) -> Iterator[object]:
    """The present values, of which it takes what it is not given."""
    assert facts.written is not None
    yield from (get(item, path) for path, _ in setter_comments(facts.written))


def _copies(_name: str, text: str) -> bool:
    """Is it text at every place, and neither a number nor a list?"""
    return _TEXT.match(text) is not None and isinstance(resolve(text), str)


APPLY_SETTERS = InProcess(
    "apply-setters",
    "2",
    _configure,
    _changes,
    in_text=True,
    sees_local=True,
    heeds=_heeds,
    copies=_copies,
)

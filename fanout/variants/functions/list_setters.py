"""list-setters: says which setters there are, their values, types and how many fields they fill."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fanout.package.edits import MISSING, get
from fanout.package.spelling import Spelling
from fanout.variants.functions.config import check_inline
from fanout.variants.functions.function import (
    Facts,
    InProcess,
    Object,
    Result,
    Seen,
    nothing,
)
from fanout.variants.functions.setters import derived, setter_comments, single

_TYPES = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}


@dataclass(slots=True)
class _Setter:
    value: str
    type: str
    count: int = 0


def _configure(config: Object) -> None:
    """It has nothing to configure. Raises InvalidInput for what is given all the same."""
    check_inline(config, ())


def _reports(_config: None, items: Sequence[Seen], _facts: Facts) -> Iterator[Result]:
    found: dict[str, _Setter] = {}
    for item in items:
        for path, pattern in setter_comments(item.written):
            value = get(item.value, path)
            if isinstance(value, list):
                texts = (item.written.spelling((*path, at)).text for at in range(len(value)))
                shown = f"[{', '.join(text for text in texts if text is not None)}]"
                _count(found, single(pattern), shown, "array")
            elif value is not MISSING and not isinstance(value, dict):
                _scalars(found, pattern, value, item.written.spelling(path))
    for name, setter in sorted(found.items()):
        yield Result(
            f"Name: {name}, Value: {setter.value}, Type: {setter.type}, Count: {setter.count}"
        )


def _scalars(found: dict[str, _Setter], pattern: str, value: object, spelling: Spelling) -> None:
    whole = bool(single(pattern))
    for name, text in derived(pattern, spelling.text or "").items():
        _count(found, name, text, _TYPES[type(value)] if whole else "str")


def _count(found: dict[str, _Setter], name: str, value: str, kind: str) -> None:
    if not name:
        return  # a list that is several setters is none
    setter = found.setdefault(name, _Setter(value, kind))
    setter.count += 1
    if setter.type == "str":  # part of a text; the whole of a field says more
        setter.type = kind


LIST_SETTERS = InProcess(
    "list-setters", "1", _configure, nothing, sees_local=True, reports=_reports
)

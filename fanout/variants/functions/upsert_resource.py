"""upsert-resource: puts an object into the package, in place of the one that is already there.

The object is the function's configuration, or each of a List's items. In an object that it replaces
only what differs is changed, so that the comments on the rest stay.

A configuration that stands in the package is an object of it, which is there already, unless it is
marked as for tools alone. The mark is about that file; what is put into the package has it not.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from fanout.api.paths import path_inside
from fanout.errors import InvalidInput
from fanout.selection.objects import group_of
from fanout.variants.canonical import canonical
from fanout.variants.functions.arrivals import file_of
from fanout.variants.functions.function import (
    LOCAL_CONFIG,
    Change,
    Facts,
    InProcess,
    Object,
    Seen,
    is_local,
    mapping,
)

TARGET_PATH = "config.kubernetes.io/target-path"
_FUNCTION = ("config.kubernetes.io/function", "config.k8s.io/function")


class _Objects(tuple[tuple[Any, str], ...]):
    """Objects and the files that they are for; equal when their contents are."""

    __slots__ = ()

    def __hash__(self) -> int:
        """Objects are plain data, which has no hash of its own."""
        return hash(canonical(list(self)))


def _configure(config: Object) -> _Objects:
    if config.get("kind") != "List":
        return _Objects([_object(config, LOCAL_CONFIG, *_FUNCTION)])
    items = config.get("items")
    if not isinstance(items, list):
        raise InvalidInput("items is no list", remedy="give the objects as a list")
    return _Objects(_object(item, *_FUNCTION) for item in items)


def _object(item: object, *without: str) -> tuple[Any, str]:
    """The object without some annotations, and the file that it asks for."""
    meta = mapping(mapping(item).get("metadata"))
    if not isinstance(item, dict) or not all(
        isinstance(value, str) and value
        for value in (item.get("apiVersion"), item.get("kind"), meta.get("name"))
    ):
        raise InvalidInput(
            "the configuration is no object with apiVersion, kind and metadata.name",
            remedy="give the object to be put into the package by configPath",
        )
    notes = dict(mapping(meta.get("annotations")))
    file = str(notes.pop(TARGET_PATH, ""))
    file = path_inside(file) or file  # what leads out of the package is refused where it is added
    for key in without:
        notes.pop(key, None)
    clean = {key: value for key, value in meta.items() if key != "annotations"}
    return {**item, "metadata": {**clean, "annotations": notes} if notes else clean}, file


def _identity(item: Object) -> tuple[str, str, str, str]:
    meta = mapping(item.get("metadata"))
    group, kind = group_of(str(item.get("apiVersion", ""))), str(item.get("kind", ""))
    return group, kind, str(meta.get("namespace") or ""), str(meta.get("name", ""))


def _is_it(wanted: Object, target: str, item: Object, file: str) -> bool:
    alike = _identity(wanted) == _identity(item) and is_local(wanted) is is_local(item)
    return alike and target in ("", file)


def _changes(config: _Objects, item: Object, facts: Facts) -> Iterator[Change]:
    for wanted, target in config:
        if _is_it(wanted, target, item, facts.file):
            yield (), wanted


def _adds(config: _Objects, items: Sequence[Seen]) -> Iterator[tuple[str, Object]]:
    for wanted, target in config:
        if not any(_is_it(wanted, target, item.value, item.file) for item in items):
            yield target or file_of(wanted), wanted


UPSERT_RESOURCE = InProcess(
    "upsert-resource", "2", _configure, _changes, in_text=True, sees_local=True, adds=_adds
)

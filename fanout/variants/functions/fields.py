"""Fields that are in the objects of some kinds: how they are named, found and set."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from fanout.errors import InvalidInput
from fanout.package.edits import get
from fanout.selection.objects import group_of
from fanout.values import frozen
from fanout.variants.functions.function import Change, Object, Path, mapping

Values = tuple[tuple[str, str], ...]  # sorted keys and what they are set to


@frozen
class Field:
    """One field in the objects of some kinds.

    The part of the path in `at` must be there and hold something, else the object has no such
    field; the part in `below` is made where it is missing. ``*`` stands for every element of a
    list.
    """

    at: tuple[str, ...]
    below: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()  # empty: every kind
    groups: frozenset[str] | None = None  # None: every group
    version: str = ""  # "": every version

    def fits(self, api_version: str, kind: str) -> bool:
        """Does the field exist in objects of this kind?"""
        return (
            (not self.kinds or kind in self.kinds)
            and (self.groups is None or group_of(api_version) in self.groups)
            and (not self.version or api_version.rpartition("/")[2] == self.version)
        )


@lru_cache(maxsize=1024)
def fitting(fields: tuple[Field, ...], api_version: str, kind: str) -> tuple[Field, ...]:
    """Those of the fields that objects of the kind have."""
    return tuple(field for field in fields if field.fits(api_version, kind))


def further(rows: object, name: str) -> tuple[Field, ...]:
    """The fields of a list like `additionalAnnotationFields`: `path` with ``/``, and which objects
    have it. Raises InvalidInput, which names the list.
    """
    if rows is None:
        return ()
    if not isinstance(rows, list):
        raise InvalidInput(f"{name} is no list", remedy="give entries with at least a path")
    return tuple(_field(row, name) for row in rows)


def _field(row: object, name: str) -> Field:
    wanted = {key: value for key, value in mapping(row).items() if value is not None}
    unknown = sorted(set(wanted) - {"group", "version", "kind", "path", "create"})
    path = tuple(str(wanted.get("path", "")).replace("[]", "/*").strip("/").split("/"))
    if unknown or not all(path):
        raise InvalidInput(
            f"{name}: {', '.join(unknown) or 'path'} is not understood",
            remedy="give path and, where it helps, group, version, kind and create",
        )
    # Elements of a list are never made, nor is anything where `create` does not say so.
    listed = len(path) - path[::-1].index("*") if "*" in path else 0
    there = listed if wanted.get("create") else len(path)
    return Field(
        at=path[:there],
        below=path[there:],
        kinds=frozenset({str(wanted["kind"])}) if "kind" in wanted else frozenset(),
        groups=frozenset({str(wanted["group"])}) if "group" in wanted else None,
        version=str(wanted.get("version", "")),
    )


def found(fields: tuple[Field, ...], item: Object) -> Iterator[tuple[Path, object]]:
    """The places of these fields in the object: path, and what is there, MISSING where it may be
    made. An empty list or map on the way ends it."""
    for field in fitting(fields, str(item.get("apiVersion", "")), str(item.get("kind", ""))):
        for path, place in places(item, field.at, ()):
            present = get(place, field.below)
            yield (*path, *field.below), present


def set_values(fields: tuple[Field, ...], values: Values, item: Object) -> Iterator[Change]:
    """What changes when the values are set in all these fields of the object."""
    for field in fitting(fields, str(item.get("apiVersion", "")), str(item.get("kind", ""))):
        for path, place in places(item, field.at, ()):
            if not isinstance(place, Mapping):
                continue
            present: object = place
            for key in field.below:
                present = mapping(present).get(key)
            known = mapping(present)
            for key, value in values:
                if known.get(key) != value:
                    yield (*path, *field.below, key), value


def places(value: object, at: tuple[str, ...], path: Path) -> Iterator[tuple[Path, object]]:
    """Where this part of a field's path leads to: paths, and the values there; none is empty."""
    if not at:
        if value or value in (0, False):
            yield path, value
        return
    first, rest = at[0], at[1:]
    if first != "*":
        if isinstance(value, Mapping) and first in value:
            yield from places(value[first], rest, (*path, first))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from places(element, rest, (*path, index))

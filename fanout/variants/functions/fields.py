"""Maps of labels and annotations: where they are in which kinds, and what setting them changes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from fanout.selection.objects import group_of
from fanout.variants.functions.function import Change, Object, Path, mapping

Values = tuple[tuple[str, str], ...]  # sorted keys and what they are set to


@dataclass(frozen=True, slots=True)
class Field:
    """One map in the objects of some kinds.

    The part of the path in `at` must be there and hold something, else the object has no such
    field; the part in `below` is made where it is missing. ``*`` stands for every element of a
    list. With `known_only` the map gets no new keys: a selector that never asked for a label goes
    on choosing what it chose.
    """

    at: tuple[str, ...]
    below: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()  # empty: every kind
    groups: frozenset[str] | None = None  # None: every group
    version: str = ""  # "": every version
    known_only: bool = False

    def fits(self, api_version: str, kind: str) -> bool:
        """Does the field exist in objects of this kind?"""
        return (
            (not self.kinds or kind in self.kinds)
            and (self.groups is None or group_of(api_version) in self.groups)
            and (not self.version or api_version.rpartition("/")[2] == self.version)
        )


@lru_cache(maxsize=1024)
def _fitting(fields: tuple[Field, ...], api_version: str, kind: str) -> tuple[Field, ...]:
    return tuple(field for field in fields if field.fits(api_version, kind))


def set_values(fields: tuple[Field, ...], values: Values, item: Object) -> Iterator[Change]:
    """What changes when the values are set in all these fields of the object."""
    for field in _fitting(fields, str(item.get("apiVersion", "")), str(item.get("kind", ""))):
        for path, place in _places(item, field.at, ()):
            present: object = place
            for key in field.below:
                present = mapping(present).get(key)
            known = mapping(present)
            for key, value in values:
                if known.get(key) != value and (key in known or not field.known_only):
                    yield (*path, *field.below, key), value


def _places(value: object, at: tuple[str, ...], path: Path) -> Iterator[tuple[Path, object]]:
    if not at:
        if isinstance(value, Mapping) and value:
            yield path, value
        return
    first, rest = at[0], at[1:]
    if first != "*":
        if isinstance(value, Mapping) and first in value:
            yield from _places(value[first], rest, (*path, first))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _places(element, rest, (*path, index))

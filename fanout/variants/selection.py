"""Which objects a function of a pipeline sees: `selectors` and `exclude`."""

from collections.abc import Iterable, Mapping

from fanout.errors import InvalidInput
from fanout.values import frozen
from fanout.variants.canonical import canonical
from fanout.variants.functions.function import Object, mapping

_TEXTS = {"apiVersion", "kind", "name", "namespace"}
_MAPS = {"labels", "annotations"}


@frozen
class Selection:
    """Rows of conditions; one of the `selectors` must hold (none: all do), no `exclude` may."""

    selectors: tuple[Mapping[str, object], ...] = ()
    exclude: tuple[Mapping[str, object], ...] = ()
    key: str = ""  # equal for equal conditions

    @classmethod
    def read(cls, entry: Mapping[str, object]) -> "Selection":
        """From an entry of a pipeline. Raises InvalidInput for what it cannot honour."""
        selectors, exclude = _rows(entry, "selectors"), _rows(entry, "exclude")
        if not selectors and not exclude:
            return ALL
        return cls(selectors, exclude, canonical([selectors, exclude]))

    def sees(self, item: Object) -> bool:
        """Does the function get this object?"""
        if self.selectors and not any(_holds(row, item) for row in self.selectors):
            return False
        return not any(_holds(row, item) for row in self.exclude)


ALL = Selection()


def _rows(entry: Mapping[str, object], field: str) -> tuple[Mapping[str, object], ...]:
    rows = entry.get(field) or []
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) and row for row in rows):
        raise InvalidInput(f"{field} is no list of conditions")
    for row in rows:
        _check(row, field)
    return tuple(rows)


def _check(row: Mapping[str, object], field: str) -> None:
    for key, value in row.items():
        if key in _TEXTS and isinstance(value, str):
            continue
        if key in _MAPS and isinstance(value, Mapping):
            continue
        raise InvalidInput(
            f"{field}: {key} is not understood",
            remedy=f"use text for {_listed(_TEXTS)} and maps for {_listed(_MAPS)}",
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _holds(row: Mapping[str, object], item: Object) -> bool:
    meta = mapping(item.get("metadata"))
    for key, wanted in row.items():
        if key in _MAPS:
            found = mapping(meta.get(key))
            if any(found.get(name) != value for name, value in mapping(wanted).items()):
                return False
        elif (item if key in ("apiVersion", "kind") else meta).get(key) != wanted:
            return False
    return True

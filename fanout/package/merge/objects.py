"""Objects three ways: who has it, and where it will stand.

An object is one wherever it stands, so it is first decided where it goes and then what is in it. A
List is a shell around its items, which are objects like others (design §4).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fanout.package.edits import Path
from fanout.package.jsontext import is_json, json_line
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.merge.bookkeeping import same_object
from fanout.package.merge.conflicts import Choices, Conflict, Side
from fanout.package.merge.documents import Container, Key, Unit
from fanout.package.merge.fields import Fields, Sides, unless_empty
from fanout.package.merge.keys import KPTFILE as KPTFILE_SHAPE
from fanout.package.merge.keys import LIST, PLAIN, Schemas, Shape, shape_of
from fanout.package.merge.order import merged_order
from fanout.package.merge.outcome import (
    NOTHING,
    Entry,
    How,
    Outcome,
    local,
    mapping,
    sequence,
    upstream,
)

Units = Mapping[Key, Unit]
# What says where a package comes from is one value each, and its own package's business.
_WHOLE: Final[frozenset[Path]] = frozenset({("upstream",), ("upstreamLock",)})
_OWN: Final[frozenset[Path]] = _WHOLE | {
    ("metadata", "name"),
    ("metadata", "namespace"),
    ("status", "renderStatus"),
}


@dataclass(slots=True)
class Objects:
    """The units of one package on all sides, and what is decided about them."""

    origin: Units
    upstream: Units
    local: Units
    schemas: Schemas
    choices: Choices
    root: bool  # is it the package itself, and not one inside it?
    conflicts: list[Conflict] = field(default_factory=list)

    def units(self, key: Key) -> tuple[Unit | None, Unit | None, Unit | None]:
        """The unit on each side."""
        return self.origin.get(key), self.upstream.get(key), self.local.get(key)

    def in_order(self) -> list[Key]:
        """All keys once, upstream's additions behind what precedes them."""
        return merged_order(list(self.origin), list(self.upstream), list(self.local))

    def destination(self, key: Key) -> Container | None:
        """Where the object stands in the result, if it does.

        It follows upstream to another file, unless somebody moved it here.
        """
        o, u, mine = self.units(key)
        if mine is None:
            return u.container if u else None
        if u is None or o is None or u.container == o.container != mine.container:
            return mine.container
        into_list = len(u.container) > 1
        return u.container if mine.container == o.container and not into_list else mine.container

    # ---- one object ---------------------------------------------------------------------------

    def merge(self, key: Key) -> Outcome:
        """The outcome for one unit."""
        units = self.units(key)
        values = tuple(unit.value if unit else None for unit in units)
        sides: Sides = (values[0], values[1], values[2])
        if key[0] == "list":
            return self.list(key, sides)
        o, u, mine = sides
        if u is not None and mine is not None:
            return self.fields(key).merge(sides, self.shape(key))
        if o is None:
            return local(mine) if mine is not None else upstream(u)
        if (u is None and mine is None) or same_object(o, u) or same_object(o, mine):
            return NOTHING  # nobody changed what the other one deleted
        winner = self.fields(key).dispute(sides, (), Side.LOCAL)
        return upstream(u) if winner is Side.UPSTREAM else local(mine)

    def fields(self, key: Key) -> Fields:
        """The merge of one unit's fields."""
        unit = next(unit for unit in reversed(self.units(key)) if unit is not None)
        o, u, mine = (one.document.line if one else 0 for one in self.units(key))
        is_kptfile = key[0] == KPTFILE
        return Fields(
            unit.document.file,
            unit.name,
            self.choices,
            whole=_WHOLE if is_kptfile else frozenset(),
            quiet=_OWN if is_kptfile and self.root else frozenset(),
            lines=(o, u, mine),
            line_of=lambda path: _line_in_json(unit, path),
            conflicts=self.conflicts,
        )

    def shape(self, key: Key) -> Shape:
        """What is known of a unit's fields."""
        if key[0] == KPTFILE:
            return KPTFILE_SHAPE
        if key[0] != "object":
            return PLAIN
        return shape_of(str(key[1]), str(key[2]), self.schemas)

    # ---- a List -------------------------------------------------------------------------------

    def list(self, key: Key, sides: Sides) -> Outcome:
        """A List: its own fields, and each item as an object. It goes with its last item."""
        items = self.items(key, sides)
        o, u, mine = sides
        if (not items.entries and items.how is How.PARTS) or items.how is How.GONE:
            return NOTHING
        if mine is None and items.how is How.UPSTREAM:
            return upstream(u)
        if u is None and items.how is How.LOCAL:
            return local(mine)
        fields = self.fields(key)
        parts = [side.children if side else {} for side in (o, u or mine, mine)]
        entries: list[Entry] = []
        for name in merged_order(*[list(part) for part in parts]):
            three = parts[0].get(name), parts[1].get(name), parts[2].get(name)
            if name == "items":
                outcome = items
            elif mine is None:
                outcome = upstream(three[1])
            else:
                outcome = fields.merge(three, LIST.child(str(name)), (str(name),))
            entries.append(Entry(str(name), three, outcome))
        return mapping(entries)

    def items(self, key: Key, sides: Sides) -> Outcome:
        """The items that stand in this List, and those that leave it."""
        here: Container = key[1:]
        keys = [
            [k for k, unit in units.items() if unit.container == here]
            for units in (self.origin, self.upstream, self.local)
        ]
        entries: list[Entry] = []
        for item in merged_order(*keys):
            values = [unit.value if unit else None for unit in self.units(item)]
            stays = self.destination(item) == here
            if stays or item in keys[2]:
                outcome = self.merge(item) if stays else NOTHING
                entries.append(Entry("", (values[0], values[1], values[2]), outcome))
        o, u, mine = (side.children["items"] if side else None for side in sides)
        return unless_empty(sequence(entries), (o, u, mine))


def _line_in_json(unit: Unit, path: Path) -> int:
    """The line of a field, or of the nearest value around it; 0 in YAML, whose values know it."""
    document = unit.document
    if not is_json(document.file):
        return 0
    if unit.value is document.value:
        return json_line(document.text, path)
    items = document.value.children["items"].children
    number = next(number for number, item in items.items() if item is unit.value)
    return json_line(document.text, ("items", number, *path))


def crds_of(units: Sequence[Units]) -> list[Any]:
    """The definitions of custom resources among the units, the local ones last."""
    return [
        unit.value.data
        for side in units
        for key, unit in side.items()
        if key[0] == "object" and key[2] == "CustomResourceDefinition"
    ]

"""Three-way merge of objects: which side has each, and the file it will be in.

An object is the same in whatever file it is, so its destination is decided first and its content
then. A List is a container of items, which are merged like other objects (docs/concepts/merge.md).
"""

from dataclasses import dataclass, field
from typing import Final

from fanout.package.field_edits import Path
from fanout.package.json_manifest import find_json_line, is_json
from fanout.package.kptfile import KPTFILE_NAME as KPTFILE
from fanout.package.merge.field_merge import FieldMerge
from fanout.package.merge.kpt_annotations import equal_objects
from fanout.package.merge.line_merge import merge_order
from fanout.package.merge.merge_conflicts import ConflictChoices, MergeConflict, MergeSide
from fanout.package.merge.merge_keys import (
    DEFAULT_SHAPE,
    KPTFILE_SHAPE,
    FieldShape,
    Schemas,
    find_shape,
    unknown_shape,
)
from fanout.package.merge.merge_units import Container, UnitKey, Units, UnitSides, values_of
from fanout.package.merge.merge_values import (
    REMOVED_OUTCOME,
    MergedEntry,
    MergeOutcome,
    ValueSides,
    ValueSource,
    drop_if_emptied,
    merged_list,
    merged_mapping,
    take_local,
    take_side,
    take_upstream,
)
from fanout.package.sealed_values import find_seal

# Fields of a Kptfile that name the package's origin. Each is one value: a mixture of two origins
# would name a package that does not exist.
_UNMIXED_FIELDS: Final[frozenset[Path]] = frozenset({("upstream",), ("upstreamLock",)})
_LOCAL_FIELDS: Final[frozenset[Path]] = _UNMIXED_FIELDS | {
    ("metadata", "name"),
    ("metadata", "namespace"),
    ("status", "renderStatus"),
}


@dataclass(slots=True)
class ObjectMerge:
    """Units of one package on all sides, and the decisions about them."""

    origin: Units
    upstream: Units
    local: Units
    schemas: Schemas
    choices: ConflictChoices
    is_root_package: bool  # False: a subpackage
    conflicts: list[MergeConflict] = field(default_factory=list)

    def units_of_key(self, key: UnitKey) -> UnitSides:
        """Return the unit on each side: origin, upstream, local."""
        return self.origin.get(key), self.upstream.get(key), self.local.get(key)

    def find_destination(self, key: UnitKey) -> Container | None:
        """Return the file or List of the object in the result, None if it is removed.

        It follows upstream to another file, unless it was moved locally.
        """
        origin, upstream, local = (
            unit.container if unit else None for unit in self.units_of_key(key)
        )
        if local is None:
            return upstream
        moves_into_list = upstream is not None and len(upstream) > 1
        if upstream is None or origin is None or local != origin or moves_into_list:
            return local
        return upstream

    # ---- one object ---------------------------------------------------------------------------

    def merge_unit(self, key: UnitKey) -> MergeOutcome:
        """Return the outcome for one unit."""
        sides = origin, upstream, local = values_of(self.units_of_key(key))
        if key[0] == "list":
            return self.merge_list(key, sides)
        if upstream is not None and local is not None:
            fields = self.field_merge(key)
            seals = (find_seal(side.data) for side in sides if side is not None)
            if key[0] != KPTFILE and (seal := next(filter(None, seals), "")):
                return fields.merge_sealed(sides, seal)
            shape: FieldShape = KPTFILE_SHAPE if key[0] == KPTFILE else DEFAULT_SHAPE
            if key[0] == "object":
                shape = find_shape(str(key[1]), str(key[2]), self.schemas)
            return fields.merge_value(sides, shape)
        if origin is None:
            return take_local(local) if local is not None else take_upstream(upstream)
        if (
            (upstream is None and local is None)
            or equal_objects(origin, upstream)
            or equal_objects(origin, local)
        ):
            return REMOVED_OUTCOME  # nobody changed what the other one deleted
        # An object changed on one side and deleted on the other: the local state wins by default,
        # because neither the deletion nor the edits of the downstream side may be lost in silence.
        winner = self.field_merge(key).record_conflict(sides, (), MergeSide.LOCAL)
        return take_side(winner, sides)

    def field_merge(self, key: UnitKey) -> FieldMerge:
        units = self.units_of_key(key)
        unit = next(unit for unit in reversed(units) if unit is not None)
        lines = [side.document.line if side else 0 for side in units]
        is_kptfile = key[0] == KPTFILE

        def line_of(path: Path) -> int:
            """Return the line of a field in JSON, or of the nearest value around it; 0 in YAML."""
            document = unit.document
            if not is_json(document.file):
                return 0  # values parsed from YAML have their lines
            if unit.value is not document.value:
                items = document.value.children["items"].children
                number = next(number for number, item in items.items() if item is unit.value)
                path = ("items", number, *path)
            return find_json_line(document.text, path)

        return FieldMerge(
            unit.document.file,
            unit.name,
            self.choices,
            unmixed_paths=_UNMIXED_FIELDS if is_kptfile else frozenset(),
            local_paths=_LOCAL_FIELDS if is_kptfile and self.is_root_package else frozenset(),
            lines_before=(lines[0], lines[1], lines[2]),
            line_of=line_of,
            conflicts=self.conflicts,
        )

    # ---- a List -------------------------------------------------------------------------------

    def merge_list(self, key: UnitKey, sides: ValueSides) -> MergeOutcome:
        """Merge a List: its own fields, and each item as an object.

        It is removed with its last item.
        """
        items = self.merge_items(key, sides)
        origin_side, upstream_side, local_side = sides
        is_emptied = items.source is ValueSource.MERGED and not items.entries
        if is_emptied or items.source is ValueSource.REMOVED:
            return REMOVED_OUTCOME
        if local_side is None and items.source is ValueSource.UPSTREAM:
            return take_upstream(upstream_side)
        if upstream_side is None and items.source is ValueSource.LOCAL:
            return take_local(local_side)
        fields = self.field_merge(key)
        parts = [
            side.children if side else {}
            for side in (origin_side, upstream_side or local_side, local_side)
        ]
        entries: list[MergedEntry] = []
        for name in merge_order(*[list(part) for part in parts]):
            field_sides = parts[0].get(name), parts[1].get(name), parts[2].get(name)
            if name == "items":
                outcome = items
            elif local_side is None:
                outcome = take_upstream(field_sides[1])
            else:
                outcome = fields.merge_value(field_sides, unknown_shape(str(name)), (str(name),))
            entries.append(MergedEntry(str(name), *field_sides, outcome))
        return merged_mapping(entries)

    def merge_items(self, key: UnitKey, sides: ValueSides) -> MergeOutcome:
        """Merge the items that stay in this List, and remove those that leave it."""
        container: Container = key[1:]
        keys = [
            [k for k, unit in units.items() if unit.container == container]
            for units in (self.origin, self.upstream, self.local)
        ]
        entries: list[MergedEntry] = []
        for item in merge_order(*keys):
            values = values_of(self.units_of_key(item))
            stays = self.find_destination(item) == container
            if stays or item in keys[2]:
                outcome = self.merge_unit(item) if stays else REMOVED_OUTCOME
                entries.append(MergedEntry("", *values, outcome))
        lists = [side.children["items"] if side else None for side in sides]
        return drop_if_emptied(merged_list(entries), (lists[0], lists[1], lists[2]))

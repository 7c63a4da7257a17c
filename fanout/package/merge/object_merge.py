"""Three-way merge of objects and of their fields.

An object is the same in whatever file it is, so its destination is decided first and its content
then. A List is a container of items, which are merged like other objects (docs/concepts/merge.md).
The outcome is a tree of decisions (`merge_values`), of which `text_splice` writes text.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.errors import ErrorLocation
from fanout.package.field_edits import MISSING, Path, format_path
from fanout.package.json_manifest import find_json_line, is_json
from fanout.package.kptfile import KPTFILE
from fanout.package.merge.kpt_clone import equal_objects, is_kpt_annotation
from fanout.package.merge.line_merge import merge_order, merge_sequences, merge_texts
from fanout.package.merge.merge_conflicts import (
    ConflictCause,
    ConflictChoices,
    MergeConflict,
    build_conflict,
)
from fanout.package.merge.merge_keys import (
    DEFAULT_SHAPE,
    FUNCTION_KEYS,
    KPTFILE_SHAPE,
    FieldShape,
    Schemas,
    element_keys,
    find_shape,
    match_functions,
    unknown_shape,
)
from fanout.package.merge.merge_units import Container, UnitKey, Units, UnitSides, values_of
from fanout.package.merge.merge_values import (
    REMOVED_OUTCOME,
    MergedEntry,
    MergeOutcome,
    ValueSides,
    ValueSource,
    children_of,
    drop_if_emptied,
    equal_data,
    equal_text,
    find_seal,
    merged_collection,
    take_local,
    take_side,
    take_upstream,
)
from fanout.values import replace

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
    conflicts: list[MergeConflict]

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
        winner = self.field_merge(key).record_conflict(sides, (), ConflictWinner.LOCAL)
        return take_side(winner, sides)

    def field_merge(self, key: UnitKey) -> "FieldMerge":
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
        return merged_collection(entries, dict)

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
        return drop_if_emptied(merged_collection(entries, list), (lists[0], lists[1], lists[2]))


@dataclass(slots=True)
class FieldMerge:
    """Merge of one document; collects the conflicts."""

    file: str
    subject: str  # the object's name, for people
    choices: ConflictChoices
    unmixed_paths: frozenset[Path]  # values that are never mixed
    local_paths: frozenset[Path]  # values in which a local change always stays
    lines_before: tuple[int, int, int]  # before each side's stretch of its file
    line_of: Callable[[Path], int]  # where values themselves do not know it
    conflicts: list[MergeConflict]

    def merge_value(self, sides: ValueSides, shape: FieldShape, path: Path = ()) -> MergeOutcome:
        """Return the outcome for one value."""
        origin, upstream, local = sides
        # Texts are compared before data: a subtree that nobody touched ends here, comments
        # included, and keeps its local bytes.
        if equal_text(upstream, origin) or equal_text(upstream, local) or is_kpt_annotation(path):
            return take_local(local)
        if equal_text(local, origin):
            return take_upstream(upstream)
        if path in self.unmixed_paths or path in self.local_paths:
            return self.merge_single(sides, path)
        kinds = {type(value.data) for value in (upstream, local) if value is not None}
        if kinds == {dict} and (shape.is_free_map or (upstream and local)):
            return self.merge_mapping(sides, shape, path)
        if kinds == {list} and (shape.merge_keys or (upstream and local)):
            return self.merge_list(sides, shape, path)
        return self.merge_single(sides, path)

    def merge_single(self, sides: ValueSides, path: Path) -> MergeOutcome:
        """Merge scalars, values whose type changed, and values that one side has not."""
        origin, upstream, local = sides
        if equal_data(upstream, origin) or equal_data(upstream, local):
            return take_local(local)
        if equal_data(local, origin):
            return take_upstream(upstream)
        if path in self.local_paths:
            return take_local(local)
        if (merged := _merge_lines(sides)) is None:
            winner = self.record_conflict(sides, path)
            # The winner of a conflict wins the lines that both sides changed. All other lines
            # still merge.
            merged = _merge_lines(sides, winner)
            if merged is None or any(side and merged == side.data for side in (upstream, local)):
                return take_side(winner, sides)
        return MergeOutcome(ValueSource.NEW_TEXT, merged)

    def merge_sealed(self, sides: ValueSides, seal: str) -> MergeOutcome:
        """Merge an object that is sealed on some side: one side is taken whole."""
        origin, upstream, local = sides
        if equal_text(upstream, origin) or equal_text(upstream, local):
            return take_local(local)
        if equal_text(local, origin) or equal_objects(local, origin):
            return take_upstream(upstream)
        if equal_objects(upstream, origin) or equal_objects(upstream, local):
            return take_local(local)
        winner = self.record_conflict(sides, ())
        difference = f"it is sealed by {seal}, so one side is taken whole"
        self.conflicts[-1] = replace(self.conflicts[-1], difference=difference)
        return take_side(winner, sides)

    def merge_mapping(self, sides: ValueSides, shape: FieldShape, path: Path) -> MergeOutcome:
        """Merge a mapping entry by entry. An emptied mapping is removed if one side has none."""
        origin, upstream, local = (children_of(side, dict) for side in sides)
        entries: list[MergedEntry] = []
        for name in merge_order(list(origin), list(upstream), list(local)):
            assert isinstance(name, str)
            entry = origin.get(name), upstream.get(name), local.get(name)
            outcome = self.merge_value(entry, shape.child(name), (*path, name))
            entries.append(MergedEntry(name, *entry, outcome))
        return drop_if_emptied(merged_collection(entries, dict), sides)

    def merge_list(self, sides: ValueSides, shape: FieldShape, path: Path) -> MergeOutcome:
        """Merge a list by merge keys if every element has them, else like the lines of a text."""
        lists: list[list[Any]] = [
            side.data if side is not None and isinstance(side.data, list) else [] for side in sides
        ]
        keys: Sequence[Sequence[tuple[object, ...]] | None] | None = None
        if shape.merge_keys == FUNCTION_KEYS:
            keys = match_functions(lists)
        elif shape.merge_keys:
            keys = [element_keys(elements, shape.merge_keys) for elements in lists]
        complete_keys = [names for names in keys or () if names is not None]
        if len(complete_keys) == len(sides):
            return self.merge_keyed(sides, complete_keys, shape, path)
        if sides[1] is None or sides[2] is None:
            return self.merge_single(sides, path)
        return self.merge_keyless(sides, shape, path)

    def merge_keyed(
        self,
        sides: ValueSides,
        keys: Sequence[Sequence[tuple[object, ...]]],
        shape: FieldShape,
        path: Path,
    ) -> MergeOutcome:
        """Merge by keys; an element that one side deleted is kept or removed as a whole."""
        origin, upstream, local = (
            dict(zip(names, children_of(side, list).values(), strict=True))
            for side, names in zip(sides, keys, strict=True)
        )
        positions = {key: number for number, key in enumerate(keys[2])}
        entries: list[MergedEntry] = []
        for key in merge_order(*keys):
            element = origin.get(key), upstream.get(key), local.get(key)
            element_path = (*path, positions[key] if key in positions else keys[1].index(key))
            is_added_twice = element[0] is None and element[1] and element[2]
            if is_added_twice and shape.merge_keys != FUNCTION_KEYS:
                # never a mixture of two additions
                outcome = self.merge_single(element, element_path)
            else:
                outcome = self.merge_value(element, shape.element(), element_path)
            entries.append(MergedEntry("", *element, outcome))
        return drop_if_emptied(merged_collection(entries, list), sides)

    def merge_keyless(self, sides: ValueSides, shape: FieldShape, path: Path) -> MergeOutcome:
        """Merge by aligning the elements like lines; adjoining edits are one conflict.

        Elements that the base aligns one to one are merged inside.
        """
        origin, upstream, local = (children_of(side, list) for side in sides)
        texts = [
            [json.dumps(value.data, sort_keys=True) for value in side.values()]
            for side in (origin, upstream, local)
        ]
        if (runs := merge_sequences(texts[0], texts[1], texts[2], None, _are_collections)) is None:
            winner = self.record_conflict(sides, path)
            runs = merge_sequences(texts[0], texts[1], texts[2], winner, _are_collections)
            if runs is None:
                return take_side(winner, sides)
        entries: list[MergedEntry] = []
        for run in runs:
            # Local elements that upstream removed become entries too: `text_splice` has to take out
            # their lines.
            start, end, origin_start = run.replaced_range
            for step in range(end - start):
                before = origin[origin_start + step] if origin_start >= 0 else None
                entries.append(MergedEntry("", before, None, local[start + step], REMOVED_OUTCOME))
            for step, position in enumerate(range(run.start, run.end)):
                if run.other_starts is not None:
                    origin_start, upstream_start = run.other_starts
                    element = (
                        origin[origin_start + step],
                        upstream[upstream_start + step],
                        local[position],
                    )
                    outcome = self.merge_value(element, shape.element(), (*path, position))
                    entries.append(MergedEntry("", *element, outcome))
                elif run.is_upstream:
                    added = upstream[position]
                    entries.append(MergedEntry("", None, added, None, take_upstream(added)))
                else:
                    added = local[position]
                    entries.append(MergedEntry("", None, None, added, take_local(added)))
        return drop_if_emptied(merged_collection(entries, list), sides)

    def record_conflict(
        self, sides: ValueSides, path: Path, default: ConflictWinner = ConflictWinner.UPSTREAM
    ) -> ConflictWinner:
        """Record a conflict and return its winner."""
        origin, upstream, local = sides
        if local is None and origin is not None:
            cause = ConflictCause.DELETED_HERE
        elif upstream is None:
            cause = ConflictCause.DELETED_THERE
        else:
            cause = ConflictCause.BOTH_CHANGED if origin else ConflictCause.BOTH_ADDED
        lines = (
            side.line + before
            for side, before in zip(sides[::-1], self.lines_before[::-1], strict=True)
            if side and side.line
        )
        line = next(lines, 0) or self.line_of(path)
        where = ErrorLocation(self.subject, format_path(path) if path else "", self.file, line)
        values = [side.data if side else MISSING for side in sides]
        conflict = build_conflict(
            where, cause, (values[0], values[1], values[2]), default, self.choices
        )
        self.conflicts.append(conflict)
        return conflict.winner


def _are_collections(left: str, right: str) -> bool:
    """Return whether two elements, as JSON, are both maps or both lists."""
    return left[0] == right[0] and left[0] in "{["


def _merge_lines(sides: ValueSides, winner: ConflictWinner | None = None) -> str | None:
    """Merge texts of several lines; None for other values, or as `merge_texts` does."""
    texts = [side.data for side in sides if side and isinstance(side.data, str)]
    if len(texts) < len(sides) or not all("\n" in text for text in texts):
        return None
    return merge_texts(texts[0], texts[1], texts[2], winner)

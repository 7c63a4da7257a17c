"""Three-way merge of fields: rules for mappings, lists and single values.

No text is written here: the outcome is a tree of decisions (`merge_values`), and
`text_splice` writes it.
"""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fanout.errors import ErrorLocation
from fanout.package.field_edits import MISSING, Path, format_path
from fanout.package.merge.kpt_annotations import equal_objects, is_kpt_annotation
from fanout.package.merge.line_merge import merge_order, merge_sequences, merge_texts
from fanout.package.merge.merge_conflicts import (
    NO_CHOICES,
    ConflictCause,
    ConflictChoices,
    MergeConflict,
    MergeSide,
    build_conflict,
)
from fanout.package.merge.merge_keys import FUNCTION_KEYS, FieldShape, element_keys
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
    merged_list,
    merged_mapping,
    take_local,
    take_side,
    take_upstream,
)
from fanout.values import replace


@dataclass(slots=True)
class FieldMerge:
    """Merge of one document; collects the conflicts."""

    file: str
    subject: str  # the object's name, for people
    choices: ConflictChoices = NO_CHOICES
    unmixed_paths: frozenset[Path] = frozenset()  # values that are never mixed
    local_paths: frozenset[Path] = frozenset()  # values in which a local change always stays
    lines_before: tuple[int, int, int] = (0, 0, 0)  # before each side's stretch of its file
    line_of: Callable[[Path], int] = lambda _: 0  # where values themselves do not know it
    conflicts: list[MergeConflict] = field(default_factory=list)

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
        merged = _merge_lines(sides)
        if merged is None:
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
        return drop_if_emptied(merged_mapping(entries), sides)

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
        return drop_if_emptied(merged_list(entries), sides)

    def merge_keyless(self, sides: ValueSides, shape: FieldShape, path: Path) -> MergeOutcome:
        """Merge by aligning the elements like lines; adjoining edits are one conflict.

        Elements that the base aligns one to one are merged inside.
        """
        origin, upstream, local = (children_of(side, list) for side in sides)
        texts = [
            [json.dumps(value.data, sort_keys=True) for value in side.values()]
            for side in (origin, upstream, local)
        ]
        runs = merge_sequences(texts[0], texts[1], texts[2], None, _are_collections)
        if runs is None:
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
        return drop_if_emptied(merged_list(entries), sides)

    def record_conflict(
        self, sides: ValueSides, path: Path, default: MergeSide = MergeSide.UPSTREAM
    ) -> MergeSide:
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


def _merge_lines(sides: ValueSides, winner: MergeSide | None = None) -> str | None:
    """Merge texts of several lines; None for other values, or as `merge_texts` does."""
    texts = [side.data for side in sides if side and isinstance(side.data, str)]
    if len(texts) < len(sides) or not all("\n" in text for text in texts):
        return None
    return merge_texts(texts[0], texts[1], texts[2], winner)


# ---- functions of a pipeline -------------------------------------------------------------------

_Function = Mapping[str, Any]
_MatchedFunction = dict[int, int]  # one function: by side, its place there
_ORIGIN, _UPSTREAM, _LOCAL = range(3)


def match_functions(sides: Sequence[Sequence[Any]]) -> list[list[tuple[int]]] | None:
    """Return a key for each entry of each side's list; None if an entry is not a mapping.

    A pipeline's function need not have a name, and one image may be run several times, so only the
    three lists together tell which entries are one function. Entries with equal content on two
    sides have one key. The rest is matched by name; then, between the origin and the others, by all
    but the name, and last, without a name, by image and order. Additions of both sides stay two
    functions, as order alone never matches them.
    """
    if not all(isinstance(entry, dict) for side in sides for entry in side):
        return None
    groups: list[_MatchedFunction] = [
        {side: n} for side, part in enumerate(sides) for n in range(len(part))
    ]
    for match_key, match_additions in _MATCH_ROUNDS:
        # Groups with the same match key are joined, the first with the first.
        groups_by_key: dict[Hashable, list[_MatchedFunction]] = {}
        for matched in groups:
            side, index = next(iter(matched.items()))
            groups_by_key.setdefault(match_key(sides[side][index]), []).append(matched)
        groups = groups_by_key.pop(None, [])
        for same_key in groups_by_key.values():
            groups += _join_group(same_key, match_additions)
    keys = [dict[int, tuple[int]]() for _ in sides]
    for number, group in enumerate(groups):
        for side, index in group.items():
            keys[side][index] = (number,)
    return [[keys_by_index[n] for n in range(len(keys_by_index))] for keys_by_index in keys]


def _function_content(function: _Function) -> str:
    return json.dumps(function, sort_keys=True)


def _function_name(function: _Function) -> str | None:
    name = function.get("name")
    return name if isinstance(name, str) and name else None


def _function_program(function: _Function) -> tuple[str, str] | None:
    """Return the image without its tag, or the executable, of a function without a name."""
    if _function_name(function) is not None:
        return None
    if isinstance(image := function.get("image"), str):
        path, slash, last = image.split("@")[0].rpartition("/")
        return "image", path + slash + last.split(":")[0]
    program = function.get("exec")
    return ("exec", program) if isinstance(program, str) else None


# Each round: the key by which entries are matched, and whether additions of both sides are matched
# too. From certain to plausible: entries that a stricter round matched are not available to later
# ones.
_MATCH_ROUNDS: Final[Sequence[tuple[Callable[[_Function], Hashable], bool]]] = (
    (_function_content, True),
    (_function_name, True),
    (lambda it: _function_content({key: it[key] for key in it if key != "name"}), False),
    (_function_program, False),
)


def _join_group(group: Sequence[_MatchedFunction], match_additions: bool) -> list[_MatchedFunction]:
    joined: set[int] = set()
    for other_sides in ({_UPSTREAM, _LOCAL}, {_UPSTREAM}, {_LOCAL}):
        unmatched = [same for same in group if _ORIGIN in same and not other_sides & same.keys()]
        joined |= _join_pairs(unmatched, [same for same in group if same.keys() == other_sides])
    if match_additions:
        remaining = [same for same in group if id(same) not in joined]
        upstream_only, local_only = (
            [same for same in remaining if same.keys() == {n}] for n in (1, 2)
        )
        joined |= _join_pairs(upstream_only, local_only)
    return [same for same in group if id(same) not in joined]


def _join_pairs(first: Sequence[_MatchedFunction], second: Sequence[_MatchedFunction]) -> set[int]:
    """Join pairs of groups. Return the ids of the second ones, which went into the first ones."""
    pairs = list(zip(first, second, strict=False))
    for target, source in pairs:
        target.update(source)
    return {id(source) for _, source in pairs}

"""Three-way merge of lists and of the order of keys.

Elements of a list with merge keys are matched by key, the functions of a pipeline by
what they run, and elements of any other list like the lines of a text (design §4).
"""

import json
from collections.abc import Hashable, Sequence
from typing import Any, Protocol, TypeVar

from fanout.package.field_edits import Path
from fanout.package.merge.function_matching import match_functions
from fanout.package.merge.line_merge import merge_sequences
from fanout.package.merge.merge_conflicts import MergeSide
from fanout.package.merge.merge_keys import FUNCTION_KEYS, FieldShape, element_keys
from fanout.package.merge.merge_values import (
    REMOVED_OUTCOME,
    MergedEntry,
    MergeOutcome,
    SideValue,
    ValueSides,
    children_of,
    drop_if_emptied,
    merged_list,
    take_local,
    take_side,
    take_upstream,
)

Key = TypeVar("Key", bound=Hashable)
ElementKey = tuple[object, ...]


class ElementMerge(Protocol):
    """Merge of the elements of a list: `field_merge.FieldMerge`."""

    def merge_value(self, sides: ValueSides, shape: FieldShape, path: Path) -> MergeOutcome:
        """Merge one value."""

    def merge_single(self, sides: ValueSides, path: Path) -> MergeOutcome:
        """Merge one value as a whole."""

    def record_conflict(self, sides: ValueSides, path: Path) -> MergeSide:
        """Record a conflict and return its winner."""


def merge_list(
    fields: ElementMerge, sides: ValueSides, shape: FieldShape, path: Path
) -> MergeOutcome:
    """Merge a list by merge keys if every element has them, else like the lines of a text."""
    if shape.merge_keys and (keys := _keys_of_sides(sides, shape)) is not None:
        return _merge_keyed(fields, sides, keys, shape, path)
    if sides[1] is None or sides[2] is None:
        return fields.merge_single(sides, path)
    return _merge_keyless(fields, sides, shape, path)


def _keys_of_sides(sides: ValueSides, shape: FieldShape) -> Sequence[Sequence[ElementKey]] | None:
    """Return the elements' keys on each side; None if an element lacks them."""
    lists = [_elements_of(side) for side in sides]
    if shape.merge_keys == FUNCTION_KEYS:
        return match_functions(lists)
    keys = [element_keys(elements, shape.merge_keys) for elements in lists]
    complete_keys = [names for names in keys if names is not None]
    return complete_keys if len(complete_keys) == len(keys) else None


def _elements_of(side: SideValue | None) -> list[Any]:
    return side.data if side is not None and isinstance(side.data, list) else []


def _merge_keyed(
    fields: ElementMerge,
    sides: ValueSides,
    keys: Sequence[Sequence[ElementKey]],
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
            outcome = fields.merge_single(element, element_path)
        else:
            outcome = fields.merge_value(element, shape.element(), element_path)
        entries.append(MergedEntry("", *element, outcome))
    return drop_if_emptied(merged_list(entries), sides)


def _merge_keyless(
    fields: ElementMerge, sides: ValueSides, shape: FieldShape, path: Path
) -> MergeOutcome:
    """Merge by aligning the elements like lines; adjoining edits are one conflict.

    Elements that the base aligns one to one are merged inside.
    """
    origin, upstream, local = (children_of(side, list) for side in sides)
    texts = tuple(
        [json.dumps(value.data, sort_keys=True) for value in side.values()]
        for side in (origin, upstream, local)
    )
    runs = merge_sequences(texts[0], texts[1], texts[2], None, _are_collections)
    if runs is None:
        winner = fields.record_conflict(sides, path)
        runs = merge_sequences(texts[0], texts[1], texts[2], winner, _are_collections)
        if runs is None:
            return take_side(winner, sides)
    entries: list[MergedEntry] = []
    for run in runs:
        # Local elements that upstream removed become entries too: `text_splice` has to take
        # out their lines.
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
                outcome = fields.merge_value(element, shape.element(), (*path, position))
                entries.append(MergedEntry("", *element, outcome))
            elif run.is_upstream:
                added = upstream[position]
                entries.append(MergedEntry("", None, added, None, take_upstream(added)))
            else:
                added = local[position]
                entries.append(MergedEntry("", None, None, added, take_local(added)))
    return drop_if_emptied(merged_list(entries), sides)


def _are_collections(left: str, right: str) -> bool:
    """Return whether two elements, as JSON, are both maps or both lists."""
    return left[0] == right[0] and left[0] in "{["


def merge_order(origin: Sequence[Key], upstream: Sequence[Key], local: Sequence[Key]) -> list[Key]:
    """Return all keys of upstream and local once.

    The local order holds, unless upstream alone changed the order of the keys that all
    sides have. Keys of one side stand behind their predecessor there.
    """
    if upstream == local:
        return list(local)
    common_keys = set(origin).intersection(upstream, local)
    origin_order, upstream_order, local_order = (
        [key for key in side if key in common_keys] for side in (origin, upstream, local)
    )
    # Order is a value like others: a change by upstream alone is taken, and otherwise
    # the local one stays.
    first, second = (
        (upstream, local) if local_order == origin_order != upstream_order else (local, upstream)
    )
    return interleave(first, second)


def interleave(first: Sequence[Key], second: Sequence[Key]) -> list[Key]:
    """Return the first order, with keys of the second behind their predecessors there."""
    first_keys = set(first)
    keys_behind: dict[Key | None, list[Key]] = {}
    predecessor: Key | None = None
    for key in second:
        if key in first_keys:
            predecessor = key
        else:
            keys_behind.setdefault(predecessor, []).append(key)
    result = list(keys_behind.get(None, ()))
    for key in first:
        result.append(key)
        result += keys_behind.get(key, ())
    return result

"""Rearrangement of lists: elements that a program added, removed or moved.

A program returns values, not edits. The elements of its lists are matched with those
before, so that they keep their lines and comments, as in a merge.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from fanout.package.field_edits import REMOVE, Path, same_json
from fanout.package.json_manifest import match_elements
from fanout.package.merge.line_merge import interleave
from fanout.package.merge.merge_keys import FieldShape, element_keys
from fanout.package.merge.merge_units import DocumentReader
from fanout.package.merge.merge_values import (
    REMOVED_OUTCOME,
    MergedEntry,
    MergeOutcome,
    SideValue,
    merged_collection,
    take_local,
    take_upstream,
)
from fanout.package.merge.text_splice import CannotSplice, splice_collections


class RearrangedList(NamedTuple):
    """List whose elements were added, removed or moved."""

    path: Path
    new_elements: list[Any]
    shape: FieldShape


class ValueChanges(NamedTuple):
    """Difference of two values: fields to set or remove, and rearranged lists."""

    field_edits: list[tuple[Path, Any]]
    rearranged_lists: list[RearrangedList]


def compare_values(before: Any, after: Any, shape: FieldShape) -> ValueChanges:
    """Return the changes that make the first value the second, as deep as possible."""
    changes = ValueChanges([], [])
    _compare_at(before, after, shape, (), changes)
    return changes


def _compare_at(
    before: Any, after: Any, shape: FieldShape, path: Path, changes: ValueChanges
) -> None:
    if same_json(before, after):
        return
    if _are_both(before, after, dict):
        changes.field_edits.extend(((*path, key), REMOVE) for key in before if key not in after)
        for key, value in after.items():
            if key in before:
                _compare_at(before[key], value, shape.child(key), (*path, key), changes)
            else:
                changes.field_edits.append(((*path, key), value))
    elif not _are_both(before, after, list):
        changes.field_edits.append((path, after))
    # Elements that all stayed in their places are compared one by one, so that the edits go deeper.
    elif _match_positions(before, after, shape.merge_keys) != list(range(len(before))):
        changes.rearranged_lists.append(RearrangedList(path, after, shape))
    else:
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            _compare_at(old, new, shape.element(), (*path, number), changes)


def _are_both(left: Any, right: Any, kind: type) -> bool:
    return isinstance(left, kind) and isinstance(right, kind) and bool(left) and bool(right)


def apply_rearranged_lists(text: str, lists: Sequence[RearrangedList]) -> str | None:
    """Return the text of a document with rearranged lists.

    None if its form does not allow it. The result is not verified here; the caller reads it.
    """
    if (documents := DocumentReader().parse_documents("", text)) is None or len(documents) != 1:
        return None
    root = documents[0].value
    outcomes: list[tuple[SideValue, MergeOutcome]] = []
    for path, after, shape in lists:
        value = root
        for part in path:
            value = value.children[part]
        outcomes.append((value, _list_outcome(value, after, shape)))
    try:
        return splice_collections(root, outcomes)
    except CannotSplice:
        return None


def _list_outcome(value: SideValue, after: Any, shape: FieldShape) -> MergeOutcome:
    """Return the outcome of a merge in which only upstream changed the value to `after`."""
    before = value.data
    if same_json(before, after):
        return take_local(value)
    entries: list[MergedEntry] = []
    if _are_both(before, after, dict):
        for name in interleave(list(before), list(after)):
            present = value.children.get(name)
            if name not in after:
                entries.append(MergedEntry(name, present, None, present, REMOVED_OUTCOME))
            else:
                entries.append(_merged_entry(name, present, after[name], shape.child(name)))
        return merged_collection(entries, dict)
    if not _are_both(before, after, list):
        return take_upstream(SideValue(after))
    origins = _match_positions(before, after, shape.merge_keys)
    for origin, item in zip(origins, after, strict=True):
        present = None if origin is None else value.children[origin]
        entries.append(_merged_entry("", present, item, shape.element()))
    kept_positions = set(origins)
    removed = [value.children[n] for n in range(len(before)) if n not in kept_positions]
    entries += [MergedEntry("", it, None, it, REMOVED_OUTCOME) for it in removed]
    return merged_collection(entries, list)


def _merged_entry(
    name: str, present: SideValue | None, after: Any, shape: FieldShape
) -> MergedEntry:
    new_value = SideValue(after)
    outcome = take_upstream(new_value) if present is None else _list_outcome(present, after, shape)
    return MergedEntry(name, present, new_value, present, outcome)


def _match_positions(
    before: list[Any], after: list[Any], keys: tuple[str, ...]
) -> list[int | None]:
    """Return the earlier index of each element of the later list, None for new ones."""
    keys_before, keys_after = (
        element_keys(side, keys) if keys else None for side in (before, after)
    )
    if keys_before is None or keys_after is None:
        return match_elements(before, after)
    positions = {key: number for number, key in enumerate(keys_before)}
    return [positions.get(key) for key in keys_after]

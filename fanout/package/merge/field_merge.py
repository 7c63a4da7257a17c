"""Three-way merge of fields: the rules of design §4 for mappings, lists and scalars.

No text is written here: the outcome is a tree of decisions (`merge_values`), and
`text_splice` writes it. Entries of a Kptfile's pipeline are matched across the sides
before they are merged.

Edits that adjoin are a conflict. The winner of a conflict wins the ranges that both
sides changed, and no other line.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple, TypeVar

from fanout.errors import ErrorLocation
from fanout.package.field_edits import MISSING, Path, format_path
from fanout.package.merge.kpt_annotations import is_kpt_annotation
from fanout.package.merge.merge_conflicts import (
    NO_CHOICES,
    ConflictCause,
    ConflictChoices,
    MergeConflict,
    MergeSide,
    build_conflict,
    common_prefix_length,
)
from fanout.package.merge.merge_keys import FUNCTION_KEYS, OBJECT_KEYS, FieldShape, element_keys
from fanout.package.merge.merge_values import (
    REMOVED_OUTCOME,
    MergedEntry,
    MergeOutcome,
    SideValue,
    ValueSource,
    equal_data,
    equal_text,
    merged_list,
    merged_mapping,
    take_local,
    take_upstream,
)

K = TypeVar("K", bound=Hashable)


def merge_order(origin: Sequence[K], upstream: Sequence[K], local: Sequence[K]) -> list[K]:
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


def interleave(first: Sequence[K], second: Sequence[K]) -> list[K]:
    """Return the first order, with keys of the second behind their predecessors there."""
    first_keys = set(first)
    keys_behind: dict[K | None, list[K]] = {}
    predecessor: K | None = None
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


# Pairs of equal lines that alignment may have to look at; it is quadratic where lines repeat.
_MAX_PAIRS: Final = 2_000_000


class SequenceRun(NamedTuple):
    """Consecutive elements of one side.

    Or of all three, with their starts in the other sides.
    """

    is_upstream: bool
    start: int
    end: int
    other_starts: tuple[int, int] | None = None  # origin, upstream
    # The range that this run replaces: start, end, and its start in the origin, or -1 if the origin
    # has none of it.
    replaced_range: tuple[int, int, int] = (0, 0, 0)


def merge_sequences(
    origin: Sequence[str],
    upstream: Sequence[str],
    local: Sequence[str],
    winner: MergeSide | None = None,
) -> list[SequenceRun] | None:
    """Return the runs of the result, in order (design §4: lists without keys, texts).

    Common elements are taken from the local side; where edits adjoin, the winner's are
    taken. None if they do and there is no winner, and if alignment would take too long.
    """
    head = common_prefix_length(origin, upstream, local)
    shortest = min(map(len, (origin, upstream, local))) - head
    tail = common_prefix_length(*(side[::-1][:shortest] for side in (origin, upstream, local)))
    origin_middle, upstream_middle, local_middle = (
        side[head : len(side) - tail] for side in (origin, upstream, local)
    )
    counts = Counter(origin_middle)
    # Checked before aligning: generated files with thousands of equal lines would block
    # a sweep.
    if sum(counts[line] for side in (upstream_middle, local_middle) for line in side) > _MAX_PAIRS:
        return None
    runs = [SequenceRun(False, 0, head, (0, 0))]
    o_at = u_at = l_at = 0
    for o_sync, o_end, l_sync, l_end, u_sync, u_end in _align(
        origin_middle, local_middle, upstream_middle
    ):
        origin_part = origin_middle[o_at:o_sync]
        upstream_part, local_part = upstream_middle[u_at:u_sync], local_middle[l_at:l_sync]
        is_settled = upstream_part in (origin_part, local_part)
        if not is_settled and local_part != origin_part and winner is None:
            return None
        if local_part == origin_part or (not is_settled and winner is MergeSide.UPSTREAM):
            replaced_range = (
                l_at + head,
                l_sync + head,
                o_at + head if local_part == origin_part else -1,
            )
            runs.append(SequenceRun(True, u_at + head, u_sync + head, None, replaced_range))
        else:
            runs.append(SequenceRun(False, l_at + head, l_sync + head))
        runs.append(SequenceRun(False, l_sync + head, l_end + head, (o_sync + head, u_sync + head)))
        o_at, u_at, l_at = o_end, u_end, l_end
    other_starts = len(origin) - tail, len(upstream) - tail
    runs.append(SequenceRun(False, len(local) - tail, len(local), other_starts))
    return runs


def _align(
    origin: Sequence[str], local: Sequence[str], upstream: Sequence[str]
) -> list[tuple[int, int, int, int, int, int]]:
    """Return the ranges that all three sides have, the empty one at the end included.

    Where both sides match the origin, they match each other.
    """
    # Without junk: frequent lines (`}`, blank ones) must not be left unaligned.
    local_blocks = SequenceMatcher(None, origin, local, autojunk=False).get_matching_blocks()
    upstream_blocks = SequenceMatcher(None, origin, upstream, autojunk=False).get_matching_blocks()
    aligned = []
    i = j = 0
    while i < len(local_blocks) and j < len(upstream_blocks):
        local_block, upstream_block = local_blocks[i], upstream_blocks[j]
        ends = local_block.a + local_block.size, upstream_block.a + upstream_block.size
        start, end = max(local_block.a, upstream_block.a), min(ends)
        if start < end:
            l_at, u_at = (
                local_block.b + start - local_block.a,
                upstream_block.b + start - upstream_block.a,
            )
            size = end - start
            aligned.append((start, end, l_at, l_at + size, u_at, u_at + size))
        if ends[0] < ends[1]:
            i += 1
        else:
            j += 1
    return [
        *aligned,
        (len(origin), len(origin), len(local), len(local), len(upstream), len(upstream)),
    ]


def merge_texts(
    origin: str, upstream: str, local: str, winner: MergeSide | None = None
) -> str | None:
    """Merge texts by lines; None if edits adjoin and there is no winner."""
    sides = upstream.splitlines(keepends=True), local.splitlines(keepends=True)
    runs = merge_sequences(origin.splitlines(keepends=True), *sides, winner)
    if runs is None:
        return None
    lines = [line for run in runs for line in sides[not run.is_upstream][run.start : run.end]]
    # A last line without its break may be followed by other lines now.
    return "".join(line if line.endswith("\n") or n == len(lines) - 1 else line + "\n"
                   for n, line in enumerate(lines))  # fmt: skip


_Function = Mapping[str, Any]
_Lists = Sequence[Sequence[_Function]]  # the origin's, upstream's and the local one
_MatchedFunction = dict[int, int]  # one function: by side, its place there
_ORIGIN, _UPSTREAM, _LOCAL = range(3)


def match_functions(sides: Sequence[Sequence[Any]]) -> list[list[tuple[int]]] | None:
    """Return a key for each entry of each side's list; None if an entry is not a mapping.

    A pipeline's function need not have a name, and one image may be run several times, so
    only the three lists together tell which entries are one function. Entries with equal
    content on two sides have one key. The rest is matched by name; then, between the origin
    and the others, by all but the name, and last, without a name, by image and order.
    Additions of both sides stay two functions, as order alone never matches them (design
    §4).
    """
    if not all(isinstance(entry, dict) for side in sides for entry in side):
        return None
    groups: list[_MatchedFunction] = [
        {side: n} for side, part in enumerate(sides) for n in range(len(part))
    ]
    for match_key, match_additions in _MATCH_ROUNDS:
        groups = _match_round(groups, sides, match_key, match_additions)
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


def _content_but_name(function: _Function) -> str:
    return _function_content({key: value for key, value in function.items() if key != "name"})


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
    (_content_but_name, False),
    (_function_program, False),
)


def _match_round(
    groups: Sequence[_MatchedFunction],
    sides: _Lists,
    match_key: Callable[[_Function], Hashable],
    match_additions: bool,
) -> list[_MatchedFunction]:
    """Join the groups with the same match key, the first with the first."""
    groups_by_key: dict[Hashable, list[_MatchedFunction]] = {}
    for matched in groups:
        side, index = next(iter(matched.items()))
        groups_by_key.setdefault(match_key(sides[side][index]), []).append(matched)
    result = groups_by_key.pop(None, [])
    for group in groups_by_key.values():
        result += _join_group(group, match_additions)
    return result


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
    """Join pairs of groups.

    Return the ids of the second ones, which went into the first ones.
    """
    pairs = list(zip(first, second, strict=False))
    for target, source in pairs:
        target.update(source)
    return {id(source) for _, source in pairs}


ValueSides = tuple[SideValue | None, SideValue | None, SideValue | None]  # origin, upstream, local
ElementKey = tuple[object, ...]


@dataclass(slots=True)
class FieldMerge:
    """Merge of one document; collects the conflicts."""

    file: str
    subject: str  # the object's name, for people
    choices: ConflictChoices = NO_CHOICES
    # how the objects of a List are merged
    merge_items: Callable[[ValueSides], MergeOutcome] | None = None
    unmixed_paths: frozenset[Path] = frozenset()  # values that are never mixed
    local_paths: frozenset[Path] = frozenset()  # values in which a local change always stays
    lines_before: tuple[int, int, int] = (0, 0, 0)  # before each side's stretch of its file
    line_of: Callable[[Path], int] = lambda _: 0  # where values themselves do not know it
    conflicts: list[MergeConflict] = field(default_factory=list)

    def merge_value(self, sides: ValueSides, shape: FieldShape, path: Path = ()) -> MergeOutcome:
        """Return the outcome for one value."""
        origin_side, upstream_side, local_side = sides
        # Texts are compared before data: a subtree that nobody touched ends here, comments
        # included, and keeps its local bytes.
        if (
            equal_text(upstream_side, origin_side)
            or equal_text(upstream_side, local_side)
            or is_kpt_annotation(path)
        ):
            return take_local(local_side)
        if equal_text(local_side, origin_side):
            return take_upstream(upstream_side)
        if path in self.unmixed_paths or path in self.local_paths:
            return self.merge_single(sides, path)
        kinds = {type(value.data) for value in (upstream_side, local_side) if value is not None}
        if kinds == {dict} and (shape.is_free_map or (upstream_side and local_side)):
            return self.merge_mapping(sides, shape, path)
        if kinds == {list} and (shape.merge_keys or (upstream_side and local_side)):
            return self.merge_list(sides, shape, path)
        return self.merge_single(sides, path)

    # ---- single values ------------------------------------------------------------------------

    def merge_single(self, sides: ValueSides, path: Path) -> MergeOutcome:
        """Merge scalars, values whose type changed, and values that one side has not."""
        origin_side, upstream_side, local_side = sides
        if equal_data(upstream_side, origin_side) or equal_data(upstream_side, local_side):
            return take_local(local_side)
        if equal_data(local_side, origin_side):
            return take_upstream(upstream_side)
        if path in self.local_paths:
            return take_local(local_side)
        merged = _merge_lines(sides)
        if merged is None:
            winner = self.record_conflict(sides, path)
            # The winner of a conflict wins the lines that both sides changed. All other lines
            # still merge.
            merged = _merge_lines(sides, winner)
            if (
                merged is None
                or (upstream_side and merged == upstream_side.data)
                or (local_side and merged == local_side.data)
            ):
                return (
                    take_upstream(upstream_side)
                    if winner is MergeSide.UPSTREAM
                    else take_local(local_side)
                )
        return MergeOutcome(ValueSource.NEW_TEXT, merged)

    def record_conflict(
        self, sides: ValueSides, path: Path, default: MergeSide = MergeSide.UPSTREAM
    ) -> MergeSide:
        """Record a conflict and return its winner."""
        origin_side, upstream_side, local_side = sides
        values = [side.data if side else MISSING for side in sides]
        if local_side is None and origin_side is not None:
            cause = ConflictCause.DELETED_HERE
        elif upstream_side is None:
            cause = ConflictCause.DELETED_THERE
        else:
            cause = (
                ConflictCause.BOTH_CHANGED if origin_side is not None else ConflictCause.BOTH_ADDED
            )
        sides_with_lines = zip(
            sides[::-1],
            (self.lines_before[2], self.lines_before[1], self.lines_before[0]),
            strict=True,
        )
        known_lines = (
            side.line + lines_before
            for side, lines_before in sides_with_lines
            if side and side.line
        )
        line = next(known_lines, 0) or self.line_of(path)
        where = ErrorLocation(self.subject, format_path(path) if path else "", self.file, line)
        origin_upstream_local = values[0], values[1], values[2]
        conflict = build_conflict(where, cause, origin_upstream_local, default, self.choices)
        self.conflicts.append(conflict)
        return conflict.winner

    # ---- mappings -----------------------------------------------------------------------------

    def merge_mapping(self, sides: ValueSides, shape: FieldShape, path: Path) -> MergeOutcome:
        """Merge a mapping entry by entry. An emptied mapping is removed if one side has none."""
        origin_side, upstream_side, local_side = (_entries_of(side, dict) for side in sides)
        entries: list[MergedEntry] = []
        for name in merge_order(list(origin_side), list(upstream_side), list(local_side)):
            entry_sides = origin_side.get(name), upstream_side.get(name), local_side.get(name)
            assert isinstance(name, str)
            entries.append(
                MergedEntry(
                    name,
                    entry_sides,
                    self.merge_value(entry_sides, shape.child(name), (*path, name)),
                )
            )
        return drop_if_emptied(merged_mapping(entries), sides)

    # ---- lists --------------------------------------------------------------------------------

    def merge_list(self, sides: ValueSides, shape: FieldShape, path: Path) -> MergeOutcome:
        """Merge a list by merge keys if every element has them, else like the lines of a text."""
        if shape.merge_keys == OBJECT_KEYS and self.merge_items is not None:
            return self.merge_items(sides)
        if shape.merge_keys and (keys := _element_keys(sides, shape)) is not None:
            return self.merge_keyed(sides, keys, shape, path)
        if sides[1] is None or sides[2] is None:
            return self.merge_single(sides, path)
        return self.merge_keyless(sides, shape, path)

    def merge_keyed(
        self, sides: ValueSides, keys: Sequence[Sequence[ElementKey]], shape: FieldShape, path: Path
    ) -> MergeOutcome:
        """Merge a list by keys.

        An element that one side deleted is kept or removed as a whole.
        """
        origin_side, upstream_side, local_side = (
            dict(zip(names, _entries_of(side, list).values(), strict=True))
            for side, names in zip(sides, keys, strict=True)
        )
        positions = {key: number for number, key in enumerate(keys[2])}
        entries: list[MergedEntry] = []
        for key in merge_order(*keys):
            entry_sides = origin_side.get(key), upstream_side.get(key), local_side.get(key)
            element_path = (*path, positions[key] if key in positions else keys[1].index(key))
            entries.append(
                MergedEntry("", entry_sides, self.merge_element(entry_sides, shape, element_path))
            )
        return drop_if_emptied(merged_list(entries), sides)

    def merge_element(self, sides: ValueSides, shape: FieldShape, path: Path) -> MergeOutcome:
        """Merge one element of a list with keys."""
        origin_side, upstream_side, local_side = sides
        if (
            origin_side is None
            and upstream_side
            and local_side
            and shape.merge_keys != FUNCTION_KEYS
        ):
            return self.merge_single(sides, path)  # never a mixture of two additions
        return self.merge_value(sides, shape.element(), path)

    def merge_keyless(self, sides: ValueSides, shape: FieldShape, path: Path) -> MergeOutcome:
        """Merge a list by aligning its elements like lines; adjoining edits are one conflict."""
        first, second, third = (
            [json.dumps(value.data, sort_keys=True) for value in _entries_of(side, list).values()]
            for side in sides
        )
        runs = merge_sequences(first, second, third)
        if runs is None:
            winner = self.record_conflict(sides, path)
            runs = merge_sequences(first, second, third, winner)
            if runs is None:
                return (
                    take_upstream(sides[1])
                    if winner is MergeSide.UPSTREAM
                    else take_local(sides[2])
                )
        origin_side, upstream_side, local_side = (_entries_of(side, list) for side in sides)
        entries: list[MergedEntry] = []
        for run in runs:
            # Local elements that upstream removed become entries too: `text_splice` has to take
            # out their lines.
            start, end, origin = run.replaced_range
            for step in range(end - start):
                removed_sides = (
                    (origin_side[origin + step] if origin >= 0 else None),
                    None,
                    local_side[start + step],
                )
                entries.append(MergedEntry("", removed_sides, REMOVED_OUTCOME))
            for step, position in enumerate(range(run.start, run.end)):
                if run.other_starts is not None:
                    origin, upstream_start = run.other_starts
                    entry_sides = (
                        origin_side[origin + step],
                        upstream_side[upstream_start + step],
                        local_side[position],
                    )
                    outcome = self.merge_value(entry_sides, shape.element(), (*path, position))
                    entries.append(MergedEntry("", entry_sides, outcome))
                elif run.is_upstream:
                    entries.append(
                        MergedEntry(
                            "",
                            (None, upstream_side[position], None),
                            take_upstream(upstream_side[position]),
                        )
                    )
                else:
                    entries.append(
                        MergedEntry(
                            "", (None, None, local_side[position]), take_local(local_side[position])
                        )
                    )
        return drop_if_emptied(merged_list(entries), sides)


def _merge_lines(sides: ValueSides, winner: MergeSide | None = None) -> str | None:
    """Merge texts of several lines by line.

    None for other values, or as `merge_texts` does.
    """
    texts = [side.data for side in sides if side and isinstance(side.data, str)]
    if len(texts) < len(sides) or not all("\n" in text for text in texts):
        return None
    return merge_texts(texts[0], texts[1], texts[2], winner)


def _element_keys(sides: ValueSides, shape: FieldShape) -> Sequence[Sequence[ElementKey]] | None:
    """Return the elements' keys on each side; None if an element lacks them."""
    lists = [_elements_of(side) for side in sides]
    if shape.merge_keys == FUNCTION_KEYS:
        return match_functions(lists)
    keys = [element_keys(elements, shape.merge_keys) for elements in lists]
    complete_keys = [names for names in keys if names is not None]
    return complete_keys if len(complete_keys) == len(keys) else None


def _entries_of(side: SideValue | None, kind: type) -> dict[Any, SideValue]:
    """Return the entries of a side that has a mapping, or list, here; else {}."""
    return side.children if side is not None and isinstance(side.data, kind) else {}


def _elements_of(side: SideValue | None) -> list[Any]:
    return side.data if side is not None and isinstance(side.data, list) else []


def drop_if_emptied(outcome: MergeOutcome, sides: ValueSides) -> MergeOutcome:
    """Remove a collection that the merge emptied if one side has none (design §4).

    A collection whose entries all come from one side is that side's value.
    """
    _, upstream_side, local_side = sides
    if not outcome.entries:
        if upstream_side is None or local_side is None:
            return REMOVED_OUTCOME
        if not local_side.data:
            return take_local(local_side)
        return outcome if upstream_side.data else take_upstream(upstream_side)
    sources = {entry.outcome.source for entry in outcome.entries}
    if (
        sources == {ValueSource.UPSTREAM}
        and local_side is None
        and upstream_side
        and len(outcome.entries) == len(upstream_side.data)
    ):
        return take_upstream(upstream_side)
    if (
        sources == {ValueSource.LOCAL}
        and upstream_side is None
        and local_side
        and len(outcome.entries) == len(local_side.data)
    ):
        return take_local(local_side)
    return outcome

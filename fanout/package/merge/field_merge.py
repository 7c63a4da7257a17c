"""Three-way merge of fields: the rules of design §4 for mappings and single values.

No text is written here: the outcome is a tree of decisions (`merge_values`), and
`text_splice` writes it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from fanout.errors import ErrorLocation
from fanout.package.field_edits import MISSING, Path, format_path
from fanout.package.merge.kpt_annotations import equal_objects, is_kpt_annotation
from fanout.package.merge.line_merge import merge_texts
from fanout.package.merge.list_merge import merge_list, merge_order
from fanout.package.merge.merge_conflicts import (
    NO_CHOICES,
    ConflictCause,
    ConflictChoices,
    MergeConflict,
    MergeSide,
    build_conflict,
)
from fanout.package.merge.merge_keys import FieldShape
from fanout.package.merge.merge_values import (
    MergedEntry,
    MergeOutcome,
    ValueSides,
    ValueSource,
    children_of,
    drop_if_emptied,
    equal_data,
    equal_text,
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
            return merge_list(self, sides, shape, path)
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


def _merge_lines(sides: ValueSides, winner: MergeSide | None = None) -> str | None:
    """Merge texts of several lines; None for other values, or as `merge_texts` does."""
    texts = [side.data for side in sides if side and isinstance(side.data, str)]
    if len(texts) < len(sides) or not all("\n" in text for text in texts):
        return None
    return merge_texts(texts[0], texts[1], texts[2], winner)

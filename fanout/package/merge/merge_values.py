"""Values on the sides of a merge, their text ranges, and the tree of merge outcomes.

In a block collection every entry has a span: the comment lines above it, its key or
dash, its value, and the rest of its last line. Texts are compared without their
indentation, so a value has equal text at whatever depth it is. The outcome tree says
for each value which side it is taken from; the text is made from it.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Final

from fanout.package.field_edits import MISSING, same_json
from fanout.package.yaml_nodes import YamlNode


class EntrySpan:
    """Range of the text that one entry of a block collection takes."""

    __slots__ = ("column", "comments_start", "end", "eol", "is_inline", "start", "value_start")

    def __init__(
        self, comments_start: int, start: int, value_start: int, ends: tuple[int, int]
    ) -> None:
        self.comments_start = comments_start  # where the comment lines above begin
        self.start = start  # the key's or dash's first character
        self.value_start = value_start  # behind the colon or dash
        self.end, self.eol = ends  # where the value ends, and its last line
        self.column = 0
        self.is_inline = False  # something else stands before it on its line


class SideValue:
    """One value of one side. Without a node (JSON, aliases) it is data alone."""

    __slots__ = ("_children", "_full", "data", "key", "node", "span", "text")

    def __init__(
        self,
        data: Any,
        text: str,
        node: YamlNode | None,
        span: EntrySpan | None,
        key: YamlNode | None = None,
    ) -> None:
        self.data = data
        self.text = text
        self.node = node
        self.span = span
        self.key = key
        self._full: str | None = None
        self._children: dict[str | int, SideValue] | None = None

    @property
    def is_leaf(self) -> bool:
        """True for a value without entries on lines of their own."""
        node = self.node
        return node is None or node.kind in ("scalar", "alias") or node.flow or not node.children

    @property
    def full_text(self) -> str:
        """Text of the value; of a block collection with all comments in it."""
        if self._full is None:
            assert self.node is not None
            if self.span is not None and not self.is_leaf:
                slot = self.span
                text, column = self.text[max(slot.value_start, 0) : slot.eol].strip(), slot.column
            else:
                text = self.text[self.node.start : self.node.end]
                column = self.span.column if self.span else 0
            # Without the indentation, so that a value that only moved to another depth counts
            # as unchanged.
            if column and "\n" in text:
                text = text.replace("\n" + " " * column, "\n")
            self._full = text
        return self._full

    @property
    def children(self) -> dict[str | int, "SideValue"]:
        """Entries of a mapping or list, in their order; {} for a scalar."""
        if self._children is None:
            self._children = _build_children(self)
        return self._children

    @property
    def line(self) -> int:
        """Line of the value, 0 if unknown."""
        node = self.key or self.node
        return node.line if node else 0


def _build_children(value: SideValue) -> dict[str | int, SideValue]:
    data, node = value.data, value.node
    if isinstance(data, dict):
        items: Any = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    else:
        return {}
    if node is None or node.kind == "alias":
        return {part: SideValue(child, value.text, None, None) for part, child in items}
    spans = (
        {}
        if node.flow or value.span is None
        else _entry_spans(value.text, node, value.span.value_start)
    )
    children: dict[str | int, SideValue] = {}
    for part, child in items:
        # By the data and not by the nodes: keys merged with `<<` have no node of their own, but are
        # part of the value to Kubernetes.
        key, child_node = node.children.get(part, (None, None))
        children[part] = SideValue(child, value.text, child_node, spans.get(part), key)
    return children


def _entry_spans(text: str, node: YamlNode, after: int) -> dict[str | int, EntrySpan]:
    """Return the spans of a block collection's entries.

    `after` is where it begins (-1: at 0).
    """
    spans: dict[str | int, EntrySpan] = {}
    for part, (key, child) in node.children.items():
        line = text.rfind("\n", 0, key.start if key else child.start) + 1
        head = key.start if key else line + node.column
        mark = head + 1
        if key is not None:
            mark = text.find(":", key.end) + 1
        elif text[head : head + 1] != "-":
            # Such a list is rare. Without spans its entries are compared by data, and edits
            # replace splices.
            return {}  # the dash stands on a line of its own
        end = max(child.end, mark)
        eol = find_line_end(text, end)
        lead = find_line_end(text, after) + 1 if after >= 0 else 0
        span = spans[part] = EntrySpan(lead, head, mark, (end, eol))
        span.column = key.column if key else node.column
        if lead > line:  # something else stands before it on its line
            span.is_inline, span.comments_start = True, head
        after = end
    return spans


def find_line_end(text: str, at: int) -> int:
    """Return the end of the line at a position, before its line break."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def equal_text(left: SideValue | None, right: SideValue | None) -> bool:
    """Return whether two values have equal text, or both are missing.

    Without text, data decides.
    """
    if left is None or right is None:
        return left is right
    if left.node is None or right.node is None:
        return same_json(left.data, right.data)
    if left.full_text != right.full_text:
        return False
    # Equal texts with an alias may differ: the anchor it names can have another value
    # on each side.
    return ("*" not in left.full_text and "&" not in left.full_text) or same_json(
        left.data, right.data
    )


def equal_data(left: SideValue | None, right: SideValue | None) -> bool:
    """Return whether two values are equal as JSON, or both are missing."""
    if left is None or right is None:
        return left is right
    return same_json(left.data, right.data)


class ValueSource(Enum):
    """Source of a merged value."""

    LOCAL = auto()
    UPSTREAM = auto()
    MERGED = auto()  # a collection with entries of both
    NEW_TEXT = auto()  # a scalar that neither side has
    REMOVED = auto()


class MergeOutcome:
    """Decision on one value; `data` is MISSING if it is removed."""

    __slots__ = ("data", "entries", "removed", "source")

    def __init__(
        self,
        source: ValueSource,
        data: Any,
        entries: Sequence["MergedEntry"] = (),
        removed: Sequence["MergedEntry"] = (),
    ) -> None:
        self.source = source
        self.data = data
        self.entries = entries  # those that stay
        self.removed = removed  # those that were here and go


class MergedEntry:
    """Entry of a merged collection: its outcome, and its values on the three sides."""

    __slots__ = ("local", "name", "origin", "outcome", "upstream")

    def __init__(
        self,
        name: str,
        sides: tuple[SideValue | None, SideValue | None, SideValue | None],
        outcome: MergeOutcome,
    ) -> None:
        self.name = name  # of a mapping's entry
        self.origin, self.upstream, self.local = sides
        self.outcome = outcome


REMOVED_OUTCOME: Final = MergeOutcome(ValueSource.REMOVED, MISSING)


def take_local(value: SideValue | None) -> MergeOutcome:
    """Take the local value."""
    return REMOVED_OUTCOME if value is None else MergeOutcome(ValueSource.LOCAL, value.data)


def take_upstream(value: SideValue | None) -> MergeOutcome:
    """Take upstream's value."""
    return REMOVED_OUTCOME if value is None else MergeOutcome(ValueSource.UPSTREAM, value.data)


def merged_mapping(entries: Sequence[MergedEntry]) -> MergeOutcome:
    """Build the outcome of a mapping from its entries, without removed ones."""
    remaining, removed = _split_removed(entries)
    return MergeOutcome(
        ValueSource.MERGED,
        {entry.name: entry.outcome.data for entry in remaining},
        remaining,
        removed,
    )


def merged_list(entries: Sequence[MergedEntry]) -> MergeOutcome:
    """Build the outcome of a list from its entries, without removed ones."""
    remaining, removed = _split_removed(entries)
    return MergeOutcome(
        ValueSource.MERGED, [entry.outcome.data for entry in remaining], remaining, removed
    )


def _split_removed(entries: Sequence[MergedEntry]) -> tuple[list[MergedEntry], list[MergedEntry]]:
    remaining = [entry for entry in entries if entry.outcome.source is not ValueSource.REMOVED]
    removed = [
        e for e in entries if e.outcome.source is ValueSource.REMOVED and e.local is not None
    ]
    return remaining, removed

"""A value as one side of a merge sees it: its data, and its place in that side's text.

In a block collection every entry has a slot: the comment lines above it, its key or dash, its
value, and what stands behind it on its last line. Texts are compared without their indentation, so
that a value is "the same text" wherever it stands.
"""

from typing import Any

from fanout.package.edits import same
from fanout.package.nodes import Node


class Slot:
    """The stretch of text that one entry of a block collection takes."""

    __slots__ = ("column", "end", "eol", "head", "inline", "lead", "mark")

    def __init__(self, lead: int, head: int, mark: int, ends: tuple[int, int]) -> None:
        self.lead = lead  # where the comment lines above begin
        self.head = head  # the key's or dash's first character
        self.mark = mark  # behind the colon or dash
        self.end, self.eol = ends  # where the value ends, and its last line
        self.column = 0
        self.inline = False  # something else stands before it on its line


class Value:
    """One value of one side. Without a node (JSON, aliases) it is data alone."""

    __slots__ = ("_children", "_full", "data", "key", "node", "slot", "text")

    def __init__(
        self, data: Any, text: str, node: Node | None, slot: Slot | None, key: Node | None = None
    ) -> None:
        self.data = data
        self.text = text
        self.node = node
        self.slot = slot
        self.key = key
        self._full: str | None = None
        self._children: dict[str | int, Value] | None = None

    @property
    def leaf(self) -> bool:
        """Does it stand on its own, without entries on lines of their own?"""
        node = self.node
        return node is None or node.kind in ("scalar", "alias") or node.flow or not node.children

    @property
    def full(self) -> str:
        """Its text; of a collection in block style with all comments in it."""
        if self._full is None:
            assert self.node is not None
            if self.slot is not None and not self.leaf:
                slot = self.slot
                text, column = self.text[max(slot.mark, 0) : slot.eol].strip(), slot.column
            else:
                text = self.text[self.node.start : self.node.end]
                column = self.slot.column if self.slot else 0
            if column and "\n" in text:
                text = text.replace("\n" + " " * column, "\n")
            self._full = text
        return self._full

    @property
    def children(self) -> dict[str | int, "Value"]:
        """The entries of a mapping or list, in their order; {} for what is neither."""
        if self._children is None:
            self._children = _children(self)
        return self._children

    @property
    def line(self) -> int:
        """The line it stands on, 0 when nobody knows."""
        node = self.key or self.node
        return node.line if node else 0


def _children(value: Value) -> dict[str | int, Value]:
    data, node = value.data, value.node
    if isinstance(data, dict):
        items: Any = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    else:
        return {}
    if node is None or node.kind == "alias":
        return {part: Value(child, value.text, None, None) for part, child in items}
    slots = {} if node.flow or value.slot is None else _slots(value.text, node, value.slot.mark)
    found: dict[str | int, Value] = {}
    for part, child in items:
        key, below = node.children.get(part, (None, None))  # a merged key has no node of its own
        found[part] = Value(child, value.text, below, slots.get(part), key)
    return found


def _slots(text: str, node: Node, after: int) -> dict[str | int, Slot]:
    """The slots of a block collection that stands behind a mark (-1: at the text's beginning)."""
    found: dict[str | int, Slot] = {}
    for part, (key, child) in node.children.items():
        line = text.rfind("\n", 0, key.start if key else child.start) + 1
        head = key.start if key else line + node.column
        mark = head + 1
        if key is not None:
            mark = text.find(":", key.end) + 1
        elif text[head : head + 1] != "-":
            return {}  # the dash stands on a line of its own
        end = max(child.end, mark)
        eol = line_end(text, end)
        lead = line_end(text, after) + 1 if after >= 0 else 0
        slot = found[part] = Slot(lead, head, mark, (end, eol))
        slot.column = key.column if key else node.column
        if lead > line:  # something else stands before it on its line
            slot.inline, slot.lead = True, head
        after = end
    return found


def line_end(text: str, at: int) -> int:
    """The end of the line at a position, before its line break."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def same_text(one: Value | None, other: Value | None) -> bool:
    """Are these one text, or both not there? Without text the data decides."""
    if one is None or other is None:
        return one is other
    if one.node is None or other.node is None:
        return same(one.data, other.data)
    if one.full != other.full:
        return False
    return ("*" not in one.full and "&" not in one.full) or same(one.data, other.data)


def same_data(one: Value | None, other: Value | None) -> bool:
    """Are these equal as JSON, or both not there?"""
    if one is None or other is None:
        return one is other
    return same(one.data, other.data)

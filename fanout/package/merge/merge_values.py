"""Values on the sides of a merge, their text ranges, and the tree of merge outcomes.

In a block collection every entry has a span: the comment lines above it, its key or
dash, its value, and the rest of its last line. Texts are compared without their
indentation, so a value has equal text at whatever depth it is. The outcome tree says
for each value which side it is taken from; the text is made from it.

A sealed value is an object or a text with a MAC or a signature over itself. A part of one side in
the other, or a change by a program, would break the seal, and whoever opens it would refuse all of
it. So it is taken as a whole or left.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Final

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.package.field_edits import MISSING, get_value, same_json
from fanout.package.yaml_nodes import YamlNode
from fanout.values import Value


class EntrySpan(Value):
    """Range of the text that one entry of a block collection takes."""

    comments_start: int  # where the comment lines above begin
    start: int  # the key's or dash's first character
    value_start: int  # behind the colon or dash
    end: int  # of the value
    eol: int  # end of the value's last line
    column: int = 0
    is_inline: bool = False  # something else stands before it on its line


_NO_NODES: Final[dict[str | int, tuple[YamlNode | None, YamlNode]]] = {}


class SideValue:
    """One value of one side. Without a node (JSON, aliases) it is data alone."""

    __slots__ = ("_children", "_full", "data", "key", "node", "span", "text")

    def __init__(
        self,
        data: Any,
        text: str = "",
        node: YamlNode | None = None,
        span: EntrySpan | None = None,
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
    def entry_span(self) -> EntrySpan:
        """Span of an entry of a block collection, which always has one."""
        assert self.span is not None
        return self.span

    @property
    def full_text(self) -> str:
        """Text of the value; of a block collection with all comments in it."""
        if self._full is None:
            assert self.node is not None
            span, column = self.span, self.span.column if self.span else 0
            if span is not None and not self.is_leaf:
                text = self.text[max(span.value_start, 0) : span.eol].lstrip()
                # Blank lines at the end belong to a block text, and to nothing else.
                if not _ends_with_block_text(self.text, self.node):
                    text = text.rstrip()
            else:
                end = self.node.end if span is None else max(self.node.end, span.end)
                text = self.text[self.node.start : end]
            # Without the indentation, so that a value that only moved to another depth counts
            # as unchanged.
            if column and "\n" in text:
                text = text.replace("\n" + " " * column, "\n")
            self._full = text
        return self._full

    @property
    def children(self) -> dict[str | int, "SideValue"]:
        """Entries of a mapping or list, in their order; {} for a scalar."""
        if self._children is not None:
            return self._children
        data, node = self.data, self.node
        items: Any = enumerate(data) if isinstance(data, list) else ()
        if isinstance(data, dict):
            items = data.items()
        nodes, spans = _NO_NODES, dict[str | int, EntrySpan]()
        if node is not None and node.kind != "alias":
            nodes = node.children
            if not node.flow and self.span is not None:
                spans = _entry_spans(self.text, node, self.span.value_start)
        children = self._children = {}
        for part, child in items:
            # By the data and not by the nodes: keys merged with `<<` have no node of their own, but
            # are part of the value to Kubernetes.
            key, child_node = nodes.get(part, (None, None))
            children[part] = SideValue(child, self.text, child_node, spans.get(part), key)
        return children

    @property
    def line(self) -> int:
        """Line of the value, 0 if unknown."""
        node = self.key or self.node
        return node.line if node else 0


ValueSides = tuple[SideValue | None, SideValue | None, SideValue | None]  # origin, upstream, local


def _entry_spans(text: str, node: YamlNode, after: int) -> dict[str | int, EntrySpan]:
    """Return the spans of a block collection's entries. `after` is where it begins (-1: at 0)."""
    spans: dict[str | int, EntrySpan] = {}
    for part, (key, child) in node.children.items():
        line = text.rfind("\n", 0, key.start if key else child.start) + 1
        head = key.start if key else line + node.column
        mark = head + 1
        if key is not None:
            mark = key.end if child.end == key.end else text.find(":", key.end) + 1
        elif not _is_dash(text, line, head):
            # The dash stands on a line of its own, above the value and the comments on it.
            while line > max(after, 0) and not _is_dash(text, line, line + node.column):
                line = text.rfind("\n", 0, max(line - 1, 0)) + 1
            head = line + node.column
            if not _is_dash(text, line, head):
                # Without spans entries are compared by data, and edits replace splices.
                return {}
            mark = head + 1
        end = max(child.end, mark)
        if _ends_with_block_text(text, child):
            # Blank lines behind a block text are its own.
            line_end = find_line_end(text, end)
            while (start := line_end + 1) < len(text):
                line_end = find_line_end(text, start)
                if text[start:line_end].strip(" "):
                    break
                end = line_end
        eol = find_line_end(text, end)
        lead = find_line_end(text, after) + 1 if after >= 0 else 0
        is_inline = lead > line
        column = key.column if key else node.column
        comments_start = head if is_inline else lead
        spans[part] = EntrySpan(comments_start, head, mark, end, eol, column, is_inline)
        after = end
    return spans


def _is_dash(text: str, line: int, at: int) -> bool:
    """Return whether the dash of an entry stands there, behind others or nothing on its line."""
    return text.startswith(("- ", "-\n", "-\t"), at) and not text[line:at].strip(" -?")


_SCALAR_HEADS: Final = ("|", ">", "!", "&")
# The header of a block text, behind a tag and an anchor.
_BLOCK_SCALAR: Final = re.compile(r"(?:[!&]\S*[ \t\n]+)*[|>][-+0-9]*[ \t]*(?:#.*)?$", re.MULTILINE)


def _ends_with_block_text(text: str, node: YamlNode) -> bool:
    """Return whether a value, or the last one in it, is a literal or folded block."""
    while node.children and node.kind != "alias" and not node.flow:
        node = next(reversed(node.children.values()))[1]
    is_possible = text.startswith(_SCALAR_HEADS, node.start)
    return is_possible and _BLOCK_SCALAR.match(text, node.start) is not None


def find_line_end(text: str, at: int) -> int:
    """Return the end of the line at a position, before its line break."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def children_of(side: SideValue | None, kind: type) -> dict[Any, SideValue]:
    """Return the entries of a side that has a value of this kind (dict, list) here; else {}."""
    return side.children if side is not None and isinstance(side.data, kind) else {}


def find_line_start(text: str, at: int) -> int:
    """Return the start of the line at a position."""
    return text.rfind("\n", 0, at) + 1


def shift_lines(text: str, columns: int) -> str:
    """Return the text with all lines but the first shifted by columns, left if negative."""
    if not columns or "\n" not in text:
        return text
    first, *lines = text.split("\n")
    if columns > 0:
        padding = " " * columns
        return "\n".join([first, *(padding + line if line.strip() else line for line in lines)])
    shifted_lines = [line[min(-columns, len(line) - len(line.lstrip(" "))) :] for line in lines]
    return "\n".join([first, *shifted_lines])


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
    # Equal texts with an alias may differ: the anchor it names can have another value on each side.
    return ("*" not in left.full_text and "&" not in left.full_text) or same_json(
        left.data, right.data
    )


def equal_data(left: SideValue | None, right: SideValue | None) -> bool:
    """Return whether two values are equal as JSON, or both are missing."""
    return left is right if left is None or right is None else same_json(left.data, right.data)


class ValueSource(Enum):
    """Source of a merged value."""

    LOCAL = auto()
    UPSTREAM = auto()
    MERGED = auto()  # a collection with entries of both
    NEW_TEXT = auto()  # a scalar that neither side has
    REMOVED = auto()


class MergeOutcome(Value):
    """Decision on one value."""

    source: ValueSource
    data: Any  # MISSING if the value is removed
    entries: Sequence["MergedEntry"] = ()  # those that stay
    removed: Sequence["MergedEntry"] = ()  # those that were here and go


class MergedEntry(Value):
    """Entry of a merged collection: its values on the three sides, and its outcome."""

    name: str  # of a mapping's entry
    origin: SideValue | None
    upstream: SideValue | None
    local: SideValue | None
    outcome: MergeOutcome


REMOVED_OUTCOME: Final = MergeOutcome(ValueSource.REMOVED, MISSING)


def take_local(value: SideValue | None) -> MergeOutcome:
    return REMOVED_OUTCOME if value is None else MergeOutcome(ValueSource.LOCAL, value.data)


def take_upstream(value: SideValue | None) -> MergeOutcome:
    return REMOVED_OUTCOME if value is None else MergeOutcome(ValueSource.UPSTREAM, value.data)


def take_side(winner: ConflictWinner, sides: ValueSides) -> MergeOutcome:
    """Take the value of the winner of a conflict."""
    return take_upstream(sides[1]) if winner is ConflictWinner.UPSTREAM else take_local(sides[2])


def merged_collection(entries: Sequence[MergedEntry], kind: type) -> MergeOutcome:
    """Build the outcome of a collection (dict, list) from its entries, without removed ones."""
    remaining = [entry for entry in entries if entry.outcome.source is not ValueSource.REMOVED]
    removed = [
        e for e in entries if e.outcome.source is ValueSource.REMOVED and e.local is not None
    ]
    values = [entry.outcome.data for entry in remaining]
    names = [entry.name for entry in remaining]
    data = dict(zip(names, values, strict=True)) if kind is dict else values
    return MergeOutcome(ValueSource.MERGED, data, remaining, removed)


def drop_if_emptied(outcome: MergeOutcome, sides: ValueSides) -> MergeOutcome:
    """Remove a collection that the merge emptied if one side has none.

    A collection whose entries all come from one side is that side's value.
    """
    _, upstream, local = sides
    if not outcome.entries:
        if upstream is None or local is None:
            return REMOVED_OUTCOME
        if not local.data:
            return take_local(local)
        return outcome if upstream.data else take_upstream(upstream)
    sources = {entry.outcome.source for entry in outcome.entries}
    count = len(outcome.entries)
    if sources == {ValueSource.UPSTREAM} and not local and upstream and count == len(upstream.data):
        return take_upstream(upstream)
    if sources == {ValueSource.LOCAL} and not upstream and local and count == len(local.data):
        return take_local(local)
    return outcome


# ---- seals --------------------------------------------------------------------------------------

# SOPS writes both in every format; a tool's own settings named `sops` have neither.
_SOPS_FIELDS: Final = frozenset({"mac", "lastmodified"})
_SIGNATURES: Final = {
    "cosign.sigstore.dev/signature": "Sigstore",  # k8s-manifest-sigstore
    "tekton.dev/signature": "Tekton",  # trusted resources
}
# The MAC of SOPS in YAML and ini, in dotenv, and in JSON, where its object may be on one line.
_SEALED_TEXT: Final = re.compile(
    r"""^[ \t]*["']?(?:mac["']?[ \t]*[:=][ \t]*["']?ENC\[|sops_mac=)|"sops"\s*:\s*\{"""
    r"|^[ \t]*(?:\$ANSIBLE_VAULT;|age-encryption\.org/v1$"
    r"|-----BEGIN (?:AGE ENCRYPTED FILE|PGP MESSAGE|PGP SIGNED MESSAGE)-----)",
    re.MULTILINE,
)


def find_seal(value: Any) -> str:
    """Return the name of what sealed an object or document, "" if nothing did."""
    if not isinstance(value, dict):
        return ""
    sops = value.get("sops")
    if isinstance(sops, dict) and not _SOPS_FIELDS.isdisjoint(sops):
        return "SOPS"
    annotations = get_value(value, ("metadata", "annotations"))
    if not isinstance(annotations, dict):
        return ""
    return next((tool for name, tool in _SIGNATURES.items() if annotations.get(name)), "")


def is_sealed_text(text: str) -> bool:
    """Return whether a text contains a MAC or a signature over it, as armored messages do."""
    return _SEALED_TEXT.search(text) is not None

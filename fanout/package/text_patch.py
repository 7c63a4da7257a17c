"""Edits as patches of the text: bytes outside of them stay.

A plan is made once for each shape of edits (paths and kinds of values) and then filled with values
as often as needed. A plan that cannot be made safely is refused (`CannotPatch`), and the caller
edits in another way; the caller verifies each new plan once by reading its result.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from fanout.groups import group_pairs
from fanout.package.field_edits import Path, ValueEditor
from fanout.package.yaml_nodes import YamlNode
from fanout.package.yaml_scalars import (
    YamlStyle,
    block_lines,
    format_flow,
    format_key,
    format_scalar,
    is_literal,
    literal_lines,
)
from fanout.values import Value, replace

Write = Callable[[Sequence[Any]], str]  # from the values of all edits to the text of one span
Build = Callable[[Sequence[Any]], Any]  # from the values of all edits to one value

KEPT: Final = "k"  # the value is unchanged
REMOVED: Final = "r"
SINGLE: Final = "s"  # fits on one line
LITERAL: Final = "t"  # text of several lines that may stand as a literal block
NESTED: Final = "n"  # a mapping or list that is not empty
ValueKind = Literal["k", "r", "s", "t", "n"]


class CannotPatch(Exception):
    """The text has a form that cannot be patched here."""


class PatchSpan(NamedTuple):
    """Range of the text and the writer of its replacement.

    Of two insertions the deeper comes first.
    """

    start: int
    end: int
    depth_order: int  # minus the depth
    write: Write


class PlannedEdit(NamedTuple):
    """One edit of a document, without its value."""

    number: int  # where its value is in the sequence of all values
    path: Path
    kind: str


class _Location(NamedTuple):
    nodes: tuple[YamlNode, ...]  # from the root to the deepest node that is there
    keys: tuple[YamlNode | None, ...]  # the key node of each below the root
    missing_path: Path


def value_kind(value: Any) -> ValueKind:
    """Return the form in which a value is written."""
    if value.__class__ is str:
        return LITERAL if "\n" in value and is_literal(value) else SINGLE
    return NESTED if value and isinstance(value, dict | list) else SINGLE


def detect_style(root: YamlNode) -> YamlStyle:
    """Return the indentation of a document."""
    mapping = sequence = None
    pending = [root]
    while pending and (mapping is None or sequence is None):
        node = pending.pop()
        if node.kind == "alias" or node.flow:
            continue
        for key, child in node.children.values():
            if key is not None and not child.flow and not child.anchored and child.children:
                indent = child.column - key.column
                if child.kind == "mapping" and mapping is None and indent > 0:
                    mapping = indent
                elif child.kind == "sequence" and sequence is None and indent >= 0:
                    sequence = indent
            pending.append(child)
    return YamlStyle(mapping or 2, sequence or 0)


def plan_patch(
    text: str, root: YamlNode, planned: Sequence[PlannedEdit], *, may_edit_shared: bool = False
) -> list[PatchSpan]:
    """Return the spans for the edits of one document. Raises CannotPatch.

    `may_edit_shared`: values with an anchor may be changed too; the caller checks what that
    changes.
    """
    first = text.find("\n")
    newline = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
    # At the end of a file without a last line break a literal block would lose its line break.
    style = replace(detect_style(root), literals=text.endswith("\n"))
    return _PatchPlanner(text, root, style, newline, may_edit_shared).plan_spans(planned)


class _PatchPlanner(Value):
    text: str
    root: YamlNode
    style: YamlStyle
    newline: str
    may_edit_shared: bool

    def plan_spans(self, planned: Sequence[PlannedEdit]) -> list[PatchSpan]:
        spans: list[PatchSpan] = []
        missing: dict[int, tuple[_Location, list[tuple[PlannedEdit, Path]]]] = {}
        removed: dict[int, tuple[_Location, list[_Location]]] = {}
        for edit in planned:
            location = self.locate(edit.path)
            node = location.nodes[-1]
            if location.missing_path:
                # The value exists in the data but not at this place of the text: it was merged in
                # with `<<`.
                if edit.kind == REMOVED and node.kind != "alias":
                    raise CannotPatch("what is removed comes from elsewhere")
                missing.setdefault(id(node), (location, []))[1].append(
                    (edit, location.missing_path)
                )
            elif edit.kind != REMOVED:
                spans.append(self.replace_value(location, _pick_value(edit.number), edit.kind))
            elif len(location.nodes) < 2:
                raise CannotPatch("the whole document is removed")
            else:
                parent = _Location(location.nodes[:-1], location.keys[:-1], ())
                removed.setdefault(id(parent.nodes[-1]), (parent, []))[1].append(location)
        for parent_location, additions in missing.values():
            spans += self.create_values(parent_location, additions)
        for node_id, (parent, removals) in removed.items():
            # A block collection needs at least one entry: without any it is written as `{}` or
            # `[]`.
            if len(removals) < len(parent.nodes[-1].children):
                spans += [self.remove_entry(location) for location in removals]
            elif node_id in missing:
                raise CannotPatch("all entries are replaced by others")
            else:
                is_mapping = parent.nodes[-1].kind == "mapping"
                empty: Build = (lambda _: {}) if is_mapping else (lambda _: [])
                spans.append(self.replace_value(parent, empty, SINGLE))
        return spans

    def locate(self, path: Path) -> _Location:
        nodes, keys = [self.root], list[YamlNode | None]()
        for depth, part in enumerate(path):
            node = nodes[-1]
            # One place in the text, several in the data: an edit here would change all of them.
            if node.anchored and not self.may_edit_shared:
                raise CannotPatch("others share this node")
            # An alias has its anchor's children, whose positions are elsewhere in the text.
            if part not in node.children or node.kind == "alias":
                return _Location(tuple(nodes), tuple(keys), path[depth:])
            key, child = node.children[part]
            nodes.append(child)
            keys.append(key)
        return _Location(tuple(nodes), tuple(keys), ())

    # ---- existing values --------------------------------------------------------------------

    def replace_value(self, location: _Location, build: Build, kind: str) -> PatchSpan:
        if len(location.nodes) < 2:
            raise CannotPatch("the whole document is replaced")
        parent, node = location.nodes[-2:]
        depth_order = -len(location.nodes)
        if parent.flow:
            write = _writer(build, format_flow, self.missing_blank(node))
            return PatchSpan(node.start, node.end, depth_order, write)
        if (key := location.keys[-1]) is None:
            return self.replace_item(node, build, kind, depth_order)
        return self.replace_entry(key, node, build, kind, depth_order)

    def missing_blank(self, node: YamlNode) -> str:
        """Return the space that is missing after a colon or dash before an empty value, or ""."""
        if node.start < node.end:
            return ""
        if self.text[node.start - 1] in ":-":
            return " "
        raise CannotPatch("a value of no extent")

    def replace_item(self, node: YamlNode, build: Build, kind: str, depth_order: int) -> PatchSpan:
        gap = self.missing_blank(node)
        column = node.column + len(gap)
        # Values of several lines would move a trailing comment away from the key, or into a text.
        if kind == NESTED:
            if self.has_text_after(node):
                raise CannotPatch("a comment stands behind the value")
            write = _writer(build, lambda value: self.format_block(value, column)[column:], gap)
        elif kind == LITERAL and self.style.literals and not self.has_text_after(node):
            write = _writer(build, lambda text: self.format_literal(text, column), gap)
        else:
            write = _writer(build, format_scalar, gap)
        return PatchSpan(node.start, node.end, depth_order, write)

    def replace_entry(
        self, key: YamlNode, node: YamlNode, build: Build, kind: str, depth_order: int
    ) -> PatchSpan:
        is_block = node.kind in ("mapping", "sequence") and not node.flow
        colon = self.text.find(":", key.end, node.start + 1) + 1
        if not colon or self.text[key.end : colon - 1].strip():
            raise CannotPatch("the entry is not of the form `key: value`")
        header = self.text[colon : node.start].split("\n")[0].strip() if is_block else ""
        if kind == NESTED:
            end, comment = node.end, header
            if not is_block:
                end = self.end_of_line(node.end)
                comment = self.text[node.end : end].strip()
            head = f" {comment}" if comment else ""

            def format_nested(value: Any) -> str:
                """Return a nested value on the lines below its key."""
                step = self.style.mapping if isinstance(value, dict) else self.style.sequence
                return self.newline + self.format_block(value, key.column + step)

            write = _writer(build, format_nested, head)
            return PatchSpan(colon, end, depth_order, write)
        start, gap = (colon, " ") if is_block else (node.start, self.missing_blank(node))
        column = key.column + self.style.mapping
        if kind == LITERAL and self.style.literals and not header and not self.has_text_after(node):
            write = _writer(build, lambda text: self.format_literal(text, column), gap)
        else:
            write = _writer(build, format_scalar, gap, f" {header}" if header else "")
        return PatchSpan(start, node.end, depth_order, write)

    # ---- new values -------------------------------------------------------------------------

    def create_values(
        self, location: _Location, additions: list[tuple[PlannedEdit, Path]]
    ) -> list[PatchSpan]:
        node = location.nodes[-1]
        if node.kind == "alias":  # replaced by a changed copy of the anchor's value
            return [self.replace_value(location, _assemble_value(additions, node.data), NESTED)]
        if not node.children:
            if node.kind == "scalar" and node.data is not None:
                raise CannotPatch("the parent is a scalar")
            return [self.replace_value(location, _assemble_value(additions), NESTED)]
        groups = group_pairs((path[0], (edit, path[1:])) for edit, path in additions)
        entries = {part: _assemble_value(group) for part, group in groups.items()}
        depth_order = -len(location.nodes) - 1
        if node.kind == "mapping":
            if not all(isinstance(part, str) for part in entries):
                raise CannotPatch("a mapping has no positions")
            first_key = next(iter(node.children.values()))[0]
            assert first_key is not None
            column = first_key.column
            are_single = all(
                len(group) == 1 and not group[0][1] and group[0][0].kind == SINGLE
                for group in groups.values()
            )
            if are_single and not node.flow:
                numbers = {str(part): group[0][0].number for part, group in groups.items()}
                return [self.insert_single_lines(node, numbers, column, depth_order)]

            def build(values: Sequence[Any]) -> Any:
                return {str(part): build_entry(values) for part, build_entry in entries.items()}

        else:
            count = len(node.children)
            if list(entries) != list(range(count, count + len(entries))):
                raise CannotPatch("not the next elements")
            column = node.column

            def build(values: Sequence[Any]) -> Any:
                return [build_element(values) for build_element in entries.values()]

        if node.flow:
            at = node.end - 1
            while self.text[at - 1] in " \t\r\n":
                at -= 1
            comma = " " if self.text[at - 1] == "," else ", "
            write = _writer(build, lambda added: format_flow(added)[1:-1], comma)
        else:
            at = self.end_of_line(node.end)
            write = _writer(build, lambda added: self.format_block(added, column), self.newline)
        return [PatchSpan(at, at, depth_order, write)]

    def insert_single_lines(
        self, node: YamlNode, entries: Mapping[str, int], column: int, depth_order: int
    ) -> PatchSpan:
        """Insert entries whose values take one line each, the most frequent edit of all."""
        at, start = self.end_of_line(node.end), self.newline + " " * column
        heads = [(f"{start}{format_key(key)}: ", number) for key, number in entries.items()]

        def write(values: Sequence[Any]) -> str:
            return "".join([head + format_scalar(values[number]) for head, number in heads])

        return PatchSpan(at, at, depth_order, write)

    # ---- removed values ---------------------------------------------------------------------

    def remove_entry(self, location: _Location) -> PatchSpan:
        parent, node = location.nodes[-2:]
        key, depth_order = location.keys[-1], -len(location.nodes)
        begin = key.start if key else node.start
        if parent.flow:
            siblings = list(parent.children.values())
            position = next(i for i, (_, child) in enumerate(siblings) if child is node)
            if position + 1 < len(siblings):
                next_key, following = siblings[position + 1]
                return PatchSpan(begin, (next_key or following).start, depth_order, _write_nothing)
            return PatchSpan(siblings[position - 1][1].end, node.end, depth_order, _write_nothing)
        start = self.text.rfind("\n", 0, begin) + 1
        # The first key of a list's element stands behind its dash; removing the line would
        # remove the dash.
        if self.text[start:begin].strip() != ("" if key else "-"):
            raise CannotPatch("the entry shares its line with another one")
        end = self.text.find("\n", node.end) + 1
        return PatchSpan(start, end or len(self.text), depth_order, _write_nothing)

    # ---- lines ------------------------------------------------------------------------------

    def format_literal(self, text: str, column: int) -> str:
        return self.newline.join(literal_lines(text, column))

    def format_block(self, value: Any, column: int) -> str:
        return self.newline.join(block_lines(value, column, self.style))

    def end_of_line(self, at: int) -> int:
        """Return the end of the line at a position, before its line break."""
        if (end := self.text.find("\n", at)) < 0:
            return len(self.text)
        return end - 1 if end > at and self.text[end - 1] == "\r" else end

    def has_text_after(self, node: YamlNode) -> bool:
        return bool(self.text[node.end : self.end_of_line(node.end)].strip())


def _writer(
    build: Build, format_value: Callable[[Any], str], head: str = "", tail: str = ""
) -> Write:
    """Return the writer of a value between two texts that do not vary."""
    return lambda values: head + format_value(build(values)) + tail


def _write_nothing(_: Sequence[Any]) -> str:
    return ""


def _pick_value(number: int) -> Build:
    return lambda values: values[number]


def _assemble_value(additions: list[tuple[PlannedEdit, Path]], start: Any = None) -> Build:
    """Return a builder of the value that several edits make of `start`, or of nothing."""
    if len(additions) == 1 and not additions[0][1]:
        return _pick_value(additions[0][0].number)
    parts = [(edit.number, missing_path) for edit, missing_path in additions]

    def build(values: Sequence[Any]) -> Any:
        # Applied in order to one value: several edits may have their missing parent in
        # common, and the parent is written once.
        edited = ValueEditor(start)
        for number, rest in parts:
            edited.set(rest, values[number])
        return edited.value

    return build


class PatchPlan(NamedTuple):
    """Pieces of a text that stay, and the writers of what is between them."""

    pieces: list[bytes]
    writes: list[Write]

    def fill(self, values: Sequence[Any]) -> bytes:
        """Return the patched text with the values of all edits."""
        chunks = [self.pieces[0]]
        for write, piece in zip(self.writes, self.pieces[1:], strict=True):
            chunks.append(write(values).encode())
            chunks.append(piece)
        return b"".join(chunks)


def cut_pieces(text: str, spans: list[PatchSpan]) -> PatchPlan:
    """Return the plan of patching the text in these spans. Raises CannotPatch."""
    pieces, position = list[bytes](), 0
    # Two insertions at one position: the entry of the inner collection must come first, or it would
    # land below the outer one's new key.
    spans.sort(key=lambda span: span[:3])
    for span in spans:
        if span.start < position:
            raise CannotPatch("two edits touch the same text")
        pieces.append(text[position : span.start].encode())
        position = span.end
    pieces.append(text[position:].encode())
    return PatchPlan(pieces, [span.write for span in spans])

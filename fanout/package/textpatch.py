"""Edits as patches of the text: every byte outside them stays as it is.

A plan is made once for each shape of edits (paths and kinds of values) and then filled with values
as often as needed. What a plan cannot say safely it refuses (`CannotPatch`), and the caller takes
the slow way; what it does say the caller checks once by reading the result.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from fanout.package.dump import Style, block, literal
from fanout.package.edits import Path, with_value
from fanout.package.nodes import Node
from fanout.package.scalars import flow, is_literal, key_scalar, scalar
from fanout.values import frozen, replace

Write = Callable[[Sequence[Any]], str]  # from the values of all edits to the text of one span
Build = Callable[[Sequence[Any]], Any]  # from the values of all edits to one value

KEEP: Final = "k"  # the value is there already
REMOVED: Final = "r"
SINGLE: Final = "s"  # fits on one line
LITERAL: Final = "t"  # text of several lines that may stand as a literal block
NESTED: Final = "n"  # a mapping or list that is not empty
ValueKind = Literal["k", "r", "s", "t", "n"]


class CannotPatch(Exception):
    """The text is not of a form that can be patched here."""


class Span(NamedTuple):
    """A piece of the text and what comes in its place; of two insertions the deeper comes first."""

    start: int
    end: int
    above: int  # minus the depth
    write: Write


class Wanted(NamedTuple):
    """One edit of a document, without its value."""

    number: int  # where its value is in the sequence of all values
    path: Path
    kind: str


class _Found(NamedTuple):
    trail: tuple[Node, ...]  # from the root to the deepest node that is there
    keys: tuple[Node | None, ...]  # the key node of each below the root
    rest: Path


def kind_of(value: Any) -> ValueKind:
    """How a value is written."""
    if value.__class__ is str:
        return LITERAL if "\n" in value and is_literal(value) else SINGLE
    return NESTED if value and isinstance(value, dict | list) else SINGLE


def style_of(root: Node) -> Style:
    """The indentation that a document has."""
    mapping = sequence = None
    todo = [root]
    while todo and (mapping is None or sequence is None):
        node = todo.pop()
        if node.kind == "alias" or node.flow:
            continue
        for key, child in node.children.values():
            if key is not None and not child.flow and not child.anchored and child.children:
                step = child.column - key.column
                if child.kind == "mapping" and mapping is None and step > 0:
                    mapping = step
                elif child.kind == "sequence" and sequence is None and step >= 0:
                    sequence = step
            todo.append(child)
    return Style(mapping or 2, sequence or 0)


def plan(text: str, root: Node, wanted: Sequence[Wanted], *, shared: bool = False) -> list[Span]:
    """The spans for the edits of one document; raises CannotPatch.

    `shared`: what others share by its anchor may be changed too, and what it comes to is checked.
    """
    first = text.find("\n")
    newline = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
    # at the end of a file without a last line break a literal block would lose its own
    style = replace(style_of(root), literals=text.endswith("\n"))
    return _Planner(text, root, style, newline, shared).plan(wanted)


@frozen
class _Planner:
    text: str
    root: Node
    style: Style
    newline: str
    shared: bool

    def plan(self, wanted: Sequence[Wanted]) -> list[Span]:
        spans: list[Span] = []
        missing: dict[int, tuple[_Found, list[tuple[Wanted, Path]]]] = {}
        removed: dict[int, tuple[_Found, list[_Found]]] = {}
        for want in wanted:
            found = self.find(want.path)
            node = found.trail[-1]
            if found.rest:
                if want.kind == REMOVED and node.kind != "alias":
                    raise CannotPatch("what is removed comes from elsewhere")
                missing.setdefault(id(node), (found, []))[1].append((want, found.rest))
            elif want.kind != REMOVED:
                spans.append(self.replace(found, _pick(want.number), want.kind))
            elif len(found.trail) < 2:
                raise CannotPatch("the whole document is removed")
            else:
                up = _Found(found.trail[:-1], found.keys[:-1], ())
                removed.setdefault(id(up.trail[-1]), (up, []))[1].append(found)
        for place, inside in missing.values():
            spans += self.create(place, inside)
        for node_id, (up, gone) in removed.items():
            if len(gone) < len(up.trail[-1].children):
                spans += [self.remove(found) for found in gone]
            elif node_id in missing:
                raise CannotPatch("all entries are replaced by others")
            else:
                spans.append(self.replace(up, _empty(up.trail[-1]), SINGLE))
        return spans

    def find(self, path: Path) -> _Found:
        trail, keys = [self.root], list[Node | None]()
        for depth, part in enumerate(path):
            node = trail[-1]
            if node.anchored and not self.shared:
                raise CannotPatch("others share this node")
            if part not in node.children or node.kind == "alias":
                return _Found(tuple(trail), tuple(keys), path[depth:])
            key, child = node.children[part]
            trail.append(child)
            keys.append(key)
        return _Found(tuple(trail), tuple(keys), ())

    # ---- a value that is there --------------------------------------------------------------

    def replace(self, found: _Found, build: Build, kind: str) -> Span:
        if len(found.trail) < 2:
            raise CannotPatch("the whole document is replaced")
        parent, node = found.trail[-2:]
        above = -len(found.trail)
        if parent.flow:
            gap = self.gap(node)
            return Span(node.start, node.end, above, lambda values: gap + flow(build(values)))
        key = found.keys[-1]
        if key is None:
            return self.replace_item(node, build, kind, above)
        return self.replace_entry(key, node, build, kind, above)

    def gap(self, node: Node) -> str:
        """What must stand between a colon or dash and a value where there was none."""
        if node.start < node.end:
            return ""
        before = self.text[node.start - 1]
        if before in ":-":
            return " "
        raise CannotPatch("a value of no extent")

    def replace_item(self, node: Node, build: Build, kind: str, above: int) -> Span:
        gap, style = self.gap(node), self.style
        column = node.column + len(gap)
        if kind == LITERAL and not self.style.literals:
            kind = SINGLE
        if kind == SINGLE or self.comment_after(node):
            if kind == NESTED:
                raise CannotPatch("a comment stands behind the value")
            return Span(node.start, node.end, above, lambda values: gap + scalar(build(values)))
        if kind == LITERAL:
            return Span(
                node.start, node.end, above,
                lambda values: gap + self.lines(literal(build(values), column)),
            )  # fmt: skip
        return Span(
            node.start, node.end, above,
            lambda values: gap + self.lines(block(build(values), column, style))[column:],
        )  # fmt: skip

    def replace_entry(self, key: Node, node: Node, build: Build, kind: str, above: int) -> Span:
        style = self.style
        is_block = node.kind in ("mapping", "sequence") and not node.flow
        colon = self.colon(key, node)
        header = self.text[colon : node.start].split("\n")[0].strip() if is_block else ""
        if kind == NESTED:
            start, end, comment = colon, node.end, header
            if not is_block:
                end = self.line_end(node.end)
                comment = self.text[node.end : end].strip()
            head = f" {comment}" if comment else ""
            return Span(
                start, end, above,
                lambda values: head + self.below(build(values), key.column, style),
            )  # fmt: skip
        start = colon if is_block else node.start
        gap = " " if is_block else self.gap(node)
        literals = style.literals and not header and not self.comment_after(node)
        if kind == LITERAL and literals:
            column = key.column + style.mapping
            return Span(
                start, node.end, above,
                lambda values: gap + self.lines(literal(build(values), column)),
            )  # fmt: skip
        if not gap and not header:
            return Span(start, node.end, above, lambda values: scalar(build(values)))
        tail = f" {header}" if header else ""
        return Span(start, node.end, above, lambda values: gap + scalar(build(values)) + tail)

    def below(self, value: Any, column: int, style: Style) -> str:
        """A nested value on the lines below its key."""
        step = style.mapping if isinstance(value, dict) else style.sequence
        return self.lines(["", *block(value, column + step, style)])

    def colon(self, key: Node, node: Node) -> int:
        """The position behind the colon of an entry."""
        at = self.text.find(":", key.end, node.start + 1) + 1
        if not at or self.text[key.end : at - 1].strip():
            raise CannotPatch("the entry is not of the form `key: value`")
        return at

    # ---- a value that is not there ----------------------------------------------------------

    def create(self, place: _Found, inside: list[tuple[Wanted, Path]]) -> list[Span]:
        node = place.trail[-1]
        if node.kind == "alias":  # it gives way to a changed copy of what it stands for
            return [self.replace(place, _assemble(inside, node.data), NESTED)]
        if not node.children:
            if node.kind == "scalar" and node.data is not None:
                raise CannotPatch("the parent is a scalar")
            return [self.replace(place, _assemble(inside), NESTED)]
        groups: dict[str | int, list[tuple[Wanted, Path]]] = {}
        for want, rest in inside:
            groups.setdefault(rest[0], []).append((want, rest[1:]))
        entries = {part: _assemble(group) for part, group in groups.items()}
        above = -len(place.trail) - 1
        if node.kind == "mapping":
            if not all(isinstance(part, str) for part in entries):
                raise CannotPatch("a mapping has no positions")
            if all(_is_single(group) for group in groups.values()) and not node.flow:
                numbers = {str(part): group[0][0].number for part, group in groups.items()}
                return [self.insert_lines(node, numbers, above)]
            return [self.insert(node, entries, above)]
        if list(entries) != list(range(len(node.children), len(node.children) + len(entries))):
            raise CannotPatch("not the next elements")
        return [self.append(node, list(entries.values()), above)]

    def insert(self, node: Node, entries: Mapping[str | int, Build], above: int) -> Span:
        first, last = next(iter(node.children.values()))[0], self.line_end(node.end)
        if node.flow:
            at, comma = self.before_bracket(node)

            def inline(values: Sequence[Any]) -> str:
                added = {str(part): build(values) for part, build in entries.items()}
                return f"{comma}{flow(added)[1:-1]}"

            return Span(at, at, above, inline)
        assert first is not None
        column, style = first.column, self.style

        def lines(values: Sequence[Any]) -> str:
            added = {str(part): build(values) for part, build in entries.items()}
            return self.lines(["", *block(added, column, style)])

        return Span(last, last, above, lines)

    def insert_lines(self, node: Node, entries: Mapping[str, int], above: int) -> Span:
        """The same for values of one line each, the commonest edit of all."""
        first, last = next(iter(node.children.values()))[0], self.line_end(node.end)
        assert first is not None
        start = self.newline + " " * first.column
        heads = [(f"{start}{key_scalar(key)}: ", number) for key, number in entries.items()]
        if len(heads) == 1:
            [(head, only)] = heads
            return Span(last, last, above, lambda values: head + scalar(values[only]))
        return Span(
            last, last, above,
            lambda values: "".join([head + scalar(values[number]) for head, number in heads]),
        )  # fmt: skip

    def append(self, node: Node, builds: Sequence[Build], above: int) -> Span:
        if node.flow:
            at, comma = self.before_bracket(node)
            return Span(
                at, at, above,
                lambda values: f"{comma}{flow([build(values) for build in builds])[1:-1]}",
            )  # fmt: skip
        if node.anchored and not self.shared:
            raise CannotPatch("others share this node")
        at, style = self.line_end(node.end), self.style
        return Span(
            at, at, above,
            lambda values: self.lines(
                ["", *block([build(values) for build in builds], node.column, style)]
            ),
        )  # fmt: skip

    def before_bracket(self, node: Node) -> tuple[int, str]:
        """Where a flow collection can grow, and what separates the new entry from the last one."""
        at = node.end - 1
        while self.text[at - 1] in " \t\r\n":
            at -= 1
        return at, " " if self.text[at - 1] == "," else ", "

    # ---- a value that goes ------------------------------------------------------------------

    def remove(self, found: _Found) -> Span:
        parent, node = found.trail[-2:]
        key, above = found.keys[-1], -len(found.trail)
        begin = key.start if key else node.start
        if parent.flow:
            siblings = list(parent.children.values())
            position = next(i for i, (_, child) in enumerate(siblings) if child is node)
            if position + 1 < len(siblings):
                next_key, following = siblings[position + 1]
                return Span(begin, (next_key or following).start, above, _nothing)
            return Span(siblings[position - 1][1].end, node.end, above, _nothing)
        start = self.text.rfind("\n", 0, begin) + 1
        if self.text[start:begin].strip() != ("" if key else "-"):
            raise CannotPatch("the entry shares its line with another one")
        end = self.text.find("\n", node.end) + 1
        return Span(start, end or len(self.text), above, _nothing)

    # ---- lines ------------------------------------------------------------------------------

    def lines(self, lines: list[str]) -> str:
        return self.newline.join(lines)

    def line_end(self, at: int) -> int:
        """The end of the line at a position, before its line break."""
        end = self.text.find("\n", at)
        if end < 0:
            return len(self.text)
        return end - 1 if end > at and self.text[end - 1] == "\r" else end

    def comment_after(self, node: Node) -> bool:
        return bool(self.text[node.end : self.line_end(node.end)].strip())


def _is_single(group: list[tuple[Wanted, Path]]) -> bool:
    [(want, rest), *more] = group
    return not rest and not more and want.kind == SINGLE


def _nothing(_: Sequence[Any]) -> str:
    return ""


def _empty(node: Node) -> Build:
    return lambda _: {} if node.kind == "mapping" else []


def _pick(number: int) -> Build:
    return lambda values: values[number]


def _assemble(inside: list[tuple[Wanted, Path]], start: Any = None) -> Build:
    """The value that several edits make together of one that is shared, or of nothing."""
    if len(inside) == 1 and not inside[0][1]:
        return _pick(inside[0][0].number)
    parts = [(want.number, rest) for want, rest in inside]

    def build(values: Sequence[Any]) -> Any:
        value = start
        for number, rest in parts:
            value = with_value(value, rest, values[number])
        return value

    return build


def fill(pieces: Sequence[bytes], writes: Sequence[Write], values: Sequence[Any]) -> bytes:
    """The patched text: the pieces that stay, and between them what the values come to."""
    out = [pieces[0]]
    for write, piece in zip(writes, pieces[1:], strict=True):
        out.append(write(values).encode())
        out.append(piece)
    return b"".join(out)


def cut(text: str, spans: list[Span]) -> tuple[list[bytes], list[Write]]:
    """The pieces of the text that stay and the writers between them; raises CannotPatch."""
    pieces, position = list[bytes](), 0
    spans.sort(key=lambda span: span[:3])
    for span in spans:
        if span.start < position:
            raise CannotPatch("two edits touch the same text")
        pieces.append(text[position : span.start].encode())
        position = span.end
    pieces.append(text[position:].encode())
    return pieces, [span.write for span in spans]

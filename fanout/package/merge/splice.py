"""Writing an outcome into the local text: only what the outcome touches changes.

What upstream added is copied from upstream's text with its comments, indented as its new place
demands. What cannot be said so (JSON, aliases, unusual layout) is refused with CannotSplice, and
the caller makes the same change by edits; it also reads the result: nothing is proved here.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from fanout.package.dump import Style, block, literal
from fanout.package.merge.outcome import Entry, How, Outcome
from fanout.package.merge.sides import Slot, Value, line_end
from fanout.package.nodes import Node
from fanout.package.scalars import flow, key_scalar, scalar
from fanout.package.textpatch import LITERAL, NESTED, SINGLE, kind_of, style_of


class CannotSplice(Exception):
    """The text is not of a form that can be spliced here."""


class Patch(NamedTuple):
    """A stretch of the text and what comes in its place."""

    start: int
    end: int
    text: str
    ahead: bool = False  # comes before other insertions at its place


def spliced(sides: tuple[Value | None, Value | None, Value], outcome: Outcome) -> str:
    """The text of the local document with the outcome in it; raises CannotSplice.

    `sides` are the top values of the documents: of the base, of upstream and the local one.
    """
    root = sides[2]
    if root.slot is None or root.node is None:
        raise CannotSplice("no YAML")
    splicer = _Splicer(root.text, root.slot.mark + 1, style_of(root.node))
    splicer.collection(outcome, root)
    tails = [_tail(side) for side in sides]
    if _arrives([text.strip() for text, _ in tails]):
        start = tails[2][1]
        gap = "" if root.text[start - 1 : start] == "\n" else "\n"
        splicer.put(start, root.slot.eol, gap + tails[1][0])
    return patched(root.text, splicer.patches, root.slot.mark + 1, root.slot.eol)


def resumed(root: Value, outcomes: Sequence[tuple[Value, Outcome]]) -> str:
    """The text of a document with new outcomes for some collections in it; raises CannotSplice."""
    if root.node is None:
        raise CannotSplice("no YAML")
    splicer = _Splicer(root.text, 0, style_of(root.node))
    for value, outcome in outcomes:
        splicer.collection(outcome, value)
    return patched(root.text, splicer.patches, 0, len(root.text))


def _tail(root: Value | None) -> tuple[str, int]:
    """What stands behind a document's last value, and where that begins."""
    if root is None or root.slot is None:
        return "", 0
    start = min(line_end(root.text, root.slot.end) + 1, root.slot.eol)
    return root.text[start : root.slot.eol], start


def patched(text: str, patches: Sequence[Patch], start: int, end: int) -> str:
    """A stretch of the text with the patches in it; raises CannotSplice where two overlap."""
    out: list[str] = []
    position = start
    # of two insertions at one place the one that was made first comes first: the deeper one
    for patch in sorted(patches, key=lambda patch: (*patch[:2], not patch.ahead)):
        if patch.start < position:
            raise CannotSplice("two changes of one stretch")
        out += [text[position : patch.start], patch.text]
        position = patch.end
    return "".join([*out, text[position:end]])


def shifted(text: str, columns: int) -> str:
    """The text with all lines but the first moved to the right, or to the left."""
    if not columns or "\n" not in text:
        return text
    first, *lines = text.split("\n")
    if columns > 0:
        pad = " " * columns
        return "\n".join([first, *(pad + line if line.strip() else line for line in lines)])
    moved = [line[min(-columns, len(line) - len(line.lstrip(" "))) :] for line in lines]
    return "\n".join([first, *moved])


class _Splicer:
    def __init__(self, text: str, body: int, style: Style) -> None:
        self.text = text
        self.body = body  # where the document begins
        self.style = style
        self.patches: list[Patch] = []

    def put(self, start: int, end: int, text: str, *, ahead: bool = False) -> None:
        if self.text[start:end] != text:
            self.patches.append(Patch(start, end, text, ahead))

    # ---- collections --------------------------------------------------------------------------

    def collection(self, outcome: Outcome, mine: Value) -> None:
        """Write what becomes of the entries."""
        node = mine.node
        if node is None or node.kind == "alias" or node.anchored:
            raise CannotSplice("others share this value")
        if node.flow or not node.children:
            self.put(node.start, node.end, self.inline(outcome, mine))
            return
        present = list(mine.children.values())
        if any(value.slot is None for value in present):
            raise CannotSplice("an entry comes from elsewhere")
        kept = [entry for entry in outcome.entries if entry.local is not None]
        places = {id(value): number for number, value in enumerate(present)}
        order = [places[id(entry.local)] for entry in kept]
        if not kept or order != sorted(order):
            self.anew(outcome, present)
            return
        for entry in kept:
            self.entry(entry)
        self.remove(present, outcome.gone)
        self.insert(outcome.entries)

    def entry(self, entry: Entry) -> None:
        """An entry that stays: its value, and the comments around it."""
        mine, how = entry.local, entry.outcome.how
        assert mine is not None
        assert mine.slot is not None
        whole = False
        if how is How.PARTS and not entry.outcome.entries:
            self.put(mine.slot.mark, mine.slot.end, self.below(entry.outcome.data, mine.slot))
        elif how is How.PARTS:
            self.collection(entry.outcome, mine)
        elif how is How.TEXT:
            self.text_of(mine, entry.outcome.data)
        elif how is How.UPSTREAM:
            assert entry.upstream is not None
            whole = self.replace(mine, entry.upstream)
        self.comments(entry, whole)

    def text_of(self, mine: Value, text: str) -> None:
        """Put a merged text in the place of the local one: in its block, where that has room."""
        assert mine.slot is not None
        node = mine.node
        block = _in_block(self.text[node.start : node.end], mine.data, text) if node else None
        if block is None or node is None:
            self.put(mine.slot.mark, mine.slot.end, self.below(text, mine.slot))
        else:
            self.put(node.start, node.end, block)

    def replace(self, mine: Value, theirs: Value) -> bool:
        """Put upstream's value in the place of the local one; says if the rest of the line went."""
        slot, other = mine.slot, theirs.slot
        assert slot is not None
        if other is None or (slot.inline and not theirs.leaf):
            if theirs.node is not None and theirs.leaf and "\n" not in theirs.full:
                self.put(slot.mark, slot.end, " " + theirs.full)
                return False
            node = mine.node
            if node and node.kind == "scalar" and kind_of(theirs.data) == SINGLE:
                # the blanks before it stay
                gap = "" if node.start < node.end else " "
                self.put(node.start, node.end, gap + scalar(theirs.data))
                return False
            self.put(slot.mark, slot.end, self.below(theirs.data, slot))
            return False
        columns = slot.column - other.column
        if mine.leaf and theirs.leaf:
            text = theirs.text[other.mark : other.end]
            self.put(slot.mark, slot.end, shifted(text, columns))
            return False
        text = theirs.text[other.mark : other.eol]
        self.put(slot.mark, slot.eol, shifted(text, columns))
        return True

    def comments(self, entry: Entry, whole: bool) -> None:
        """Comments that upstream alone changed arrive; all others stay as they are here."""
        sides = entry.origin, entry.upstream, entry.local
        slots = [side.slot for side in sides if side is not None and side.slot is not None]
        if len(slots) < 3:
            return
        texts = [side.text for side in sides if side is not None]
        mine, theirs = slots[2], slots[1]
        if not any(slot.inline for slot in slots):
            above = [_above(text, slot) for text, slot in zip(texts, slots, strict=True)]
            if _arrives([_lines(part) for part in above]):
                lines = shifted("\n" + above[1], mine.column - theirs.column)[1:]
                self.put(mine.lead, head(self.text, mine), lines)
        if whole:
            return
        leaves = [side.leaf for side in sides if side is not None]
        if all(leaves):
            stretches = [(slot.end, slot.eol) for slot in slots]
        elif not any(leaves):
            stretches = [(s.mark, line_end(t, s.mark)) for t, s in zip(texts, slots, strict=True)]
        else:
            return
        behind = [t[a:b].rstrip() for t, (a, b) in zip(texts, stretches, strict=True)]
        if all(not part.strip() or part.strip().startswith("#") for part in behind) and _arrives(
            [part.strip() for part in behind]
        ):
            self.put(*stretches[2], behind[1])

    def remove(self, present: Sequence[Value], gone: Sequence[Entry]) -> None:
        """Take out the entries that go, with the comments above them that came with them."""
        origins = {id(entry.local): entry.origin for entry in gone}
        for number, value in enumerate(present):
            slot = value.slot
            assert slot is not None
            if id(value) not in origins:
                continue
            if slot.inline:
                self.remove_inline(slot, present[number + 1], id(present[number + 1]) in origins)
                continue
            origin = origins[id(value)]
            foreign = origin is None or origin.slot is None or origin.slot.inline or (
                _lines(_above(origin.text, origin.slot)) != _lines(_above(self.text, slot))
            )  # fmt: skip
            start, end = head(self.text, slot) if foreign else slot.lead, slot.eol + 1
            if end > len(self.text):
                end -= 1
                if number and id(present[number - 1]) not in origins:
                    start -= 1  # the line break before it; the text has none at its end
            self.put(start, end, "")

    def remove_inline(self, slot: Slot, following: Value, goes: bool) -> None:
        """Take out the entry that stands behind a dash: the next one moves up to it."""
        after = following.slot
        assert after is not None
        if goes or _above(self.text, after).strip():
            raise CannotSplice("the entry shares its line with others")
        self.put(slot.head, after.head, "")

    def insert(self, entries: Sequence[Entry]) -> None:
        """Put in what upstream added, behind the entry that precedes it."""
        waiting: list[Entry] = []
        last: Slot | None = None
        for entry in entries:
            if entry.local is None:
                waiting.append(entry)
                continue
            assert entry.local.slot is not None
            slot = entry.local.slot
            if waiting and last is None:
                self.insert_first(waiting, slot)
            elif waiting and last is not None:
                self.insert_behind(waiting, last)
            waiting, last = [], slot
        if waiting:
            assert last is not None
            self.insert_behind(waiting, last)

    def insert_behind(self, entries: Sequence[Entry], slot: Slot) -> None:
        text = "".join("\n" + self.chunk(entry, slot.column) for entry in entries)
        self.put(slot.eol, slot.eol, text)

    def insert_first(self, entries: Sequence[Entry], slot: Slot) -> None:
        chunks = [self.chunk(entry, slot.column) for entry in entries]
        if slot.inline:
            text = "\n".join([*chunks, " " * slot.column])
            if text.lstrip().startswith("#"):
                raise CannotSplice("a comment would stand behind the dash")
            self.put(slot.head, slot.head, text.lstrip(" "))
        else:
            # what stands above the document's first key is about the document
            at = slot.lead if slot.lead != self.body else head(self.text, slot)
            # comments that arrive above the entry stay with it
            self.put(at, at, "".join(chunk + "\n" for chunk in chunks), ahead=True)

    def anew(self, outcome: Outcome, present: Sequence[Value]) -> None:
        """Write the whole collection: its order changed, or nothing of it stays."""
        first, last = present[0].slot, present[-1].slot
        assert first is not None
        assert last is not None
        chunks: list[str] = []
        for entry in outcome.entries:
            if entry.local is None:
                chunks.append(self.chunk(entry, first.column))
                continue
            inner = _Splicer(self.text, self.body, self.style)
            inner.entry(entry)
            slot = entry.local.slot
            assert slot is not None
            pad = " " * slot.column if slot.inline else ""
            start = slot.lead
            chunks.append(pad + patched(self.text, inner.patches, start, slot.eol))
        text = "\n".join(chunks)
        if first.inline:
            text = text.lstrip(" ")
            if text.startswith("#"):
                raise CannotSplice("a comment would stand behind the dash")
        self.put(first.lead, last.eol, text)

    # ---- texts of single entries --------------------------------------------------------------

    def chunk(self, entry: Entry, column: int) -> str:
        """The lines of an entry that is not here yet, the comments above it included."""
        theirs = entry.upstream
        if theirs is None or theirs.slot is None or entry.outcome.how is not How.UPSTREAM:
            value = entry.outcome.data
            data: Any = {entry.name: value} if entry.name else [value]
            return "\n".join(block(data, column, self.style))
        slot = theirs.slot
        columns = column - slot.column
        if slot.inline:
            return " " * column + shifted(theirs.text[slot.head : slot.eol], columns)
        return shifted("\n" + theirs.text[slot.lead : slot.eol], columns)[1:]

    def below(self, value: Any, slot: Slot) -> str:
        """A new value behind a key or dash."""
        kind = kind_of(value)
        style = self.style
        if kind == LITERAL:
            return " " + "\n".join(literal(value, slot.column + style.mapping))
        if kind != NESTED:
            return " " + scalar(value)
        if self.text[slot.head] == "-" and self.text[slot.mark - 1] == "-":
            return " " + "\n".join(block(value, slot.column + 2, style))[slot.column + 2 :]
        step = style.mapping if isinstance(value, dict) else style.sequence
        return "\n".join(["", *block(value, slot.column + step, style)])

    def inline(self, outcome: Outcome, mine: Value) -> str:
        """A collection in flow style, on one line."""
        node = mine.node
        assert node is not None
        inside = self.text[node.start : node.end]
        if "#" in inside:
            raise CannotSplice("there may be comments in it")
        if not outcome.entries or not node.children or "\n" in inside:
            return flow(outcome.data)
        parts = [self.inline_entry(entry) for entry in outcome.entries]
        children = list(node.children.values())
        opening = self.text[node.start : (children[0][0] or children[0][1]).start]
        return opening + ", ".join(parts) + self.text[children[-1][1].end : node.end]

    def inline_entry(self, entry: Entry) -> str:
        mine, theirs, how = entry.local, entry.upstream, entry.outcome.how
        key = f"{key_scalar(entry.name)}: " if entry.name else ""
        if how is How.LOCAL and mine is not None and mine.node is not None:
            return _spelled(self.text, mine.key, mine.node)
        if how is How.UPSTREAM and theirs is not None and theirs.node and theirs.slot is None:
            text = _spelled(theirs.text, theirs.key, theirs.node)
            if "\n" not in text:
                return text
        if how is How.PARTS and mine is not None and mine.node and mine.node.flow:
            return key + self.inline(entry.outcome, mine)
        return key + flow(entry.outcome.data)


def head(text: str, slot: Slot) -> int:
    """Where the line of an entry's key or dash begins."""
    return text.rfind("\n", 0, slot.head) + 1


def _above(text: str, slot: Slot) -> str:
    """The comment lines above an entry."""
    return text[slot.lead : head(text, slot)]


def _lines(text: str) -> list[str]:
    """The comments; blank lines may belong to the text of the value before."""
    return [line.strip() for line in text.split("\n") if line.strip()]


def _in_block(block: str, before: str, after: str) -> str | None:
    """A literal block with another text in it, its header, comment and indentation kept.

    None for what is no literal block, and where another end would need another header.
    """
    header, _, lines = block.partition("\n")
    ends = len(before) - len(before.rstrip("\n")), len(after) - len(after.rstrip("\n"))
    if not header.startswith("|") or ends[0] != ends[1] or not after.strip():
        return None
    first = next(line for line in lines.split("\n") if line.strip())
    said = next(line for line in before.split("\n") if line.strip())
    pad = " " * (len(first) - len(said))
    body = after.rstrip("\n").split("\n")
    return "\n".join([header, *(pad + line if line else "" for line in body)])


def _spelled(text: str, key: Node | None, node: Node) -> str:
    return text[(key or node).start : node.end]


def _arrives(sides: Sequence[Any]) -> bool:
    """Did upstream change it, and nobody here?"""
    origin, upstream, mine = sides
    return bool(mine == origin != upstream)

"""Splicing of a merge outcome into the local text, which stays where nothing changed.

Entries that upstream added are copied from upstream's text with their comments,
indented for their new place. A text whose form does not allow this (JSON, aliases,
unusual layout) is refused with CannotSplice, and the caller makes the change by edits.
The result is not verified here; the caller reads it.

Comments merge three ways as well, above an entry and behind it on its line: those that only
upstream changed are taken over, and all others keep their local text and their place.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fanout.package.merge.merge_values import (
    EntrySpan,
    MergedEntry,
    MergeOutcome,
    SideValue,
    ValueSource,
    find_line_end,
    find_line_start,
    shift_lines,
)
from fanout.package.text_patch import LITERAL, NESTED, SINGLE, detect_style, value_kind
from fanout.package.yaml_nodes import YamlNode
from fanout.package.yaml_scalars import (
    YamlStyle,
    block_lines,
    format_flow,
    format_key,
    format_scalar,
    literal_lines,
)


class CannotSplice(Exception):
    """The text has a form that cannot be spliced here."""


class SplicePatch(NamedTuple):
    """Range of the text and its replacement."""

    start: int
    end: int
    text: str
    goes_first: bool = False  # comes before other insertions at its place


def splice_document(
    sides: tuple[SideValue | None, SideValue | None, SideValue], outcome: MergeOutcome
) -> str:
    """Return the text of the local document with the outcome in it. Raises CannotSplice.

    `sides`: top values of the documents of base, upstream and local.
    """
    root = sides[2]
    if root.span is None or root.node is None:
        raise CannotSplice("no YAML")
    splicer = _Splicer(root.text, root.span.value_start + 1, detect_style(root.node))
    splicer.splice_collection(outcome, root)
    tails = [_trailing_text(side) for side in sides]
    if only_upstream_changed([text.strip() for text, _ in tails]):
        start = tails[2][1]
        line_break = "" if root.text[start - 1 : start] == "\n" else "\n"
        splicer.add_patch(start, root.span.eol, line_break + tails[1][0])
    return apply_patches(root.text, splicer.patches, root.span.value_start + 1, root.span.eol)


def splice_collections(root: SideValue, outcomes: Sequence[tuple[SideValue, MergeOutcome]]) -> str:
    """Return the text of a document with new outcomes for some collections. Raises CannotSplice."""
    if root.node is None:
        raise CannotSplice("no YAML")
    splicer = _Splicer(root.text, 0, detect_style(root.node))
    for value, outcome in outcomes:
        splicer.splice_collection(outcome, value)
    return apply_patches(root.text, splicer.patches, 0, len(root.text))


def _trailing_text(root: SideValue | None) -> tuple[str, int]:
    """Return the text behind a document's last value, and its position."""
    if root is None or root.span is None:
        return "", 0
    end, value = root.span.end, root
    while value.children and (span := next(reversed(value.children.values())).span):
        value = next(reversed(value.children.values()))
        end = max(end, span.end)
    start = min(find_line_end(root.text, end) + 1, root.span.eol)
    return root.text[start : root.span.eol], start


def apply_patches(text: str, patches: Sequence[SplicePatch], start: int, end: int) -> str:
    """Return a range of the text with patches applied. Raises CannotSplice if two overlap."""
    chunks: list[str] = []
    position = start
    # Of two insertions at one position the one added first comes first: it is the deeper one.
    for patch in sorted(patches, key=lambda patch: (*patch[:2], not patch.goes_first)):
        if patch.start < position:
            raise CannotSplice("two changes of one stretch")
        chunks += [text[position : patch.start], patch.text]
        position = patch.end
    return "".join([*chunks, text[position:end]])


class _Splicer:
    def __init__(self, text: str, document_start: int, style: YamlStyle) -> None:
        self.text = text
        self.document_start = document_start  # where the document begins
        self.style = style
        self.patches: list[SplicePatch] = []

    def add_patch(self, start: int, end: int, text: str, *, goes_first: bool = False) -> None:
        if self.text[start:end] != text:
            self.patches.append(SplicePatch(start, end, text, goes_first))

    # ---- collections --------------------------------------------------------------------------

    def splice_collection(self, outcome: MergeOutcome, local: SideValue) -> None:
        """Write the outcomes of a collection's entries. Raises CannotSplice."""
        node = local.node
        # Text behind an anchor has several places in the data; a change here would reach
        # all of them.
        if node is None or node.kind == "alias" or node.anchored:
            raise CannotSplice("others share this value")
        if node.flow or not node.children:
            self.add_patch(node.start, node.end, self.flow_text(outcome, local))
            return
        present = list(local.children.values())
        if any(value.span is None for value in present):
            raise CannotSplice("an entry comes from elsewhere")
        remaining = [entry for entry in outcome.entries if entry.local is not None]
        positions = {id(value): number for number, value in enumerate(present)}
        order = [positions[id(entry.local)] for entry in remaining]
        # Patches replace ranges in place and cannot move entries past each other.
        if not remaining or order != sorted(order):
            self.rewrite_collection(outcome, present)
            return
        for entry in remaining:
            self.splice_entry(entry)
        self.remove_entries(present, outcome.removed)
        self.insert_entries(outcome.entries)

    def splice_entry(self, entry: MergedEntry) -> None:
        """Write the value of an entry that stays, and the comments around it."""
        local, source = entry.local, entry.outcome.source
        assert local is not None
        is_line_replaced = False
        if source is ValueSource.MERGED and not entry.outcome.entries:
            self.write_new_value(local, entry.outcome.data)
        elif source is ValueSource.MERGED:
            self.splice_collection(entry.outcome, local)
        elif source is ValueSource.NEW_TEXT:
            self.replace_text(local, entry.outcome.data)
        elif source is ValueSource.UPSTREAM:
            assert entry.upstream is not None
            is_line_replaced = self.replace_value(local, entry.upstream)
        for start, end, comments in merge_comments(entry, is_line_replaced=is_line_replaced):
            self.add_patch(start, end, comments)

    def replace_text(self, local: SideValue, text: str) -> None:
        """Replace the local text by a merged one, in its literal block if the form allows."""
        node, before = local.node, local.data
        present = self.text[node.start : node.end] if node else ""
        header, _, lines = present.partition("\n")
        has_same_end = len(before) - len(before.rstrip("\n")) == len(text) - len(text.rstrip("\n"))
        # Another end of the text would need another header.
        if node is None or not header.startswith("|") or not has_same_end or not text.strip():
            self.write_new_value(local, text)
            return
        first = next(line for line in lines.split("\n") if line.strip())
        first_text_line = next(line for line in before.split("\n") if line.strip())
        padding = " " * (len(first) - len(first_text_line))
        body = (padding + line if line else "" for line in text.rstrip("\n").split("\n"))
        self.add_patch(node.start, node.end, "\n".join([header, *body]))

    def replace_value(self, local: SideValue, upstream: SideValue) -> bool:
        """Replace the local value by upstream's.

        Return whether the rest of its line was replaced too.
        """
        span, upstream_span = local.entry_span, upstream.span
        if upstream_span is None:
            if upstream.node is not None and upstream.is_leaf and "\n" not in upstream.full_text:
                self.add_patch(span.value_start, span.end, " " + upstream.full_text)
                return False
            node = local.node
            if node and node.kind == "scalar" and value_kind(upstream.data) == SINGLE:
                # An empty value starts right after the colon or dash, which need a space.
                gap = "" if node.start < node.end else " "
                self.add_patch(node.start, node.end, gap + format_scalar(upstream.data))
                return False
            self.write_new_value(local, upstream.data)
            return False
        # Upstream's text is copied with its comments, but every side may be indented in its
        # own way.
        columns = span.column - upstream_span.column
        if local.is_leaf and upstream.is_leaf:
            text = upstream.text[upstream_span.value_start : upstream_span.end]
            self.add_patch(span.value_start, span.end, shift_lines(text, columns))
            return False
        text = upstream.text[upstream_span.value_start : upstream_span.eol]
        self.add_patch(span.value_start, span.eol, shift_lines(text, columns))
        return True

    def remove_entries(self, present: Sequence[SideValue], removed: Sequence[MergedEntry]) -> None:
        """Remove entries, with the comments above them unless these were written locally."""
        removed_entries = {id(entry.local): entry for entry in removed}
        for number, value in enumerate(present):
            span, entry = value.entry_span, removed_entries.get(id(value))
            if entry is None:
                continue
            if span.is_inline:
                # It stands behind a dash, and the next entry takes its place.
                following = present[number + 1]
                next_span = following.entry_span
                has_comments = comments_above(self.text, next_span).strip()
                if id(following) in removed_entries or has_comments:
                    raise CannotSplice("the entry shares its line with others")
                self.add_patch(span.start, next_span.start, "")
                continue
            # A comment that somebody wrote locally above an entry may be about more than this
            # entry. It stays; a comment that came with the entry goes with it.
            start, end = span.comments_start, span.eol + 1
            if has_local_comments(entry):
                start = find_line_start(self.text, span.start)
            if end > len(self.text):
                end -= 1
                if number and id(present[number - 1]) not in removed_entries:
                    start -= 1  # the line break before it; the text has none at its end
            self.add_patch(start, end, "")

    def insert_entries(self, entries: Sequence[MergedEntry]) -> None:
        """Insert upstream's additions, each behind the entry that precedes it."""
        pending: list[MergedEntry] = []
        previous_span: EntrySpan | None = None
        for entry in entries:
            if entry.local is None:
                pending.append(entry)
                continue
            span = entry.local.entry_span
            if pending and previous_span is None:
                self.insert_first(pending, span)
            elif previous_span is not None:
                self.insert_behind(pending, previous_span)
            pending, previous_span = [], span
        if previous_span is not None:
            self.insert_behind(pending, previous_span)

    def insert_behind(self, entries: Sequence[MergedEntry], span: EntrySpan) -> None:
        text = "".join("\n" + self.entry_lines(entry, span.column) for entry in entries)
        self.add_patch(span.eol, span.eol, text)

    def insert_first(self, entries: Sequence[MergedEntry], span: EntrySpan) -> None:
        chunks = [self.entry_lines(entry, span.column) for entry in entries]
        if span.is_inline:
            text = "\n".join([*chunks, " " * span.column])
            if text.lstrip().startswith("#"):
                raise CannotSplice("a comment would stand behind the dash")
            self.add_patch(span.start, span.start, text.lstrip(" "))
        else:
            # Comments above the document's first key are about the document.
            position = (
                span.comments_start
                if span.comments_start != self.document_start
                else find_line_start(self.text, span.start)
            )
            # New comments above the entry go below what is about the document.
            self.add_patch(
                position, position, "".join(chunk + "\n" for chunk in chunks), goes_first=True
            )

    def rewrite_collection(self, outcome: MergeOutcome, present: Sequence[SideValue]) -> None:
        """Rewrite a collection whose order changed, or of which no entry stays."""
        first_span, last_span = present[0].entry_span, present[-1].entry_span
        chunks: list[str] = []
        for entry in outcome.entries:
            if entry.local is None:
                chunks.append(self.entry_lines(entry, first_span.column))
                continue
            inner = _Splicer(self.text, self.document_start, self.style)
            inner.splice_entry(entry)
            span = entry.local.entry_span
            pad = " " * span.column if span.is_inline else ""
            start = span.comments_start
            chunks.append(pad + apply_patches(self.text, inner.patches, start, span.eol))
        text = "\n".join(chunks)
        if first_span.is_inline:
            text = text.lstrip(" ")
            if text.startswith("#"):
                raise CannotSplice("a comment would stand behind the dash")
        self.add_patch(first_span.comments_start, last_span.eol, text)

    # ---- texts of single entries --------------------------------------------------------------

    def entry_lines(self, entry: MergedEntry, column: int) -> str:
        """Return the lines of a new entry, comments above it included."""
        upstream = entry.upstream
        if (
            upstream is None
            or upstream.span is None
            or entry.outcome.source is not ValueSource.UPSTREAM
        ):
            value = entry.outcome.data
            data: Any = {entry.name: value} if entry.name else [value]
            return "\n".join(block_lines(data, column, self.style))
        span = upstream.span
        columns = column - span.column
        if span.is_inline:
            return " " * column + shift_lines(upstream.text[span.start : span.eol], columns)
        return shift_lines("\n" + upstream.text[span.comments_start : span.eol], columns)[1:]

    def write_new_value(self, local: SideValue, value: Any) -> None:
        """Write a new value behind a key or dash."""
        span, style, kind = local.entry_span, self.style, value_kind(value)
        if kind == LITERAL:
            text = " " + "\n".join(literal_lines(value, span.column + style.mapping))
        elif kind != NESTED:
            text = " " + format_scalar(value)
        elif self.text[span.start] == "-" and self.text[span.value_start - 1] == "-":
            text = " " + "\n".join(block_lines(value, span.column + 2, style))[span.column + 2 :]
        else:
            step = style.mapping if isinstance(value, dict) else style.sequence
            text = "\n".join(["", *block_lines(value, span.column + step, style)])
        self.add_patch(span.value_start, span.end, text)

    def flow_text(self, outcome: MergeOutcome, local: SideValue) -> str:
        """Return a collection in flow style, on one line. Raises CannotSplice."""
        node = local.node
        assert node is not None
        inside = self.text[node.start : node.end]
        if "#" in inside:
            raise CannotSplice("there may be comments in it")
        if not outcome.entries or not node.children or "\n" in inside:
            return format_flow(outcome.data)
        parts = [self.flow_entry_text(entry) for entry in outcome.entries]
        children = list(node.children.values())
        opening = self.text[node.start : (children[0][0] or children[0][1]).start]
        return opening + ", ".join(parts) + self.text[children[-1][1].end : node.end]

    def flow_entry_text(self, entry: MergedEntry) -> str:
        local, upstream, source = entry.local, entry.upstream, entry.outcome.source
        key = f"{format_key(entry.name)}: " if entry.name else ""
        if source is ValueSource.LOCAL and local is not None and local.node is not None:
            return _source_text(self.text, local.key, local.node)
        if (
            source is ValueSource.UPSTREAM
            and upstream is not None
            and upstream.node
            and upstream.span is None
        ):
            text = _source_text(upstream.text, upstream.key, upstream.node)
            if "\n" not in text:
                return text
        if source is ValueSource.MERGED and local is not None and local.node and local.node.flow:
            return key + self.flow_text(entry.outcome, local)
        return key + format_flow(entry.outcome.data)


def _source_text(text: str, key: YamlNode | None, node: YamlNode) -> str:
    return text[(key or node).start : node.end]


# ---- comments -----------------------------------------------------------------------------------


def merge_comments(entry: MergedEntry, *, is_line_replaced: bool) -> Iterator[tuple[int, int, str]]:
    """Yield the changes of the comments of an entry that stays: range in the local text, new text.

    `is_line_replaced`: the comment on its line was replaced with the value.
    """
    sides = [side for side in (entry.origin, entry.upstream, entry.local) if side is not None]
    texts = [side.text for side in sides]
    spans = [side.span for side in sides if side.span is not None]
    if len(spans) < 3:
        return
    _, upstream, local = spans
    if not any(span.is_inline for span in spans):
        above = [comments_above(text, span) for text, span in zip(texts, spans, strict=True)]
        if only_upstream_changed([comment_lines(part) for part in above]):
            lines = shift_lines("\n" + above[1], local.column - upstream.column)[1:]
            yield local.comments_start, find_line_start(texts[2], local.start), lines
    if is_line_replaced:
        return
    leaves = [side.is_leaf for side in sides]
    if all(leaves):
        ranges = [(span.end, span.eol) for span in spans]
    elif not any(leaves):
        starts = [span.value_start for span in spans]
        ranges = [(a, find_line_end(text, a)) for text, a in zip(texts, starts, strict=True)]
    else:
        return
    trailing = [text[a:b].rstrip() for text, (a, b) in zip(texts, ranges, strict=True)]
    comments = [part.strip() for part in trailing]
    if all(not part or part.startswith("#") for part in comments) and only_upstream_changed(
        comments
    ):
        yield *ranges[2], trailing[1]


def has_local_comments(entry: MergedEntry) -> bool:
    """Return whether the comments above a local entry were written locally."""
    origin, local = entry.origin, entry.local
    assert local is not None
    if origin is None or origin.span is None or origin.span.is_inline:
        return True
    texts = comments_above(origin.text, origin.span), comments_above(local.text, local.entry_span)
    return comment_lines(texts[0]) != comment_lines(texts[1])


def comments_above(text: str, span: EntrySpan) -> str:
    """Return the lines of comments above an entry, blank lines included."""
    return text[span.comments_start : find_line_start(text, span.start)]


def comment_lines(text: str) -> list[str]:
    """Return the comments without blank lines, which may belong to the value above."""
    return [line.strip() for line in text.split("\n") if line.strip()]


def only_upstream_changed(sides: Sequence[object]) -> bool:
    """Return whether upstream changed a value, and the local side did not."""
    origin, upstream, local = sides
    return local == origin != upstream

"""Splicing of a merge outcome into the local text, which stays where nothing changed.

Entries that upstream added are copied from upstream's text with their comments,
indented for their new place. A text whose form does not allow this (JSON, aliases,
unusual layout) is refused with CannotSplice, and the caller makes the change by edits.
The result is not verified here; the caller reads it.

Each file of a merged package begins as the local one (a new file as upstream's);
documents are replaced, removed and added, and the result is parsed once to verify that
it reads as decided.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from fanout.package.field_edits import Edit, diff_values, same_json
from fanout.package.json_manifest import is_json
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import (
    DocumentReader,
    MergeDocument,
    MergeFile,
    MergeUnit,
    UnitKey,
)
from fanout.package.merge.merge_values import (
    EntrySpan,
    MergedEntry,
    MergeOutcome,
    SideValue,
    ValueSource,
    find_line_end,
)
from fanout.package.text_patch import LITERAL, NESTED, SINGLE, detect_style, value_kind
from fanout.package.yaml_nodes import YamlNode
from fanout.package.yaml_scalars import (
    YamlStyle,
    block_lines,
    dump,
    format_flow,
    format_key,
    format_scalar,
    literal_lines,
)
from fanout.values import frozen


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
    if _only_upstream_changed([text.strip() for text, _ in tails]):
        start = tails[2][1]
        line_break = "" if root.text[start - 1 : start] == "\n" else "\n"
        splicer.add_patch(start, root.span.eol, line_break + tails[1][0])
    return apply_patches(root.text, splicer.patches, root.span.value_start + 1, root.span.eol)


def splice_collections(root: SideValue, outcomes: Sequence[tuple[SideValue, MergeOutcome]]) -> str:
    """Return the text of a document with new outcomes for some collections.

    Raises CannotSplice.
    """
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
    start = min(find_line_end(root.text, root.span.end) + 1, root.span.eol)
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
        assert local.span is not None
        is_line_replaced = False
        if source is ValueSource.MERGED and not entry.outcome.entries:
            self.add_patch(
                local.span.value_start,
                local.span.end,
                self.new_value_text(entry.outcome.data, local.span),
            )
        elif source is ValueSource.MERGED:
            self.splice_collection(entry.outcome, local)
        elif source is ValueSource.NEW_TEXT:
            self.replace_text(local, entry.outcome.data)
        elif source is ValueSource.UPSTREAM:
            assert entry.upstream is not None
            is_line_replaced = self.replace_value(local, entry.upstream)
        self.splice_comments(entry, is_line_replaced)

    def replace_text(self, local: SideValue, text: str) -> None:
        """Replace the local text by a merged one, in its literal block if the form allows."""
        assert local.span is not None
        node = local.node
        block = (
            _replace_block_text(self.text[node.start : node.end], local.data, text)
            if node
            else None
        )
        if block is None or node is None:
            self.add_patch(
                local.span.value_start, local.span.end, self.new_value_text(text, local.span)
            )
        else:
            self.add_patch(node.start, node.end, block)

    def replace_value(self, local: SideValue, upstream: SideValue) -> bool:
        """Replace the local value by upstream's.

        Return whether the rest of its line was replaced too.
        """
        span, upstream_span = local.span, upstream.span
        assert span is not None
        if upstream_span is None or (span.is_inline and not upstream.is_leaf):
            if upstream.node is not None and upstream.is_leaf and "\n" not in upstream.full_text:
                self.add_patch(span.value_start, span.end, " " + upstream.full_text)
                return False
            node = local.node
            if node and node.kind == "scalar" and value_kind(upstream.data) == SINGLE:
                # An empty value starts right after the colon or dash, which need a space.
                gap = "" if node.start < node.end else " "
                self.add_patch(node.start, node.end, gap + format_scalar(upstream.data))
                return False
            self.add_patch(span.value_start, span.end, self.new_value_text(upstream.data, span))
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

    def splice_comments(self, entry: MergedEntry, is_line_replaced: bool) -> None:
        """Take over comments that only upstream changed; all others keep their local text."""
        sides = entry.origin, entry.upstream, entry.local
        spans = [side.span for side in sides if side is not None and side.span is not None]
        if len(spans) < 3:
            return
        texts = [side.text for side in sides if side is not None]
        local_span, upstream_span = spans[2], spans[1]
        if not any(span.is_inline for span in spans):
            comments_above = [
                _comments_above(text, span) for text, span in zip(texts, spans, strict=True)
            ]
            if _only_upstream_changed([_comment_lines(part) for part in comments_above]):
                lines = shift_lines(
                    "\n" + comments_above[1], local_span.column - upstream_span.column
                )[1:]
                self.add_patch(local_span.comments_start, line_start(self.text, local_span), lines)
        if is_line_replaced:
            return
        leaves = [side.is_leaf for side in sides if side is not None]
        if all(leaves):
            stretches = [(span.end, span.eol) for span in spans]
        elif not any(leaves):
            stretches = [
                (s.value_start, find_line_end(t, s.value_start))
                for t, s in zip(texts, spans, strict=True)
            ]
        else:
            return
        trailing = [t[a:b].rstrip() for t, (a, b) in zip(texts, stretches, strict=True)]
        if all(
            not part.strip() or part.strip().startswith("#") for part in trailing
        ) and _only_upstream_changed([part.strip() for part in trailing]):
            self.add_patch(*stretches[2], trailing[1])

    def remove_entries(self, present: Sequence[SideValue], removed: Sequence[MergedEntry]) -> None:
        """Remove entries, with the comments above them unless these were written locally."""
        origins = {id(entry.local): entry.origin for entry in removed}
        for number, value in enumerate(present):
            span = value.span
            assert span is not None
            if id(value) not in origins:
                continue
            if span.is_inline:
                self.remove_inline(span, present[number + 1], id(present[number + 1]) in origins)
                continue
            origin = origins[id(value)]
            # A comment that somebody wrote locally above an entry may be about more than this
            # entry. It stays; a comment that came with the entry goes with it.
            has_local_comments = (
                origin is None
                or origin.span is None
                or origin.span.is_inline
                or (
                    _comment_lines(_comments_above(origin.text, origin.span))
                    != _comment_lines(_comments_above(self.text, span))
                )
            )
            start, end = (
                line_start(self.text, span) if has_local_comments else span.comments_start,
                span.eol + 1,
            )
            if end > len(self.text):
                end -= 1
                if number and id(present[number - 1]) not in origins:
                    start -= 1  # the line break before it; the text has none at its end
            self.add_patch(start, end, "")

    def remove_inline(self, span: EntrySpan, following: SideValue, next_is_removed: bool) -> None:
        """Remove the entry that stands behind a dash; the next one takes its place."""
        next_span = following.span
        assert next_span is not None
        if next_is_removed or _comments_above(self.text, next_span).strip():
            raise CannotSplice("the entry shares its line with others")
        self.add_patch(span.start, next_span.start, "")

    def insert_entries(self, entries: Sequence[MergedEntry]) -> None:
        """Insert upstream's additions, each behind the entry that precedes it."""
        pending: list[MergedEntry] = []
        previous_span: EntrySpan | None = None
        for entry in entries:
            if entry.local is None:
                pending.append(entry)
                continue
            assert entry.local.span is not None
            span = entry.local.span
            if pending and previous_span is None:
                self.insert_first(pending, span)
            elif pending and previous_span is not None:
                self.insert_behind(pending, previous_span)
            pending, previous_span = [], span
        if pending:
            assert previous_span is not None
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
                else line_start(self.text, span)
            )
            # New comments above the entry go below what is about the document.
            self.add_patch(
                position, position, "".join(chunk + "\n" for chunk in chunks), goes_first=True
            )

    def rewrite_collection(self, outcome: MergeOutcome, present: Sequence[SideValue]) -> None:
        """Rewrite a collection whose order changed, or of which no entry stays."""
        first_span, last_span = present[0].span, present[-1].span
        assert first_span is not None
        assert last_span is not None
        chunks: list[str] = []
        for entry in outcome.entries:
            if entry.local is None:
                chunks.append(self.entry_lines(entry, first_span.column))
                continue
            inner = _Splicer(self.text, self.document_start, self.style)
            inner.splice_entry(entry)
            span = entry.local.span
            assert span is not None
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

    def new_value_text(self, value: Any, span: EntrySpan) -> str:
        """Return the text of a new value behind a key or dash."""
        kind = value_kind(value)
        style = self.style
        if kind == LITERAL:
            return " " + "\n".join(literal_lines(value, span.column + style.mapping))
        if kind != NESTED:
            return " " + format_scalar(value)
        if self.text[span.start] == "-" and self.text[span.value_start - 1] == "-":
            return " " + "\n".join(block_lines(value, span.column + 2, style))[span.column + 2 :]
        step = style.mapping if isinstance(value, dict) else style.sequence
        return "\n".join(["", *block_lines(value, span.column + step, style)])

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


def line_start(text: str, span: EntrySpan) -> int:
    """Return the start of the line of an entry's key or dash."""
    return text.rfind("\n", 0, span.start) + 1


def _comments_above(text: str, span: EntrySpan) -> str:
    """Return the comment lines above an entry."""
    return text[span.comments_start : line_start(text, span)]


def _comment_lines(text: str) -> list[str]:
    """Return the comments without blank lines, which may belong to the value above."""
    return [line.strip() for line in text.split("\n") if line.strip()]


def _replace_block_text(block: str, before: str, after: str) -> str | None:
    """Return a literal block with a new text and its old header, comment and indentation.

    None if it is no literal block, or if the text's end needs another header.
    """
    header, _, lines = block.partition("\n")
    trailing_breaks = len(before) - len(before.rstrip("\n")), len(after) - len(after.rstrip("\n"))
    if not header.startswith("|") or trailing_breaks[0] != trailing_breaks[1] or not after.strip():
        return None
    first = next(line for line in lines.split("\n") if line.strip())
    first_text_line = next(line for line in before.split("\n") if line.strip())
    padding = " " * (len(first) - len(first_text_line))
    body = after.rstrip("\n").split("\n")
    return "\n".join([header, *(padding + line if line else "" for line in body)])


def _source_text(text: str, key: YamlNode | None, node: YamlNode) -> str:
    return text[(key or node).start : node.end]


def _only_upstream_changed(sides: Sequence[Any]) -> bool:
    """Return whether upstream changed a value, and the local side did not."""
    origin, upstream, local = sides
    return bool(local == origin != upstream)


@frozen
class ResultUnit:
    """Unit of the result that is a document of its own in a file."""

    key: UnitKey
    path: str  # of the file
    outcome: MergeOutcome
    units: tuple[MergeUnit | None, MergeUnit | None, MergeUnit | None]  # origin, upstream, local

    @property
    def source_unit(self) -> MergeUnit:
        """Unit whose text the result starts from: JSON for JSON, YAML for YAML."""
        _, upstream_unit, local_unit = self.units
        prefers_upstream = (
            self.outcome.source is ValueSource.UPSTREAM
            or local_unit is None
            or is_in_list(local_unit)
        )
        candidates = [
            unit
            for unit in (
                (upstream_unit, local_unit) if prefers_upstream else (local_unit, upstream_unit)
            )
            if unit is not None
        ]
        same_format = (
            unit for unit in candidates if is_json(unit.document.file) == is_json(self.path)
        )
        return next(same_format, candidates[0])

    def document_text(self, use_edits: bool = False) -> str:
        """Return the text of the document.

        `use_edits`: do not splice, because a first attempt did not read as decided.
        """
        source = self.source_unit
        if is_in_list(source):
            return dump(self.outcome.data)
        value_source, (_, upstream_unit, local_unit) = self.outcome.source, self.units
        if source is (
            upstream_unit if value_source is ValueSource.UPSTREAM else local_unit
        ) and value_source in (ValueSource.UPSTREAM, ValueSource.LOCAL):
            return source.document.text
        if not use_edits and source is local_unit and value_source is not ValueSource.UPSTREAM:
            values: list[SideValue | None] = [unit.value if unit else None for unit in self.units]
            try:
                return splice_document((values[0], values[1], source.value), self.outcome)
            except CannotSplice:
                pass
        return edit_document(source.document, self.outcome.data)


def is_in_list(unit: MergeUnit) -> bool:
    """Return whether the unit is an item of a List."""
    return len(unit.container) > 1


def edit_document(document: MergeDocument, data: Any) -> str:
    """Return the document's text with edits after which it reads as the data."""
    manifest = Manifest.parse(document.text.encode(), document.file)
    index = manifest.documents[0].index
    edits = [Edit(index, path, value) for path, value in diff_values(document.value.data, data)]
    return manifest.apply_edits_to_text(edits).decode()


def write_file(
    placed: Sequence[ResultUnit],
    sides: tuple[MergeFile | None, MergeFile | None, MergeFile | None],
    reader: DocumentReader,
) -> bytes:
    """Return the bytes of a file with these units, in this order.

    `sides`: the file in origin, upstream and local.
    """
    origin_file, upstream_file, local_file = sides
    base = local_file or upstream_file
    assert base is not None
    writer = _FileWriter(placed, base, sides)
    # Nobody touched the file locally: upstream's bytes, so that the layout of JSON
    # follows upstream.
    if (
        origin_file
        and upstream_file
        and local_file
        and local_file.data == origin_file.data
        and _is_equal_json(placed, upstream_file)
    ):
        return upstream_file.data
    if _is_unchanged_from(
        placed, local_file, 2, ValueSource.LOCAL
    ) and writer.text_before_documents() == base.between(0):
        return base.data
    if _is_unchanged_from(placed, upstream_file, 1, ValueSource.UPSTREAM) and (
        local_file is None or origin_file is None or local_file.data == origin_file.data
    ):
        assert upstream_file is not None
        return upstream_file.data
    bom, crlf = base.bom, base.crlf
    # the byte order mark and line breaks are merged three ways, too
    if origin_file and upstream_file and local_file:
        bom = upstream_file.bom if local_file.bom == origin_file.bom else local_file.bom
        crlf = upstream_file.crlf if local_file.crlf == origin_file.crlf else local_file.crlf
    if is_json(base.path):
        return bom + placed[0].document_text().encode()
    # Splicing keeps most of the text and is verified by reading. If it reads
    # differently, the documents are edited instead, which may lose layout; if even that
    # fails, they are written anew.
    text = writer.assemble_text(use_edits=False)
    data = [unit.outcome.data for unit in placed]
    if not reader.reads_as(text, data):
        text = writer.assemble_text(use_edits=True)
        if not reader.reads_as(text, data):
            text = "---\n".join(map(dump, data))
    return bom + (text.replace("\n", "\r\n") if crlf else text).encode()


def _is_equal_json(placed: Sequence[ResultUnit], file: MergeFile) -> bool:
    """Return whether the JSON file reads as the unit; its layout is no difference."""
    return is_json(file.path) and same_json(placed[0].outcome.data, file.documents[0].value.data)


def _is_unchanged_from(
    placed: Sequence[ResultUnit], file: MergeFile | None, side: int, value_source: ValueSource
) -> bool:
    """Return whether one side's file is exactly these units, all taken from that side."""
    if file is None or len(placed) != len(file.documents):
        return False
    for unit, document in zip(placed, file.documents, strict=True):
        side_unit = unit.units[side]
        if (
            unit.outcome.source is not value_source
            or side_unit is None
            or side_unit.document is not document
        ):
            return False
        if is_in_list(side_unit):
            return False
    return True


@frozen
class _FileWriter:
    placed: Sequence[ResultUnit]
    base: MergeFile
    sides: tuple[MergeFile | None, MergeFile | None, MergeFile | None]

    def assemble_text(self, *, use_edits: bool) -> str:
        """Return the complete text, with the base file's text between its documents."""
        numbers = {id(document): document.number for document in self.base.documents}
        chunks = [self.text_before_documents()]
        for position, unit in enumerate(self.placed):
            number = 0
            for side_unit in (unit.units[2], unit.units[1]):
                if (
                    side_unit is not None
                    and id(side_unit.document) in numbers
                    and not is_in_list(side_unit)
                ):
                    number = numbers[id(side_unit.document)]
                    break
            if position:
                if not chunks[-1].endswith("\n"):
                    chunks.append("\n")
                chunks.append(self.base.between(number) if number else "---\n")
            text = unit.document_text(use_edits)
            if use_edits and not text.endswith("\n") and unit is not self.placed[-1]:
                text = dump(unit.outcome.data)  # a line break would belong to its last text
            chunks.append(text)
        if self.base.documents:
            chunks.append(self.base.tail)
        return "".join(chunks)

    def text_before_documents(self) -> str:
        """Return the text before the first document; upstream's if it was not changed locally."""
        heads = [file.between(0) if file and file.documents else None for file in self.sides]
        if heads[1] is not None and heads[0] == heads[2] != heads[1]:
            return heads[1]
        if self.base.documents:
            return self.base.between(0)
        text = self.base.text
        return text if not text or text.endswith("\n") else text + "\n"

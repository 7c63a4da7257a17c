"""Three-way merge of comments: above an entry, and behind it on its line.

Comments that only upstream changed are taken over. All others keep their local text and
their place.
"""

from collections.abc import Iterator, Sequence

from fanout.package.merge.merge_units import MergeDocument, MergeFile
from fanout.package.merge.merge_values import (
    EntrySpan,
    MergedEntry,
    find_line_end,
    find_line_start,
    shift_lines,
)

Replacement = tuple[int, int, str]  # start and end in the local text, and the new text


def merge_comments(entry: MergedEntry, *, is_line_replaced: bool) -> Iterator[Replacement]:
    """Yield the changes of the comments of an entry that stays.

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


def possible_comments(text: str) -> Iterator[str]:
    """Yield possible comments: from each `#` at a word's start to the line's end."""
    position = text.find("#")
    while position >= 0:
        if position == 0 or text[position - 1] in " \t\n":
            yield text[position : find_line_end(text, position)].rstrip()
        position = text.find("#", position + 1)


def iter_comments(file: MergeFile) -> Iterator[tuple[int, str]]:
    """Yield the comments outside of all scalars, each with its position."""
    scalar_spans: list[tuple[int, int]] = []  # of aliases and keys, too
    for document in file.documents:
        shift = file_offset(document)
        pending = [document.value.node]
        while pending:
            node = pending.pop()
            if node is not None and node.children:
                pending += (it for entry in node.children.values() for it in entry)
            elif node is not None:
                scalar_spans.append((node.start + shift, node.end + shift))
    scanned_to = 0
    for start, end in (*sorted(scalar_spans), (len(file.text), len(file.text))):
        position = file.text.find("#", scanned_to, start)
        while position >= 0:
            eol = find_line_end(file.text, position)
            if position == 0 or file.text[position - 1] in " \t\n":
                yield position, file.text[position:eol].rstrip()
            position = file.text.find("#", eol, start)
        scanned_to = max(scanned_to, end)


def file_offset(document: MergeDocument) -> int:
    """Return the offset from positions in the document's stretch to positions in its file."""
    span = document.value.span
    return document.start - (span.value_start + 1) if span else 0

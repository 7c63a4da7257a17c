"""Comments that were written here and are not in the result: they went with what they were about.

A comment changes no value, so an element that upstream removed goes although one was written into
it here. Nobody is asked about that; those who wrote it are told.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fanout.package.edits import Path, show
from fanout.package.merge.bookkeeping import is_mark
from fanout.package.merge.documents import Document, File
from fanout.package.merge.identity import identity_of, shown
from fanout.package.merge.sides import Value, line_end
from fanout.package.nodes import Node


def lost_comments(
    origin: Iterable[File], local: Sequence[File], result: Mapping[str, bytes]
) -> list[str]:
    """A note for each comment of the local files that neither the origin nor the result has."""
    mine = Counter(part for file in local for part in _parts(file.text))
    if not mine:
        return []
    mine -= Counter(part for file in origin for part in _parts(file.text))
    texts = (data.decode(errors="replace") for data in result.values())
    mine -= Counter(part for text in texts for part in _parts(text))
    return list(_told(mine, local, result)) if mine else []


def _parts(text: str) -> Iterator[str]:
    """What might be a comment: from each `#` that stands alone to the end of its line."""
    at = text.find("#")
    while at >= 0:
        if at == 0 or text[at - 1] in " \t\n":
            yield text[at : line_end(text, at)].rstrip()
        at = text.find("#", at + 1)


def _told(lost: Counter[str], local: Sequence[File], result: Mapping[str, bytes]) -> Iterator[str]:
    # where a comment stands several times, it went with a file that is gone
    for file in sorted(local, key=lambda file: file.path in result):
        for at, comment in _comments(file):
            if lost[comment] > 0 and not is_mark(comment):
                lost[comment] -= 1
                line = file.text.count("\n", 0, at) + 1
                yield f'{file.path}:{line}: the comment "{comment}" went with {_about(file, at)}'


def _comments(file: File) -> Iterator[tuple[int, str]]:
    """The comments outside of all scalars, each with its place."""
    behind = 0
    for start, end in (*_spans(file), (len(file.text), len(file.text))):
        at = file.text.find("#", behind, start)
        while at >= 0:
            eol = line_end(file.text, at)
            if at == 0 or file.text[at - 1] in " \t\n":
                yield at, file.text[at:eol].rstrip()
            at = file.text.find("#", eol, start)
        behind = max(behind, end)


def _spans(file: File) -> list[tuple[int, int]]:
    """Where the scalars and aliases of a file stand, keys included."""
    found: list[tuple[int, int]] = []
    for document in file.documents:
        shift = _shift(document)
        waiting = [document.value.node]
        while waiting:
            node = waiting.pop()
            if node is None or not node.children:
                found += _span(node, shift)
                continue
            for key, child in node.children.values():
                found += _span(key, shift)
                waiting.append(child)
    return sorted(found)


def _span(node: Node | None, shift: int) -> list[tuple[int, int]]:
    return [(node.start + shift, node.end + shift)] if node else []


def _shift(document: Document) -> int:
    """From a position in the document's stretch to that in its file."""
    slot = document.value.slot
    return document.start - (slot.mark + 1) if slot else 0


def _about(file: File, at: int) -> str:
    """The object and field that a comment stands at."""
    for document in file.documents:
        if document.start <= at <= document.end:
            identity = identity_of(document.value.data)
            path = _field(document.value, at - _shift(document))
            parts = [shown(identity) if identity else "", show(path) if path else ""]
            return ": ".join(part for part in parts if part) or "its document"
    return "the file"


def _field(value: Value, at: int) -> Path:
    """The path of the innermost entry at whose lines the position is.

    What stands above the document's first key is about the document.
    """
    first = next(iter(value.children.values()), None)
    if first is None or first.slot is None or at < first.slot.head:
        return ()
    path: Path = ()
    while True:
        for part, child in value.children.items():
            if child.slot is not None and child.slot.lead <= at <= child.slot.eol:
                path, value = (*path, part), child
                break
        else:
            return path

"""Reading YAML texts of which many are alike: the same lines, with other words at their ends.

So are the files of a package's variants, and what people make of them. The first of such texts is
read by the parser; for the next ones its nodes are moved to where the other words have them. Only
words are exchanged of which it is plain, wherever they stand in block style, that they are one
scalar; everything else must be the same, character by character.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from fanout.package.nodes import Node, Reading, Root, read
from fanout.package.scalars import resolve

_LONGEST: Final = 16 << 10  # characters of a text that is kept
_KEPT: Final = 256 << 10  # characters of all of them; their nodes take some thirty times as much

_LETTERS: Final = "[A-Za-z0-9_./@+-]"
_NAME: Final = f"[A-Za-z0-9_]{_LETTERS}*+(?::{_LETTERS}++)*+"
_WORD: Final = re.compile(
    rf"([:-] )({_NAME}(?: {_NAME})*+|'(?:{_LETTERS}|[ :])*+'|\"(?:{_LETTERS}|[ :])*+\")"
    r"(?=\n| +#|\Z)"
)


class _Known(NamedTuple):
    """A text that was read, and the nodes of its words; None where a word is no value by itself."""

    reading: Reading
    words: list[str]
    nodes: list[Node | None]


class _Frames:
    """What was learnt of texts, by what is not a word in them: a memory, and no state."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], _Known | None] = {}
        self._size = 0

    def get(self, frame: tuple[str, ...]) -> _Known | None:
        """A text of this frame, if one was read and others can be read by it."""
        return self._known.get(frame)

    def learn(self, frame: tuple[str, ...], text: str, reading: Reading, words: list[str]) -> None:
        """Keep what was read, unless it is known that nothing can be learnt of it."""
        if frame in self._known:
            return
        if self._size + len(text) > _KEPT:
            self._known.clear()
            self._size = 0
        self._known[frame] = _learnt(text, reading, words)
        self._size += len(text)


_frames: Final = _Frames()


def read_alike(text: str, file: str) -> Reading:
    """What `read` answers; nodes are shared with other readings and must not be changed."""
    if len(text) > _LONGEST:
        return read(text, file)
    pieces = _WORD.split(text)  # what stands before a word, in turns with its mark and itself
    words = pieces[2::3]
    del pieces[2::3]
    frame = tuple(pieces)
    known = _frames.get(frame)
    if known is None:
        reading = read(text, file)
        _frames.learn(frame, text, reading, words)
        return reading
    changed: list[tuple[Node, str]] = []
    for node, before, word in zip(known.nodes, known.words, words, strict=True):
        if word != before:
            if node is None:
                return read(text, file)
            changed.append((node, word))
    return _moved(known.reading, changed) if changed else Reading(known.reading.roots.copy())


def _learnt(text: str, reading: Reading, words: list[str]) -> _Known | None:
    if reading.problems or "&" in text or "<<" in text:
        return None  # with an anchor or a merge, data is shared
    scalars = {
        (node.start, node.end): node
        for root in reading.roots
        if root.node.height < _DEEP
        for node in _scalars(root.node)
    }
    places = [match.span(2) for match in _WORD.finditer(text)]
    return _Known(reading, words, [scalars.get(place) for place in places])


_DEEP: Final = 60  # levels; copying recurs


def _scalars(node: Node) -> Iterator[Node]:
    """The scalars in block style that are values."""
    if node.flow:
        return
    for _, child in node.children.values():
        if child.kind == "scalar":
            yield child
        else:
            yield from _scalars(child)


def _value(word: str) -> Any:
    return word[1:-1] if word[0] in "'\"" else resolve(word)


def _moved(reading: Reading, changed: Sequence[tuple[Node, str]]) -> Reading:
    """The reading of the text with these words, in their order, in the place of those nodes'.

    What stands before the first of them, or where nothing has moved, stays the same node.
    """
    shift, coming = 0, iter((*changed, (None, "")))
    target, word = next(coming)

    def copied(node: Node) -> Node:
        nonlocal shift, target, word
        if not shift and (target is None or node.end <= target.start):
            return node
        new = Node.__new__(Node)
        new.kind, new.line, new.column = node.kind, node.line, node.column
        new.flow, new.anchored = node.flow, node.anchored
        new.weight, new.height = node.weight, node.height
        new.start = node.start + shift
        new.data, new.children = node.data, node.children
        if node is target:
            new.data = _value(word)
            shift += len(word) - (node.end - node.start)
            target, word = next(coming)
        elif node.children:
            new.children = {
                name: (None if key is None else copied(key), copied(child))
                for name, (key, child) in node.children.items()
            }
            entries = new.children.items()
            if node.kind == "mapping":
                new.data = {name: child.data for name, (_, child) in entries}
            else:
                new.data = [child.data for _, (_, child) in entries]
        new.end = node.end + shift
        return new

    roots = []
    for root in reading.roots:
        body = root.body + shift
        node = copied(root.node)
        roots.append(Root(root.index, body, root.end + shift, node))
    return Reading(roots)

"""Cache of parsed YAML texts that differ only in the words at the ends of their lines.

The files of a package's variants have the same lines with other words. The parser reads
the first of such texts; for the next ones its nodes are copied and shifted to the
positions of their words. A word is exchanged only if it is one scalar wherever it
stands in block style. The rest of the text, the frame, must be equal character by
character.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from fanout.package.package_limits import ValueCounter
from fanout.package.yaml_nodes import DocumentRoot, ParsedYaml, YamlNode, parse_yaml
from fanout.package.yaml_scalars import resolve_scalar

_MAX_CACHED_TEXT: Final = 16 << 10  # characters of a text that is kept
# characters of all of them; their nodes take some thirty times as much
_MAX_CACHED_TOTAL: Final = 256 << 10

_LETTERS: Final = "[A-Za-z0-9_./@+-]"
_NAME: Final = f"[A-Za-z0-9_]{_LETTERS}*+(?::{_LETTERS}++)*+"
_WORD: Final = re.compile(
    rf"([:-] )({_NAME}(?: {_NAME})*+|'(?:{_LETTERS}|[ :])*+'|\"(?:{_LETTERS}|[ :])*+\")"
    r"(?=\n| +#|\Z)"
)


class _CachedText(NamedTuple):
    """Text that was parsed, and the nodes of its words.

    None where a word is not a whole value.
    """

    reading: ParsedYaml
    words: list[str]
    nodes: list[YamlNode | None]


class _FrameCache:
    """Cached texts by their frame. Only a memo: dropping it changes no result."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, ...], _CachedText | None] = {}
        self._size = 0

    def get(self, frame: tuple[str, ...]) -> _CachedText | None:
        """Return the cached text of this frame, or None if there is no reusable one."""
        return self._texts.get(frame)

    def store(
        self, frame: tuple[str, ...], text: str, reading: ParsedYaml, words: list[str]
    ) -> None:
        """Cache a parsed text, unless its frame is cached or was found not reusable."""
        if frame in self._texts:
            return
        # Everything is dropped at once: a memo that is this simple needs no order of use.
        # The next texts fill it again.
        if self._size + len(text) > _MAX_CACHED_TOTAL:
            self._texts.clear()
            self._size = 0
        self._texts[frame] = _cacheable_text(text, reading, words)
        self._size += len(text)


_frame_cache: Final = _FrameCache()


def read_cached(text: str, file: str, counter: ValueCounter | None = None) -> ParsedYaml:
    """Parse a YAML text like `parse_yaml`, reusing the nodes of a cached text of the same frame.

    The nodes are shared between results and must not be changed. Raises InvalidInput like
    `parse_yaml`.
    """
    if len(text) > _MAX_CACHED_TEXT:
        return parse_yaml(text, file, counter)
    pieces = _WORD.split(text)  # in turns: the text before a word, its delimiter, the word
    words = pieces[2::3]
    del pieces[2::3]
    # With the words deleted, every third piece is gone: two texts have equal frames
    # exactly when they differ in nothing but words.
    frame = tuple(pieces)
    cached = _frame_cache.get(frame)
    if cached is None:
        reading = parse_yaml(text, file, counter)
        _frame_cache.store(frame, text, reading, words)
        return reading
    replacements: list[tuple[YamlNode, str]] = []
    for node, cached_word, word in zip(cached.nodes, cached.words, words, strict=True):
        if word != cached_word:
            if node is None:
                return parse_yaml(text, file, counter)
            replacements.append((node, word))
    if counter is not None:
        counter.add(cached.reading.value_count, file)
    return (
        _substitute_words(cached.reading, replacements)
        if replacements
        else ParsedYaml(cached.reading.roots.copy(), value_count=cached.reading.value_count)
    )


def _cacheable_text(text: str, reading: ParsedYaml, words: list[str]) -> _CachedText | None:
    if reading.problems or "&" in text or "<<" in text:
        return None  # with an anchor or a merge, data is shared
    scalars = {
        (node.start, node.end): node
        for root in reading.roots
        if root.node.height < _MAX_HEIGHT
        for node in _iter_scalars(root.node)
    }
    word_spans = [match.span(2) for match in _WORD.finditer(text)]
    return _CachedText(reading, words, [scalars.get(span) for span in word_spans])


_MAX_HEIGHT: Final = 60  # levels; copying recurs


def _iter_scalars(node: YamlNode) -> Iterator[YamlNode]:
    """Yield the scalar values in block style below a node; keys are not among them."""
    if node.flow:
        return
    for _, value_node in node.children.values():
        if value_node.kind == "scalar":
            yield value_node
        else:
            yield from _iter_scalars(value_node)


def _word_value(word: str) -> Any:
    return word[1:-1] if word[0] in "'\"" else resolve_scalar(word)


def _substitute_words(
    reading: ParsedYaml, replacements: Sequence[tuple[YamlNode, str]]
) -> ParsedYaml:
    """Copy a parsed text with new words at some of its nodes.

    `replacements` pairs nodes with words, in the order of the text. Nodes before the first
    of them, and nodes whose position does not change, are shared with the original.
    """
    shift, remaining = 0, iter((*replacements, (None, "")))
    target, word = next(remaining)

    def copy_node(node: YamlNode) -> YamlNode:
        nonlocal shift, target, word
        # Nothing has moved before the first changed word, so these nodes are shared and not
        # copied. Nodes behind it are shared as soon as the lengths of the words cancel out.
        if not shift and (target is None or node.end <= target.start):
            return node
        # The constructor takes a parser's mark, which a copied node does not have.
        copy = YamlNode.__new__(YamlNode)
        copy.kind, copy.line, copy.column = node.kind, node.line, node.column
        copy.flow, copy.anchored = node.flow, node.anchored
        copy.weight, copy.height = node.weight, node.height
        copy.start = node.start + shift
        copy.data, copy.children = node.data, node.children
        if node is target:
            copy.data = _word_value(word)
            shift += len(word) - (node.end - node.start)
            target, word = next(remaining)
        elif node.children:
            copy.children = {
                name: (None if key is None else copy_node(key), copy_node(child))
                for name, (key, child) in node.children.items()
            }
            entries = copy.children.items()
            if node.kind == "mapping":
                copy.data = {name: child.data for name, (_, child) in entries}
            else:
                copy.data = [child.data for _, (_, child) in entries]
        copy.end = node.end + shift
        return copy

    roots = []
    for root in reading.roots:
        body = root.start + shift
        node = copy_node(root.node)
        roots.append(DocumentRoot(root.index, body, root.end + shift, node))
    return ParsedYaml(roots, value_count=reading.value_count)

"""How values are spelled in a file: their quotes and the comments on their lines.

Setters live in comments (`replicas: 3 # kpt-set: ${replicas}`), which the data does not have. They
are read from the text with the nodes' positions, and put there without touching anything else.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from fanout.errors import Bug
from fanout.package.edits import Path
from fanout.package.nodes import Node

_COMMENT: Final = re.compile(r"(?:(?P<gap>[ \t]+)#(?P<said>[^\r\n]*))?[ \t]*(?=\r?\n|\Z)")


class Spelling(NamedTuple):
    """How one value stands in the text."""

    text: str | None  # a scalar's own characters without quotes; None for maps and lists
    quoted: bool  # it is text whatever it looks like: in quotes, or a block of lines
    comment: str  # on its line, without `#` and the blanks around it
    comments: bool  # there is room for a comment
    aliased: bool = False  # it stands elsewhere, at an anchor


def spellings(text: str, root: Node) -> dict[Path, Spelling]:
    """The scalars and lists of a document, and maps in flow style, by path.

    What is behind an alias or merged with `<<` is spelled elsewhere and not among them.
    """
    return {path: _spelling(text, key, node) for path, key, node in _walk(root)}


def commented(text: str, root: Node, comments: Mapping[Path, str]) -> str:
    """The text with a comment on the line of each of these values, in place of any that is there.

    Only for paths whose `Spelling.comments` says that there is room.
    """
    places = []
    for path, key, node in _walk(root):
        if path in comments:
            room = _room(text, key, node)
            if room is None:
                raise Bug("there is no room for a comment", reason="EditFailed")
            new = f"{room['gap'] or ' '}# {comments[path]}"
            places.append((room.start(), room.end(), new))
    for start, end, new in sorted(places, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


def _walk(root: Node) -> Iterator[tuple[Path, Node | None, Node]]:
    todo: list[tuple[Path, Node | None, Node]] = [((), None, root)]
    while todo:
        path, key, node = todo.pop()
        if node.kind == "alias":
            continue
        if node.kind != "mapping" or node.flow:
            yield path, key, node
        children = [((*path, part), k, child) for part, (k, child) in node.children.items()]
        todo += reversed(children)


def _spelling(text: str, key: Node | None, node: Node) -> Spelling:
    own = text[node.start : node.end] if node.kind == "scalar" else None
    quoted = own is not None and isinstance(node.data, str) and own[:1] in tuple("'\"|>!&")
    if own is not None and (quoted or "\n" in own or own[:1] in ("!", "&")):
        own = node.data if isinstance(node.data, str) else None
    several = isinstance(node.data, str) and "\n" in node.data
    room = None if several else _room(text, key, node)
    comment = (room["said"] or "").strip() if room else ""
    return Spelling(own, quoted, comment, room is not None)


def _room(text: str, key: Node | None, node: Node) -> re.Match[str] | None:
    """Where a comment on the value stands or could: behind it, or behind the key of a list."""
    if node.kind == "scalar" or node.flow or not node.children:
        return _COMMENT.match(text, node.end)
    colon = text.find(":", key.end, node.start + 1) if key else -1
    return _COMMENT.match(text, colon + 1) if colon >= 0 else None

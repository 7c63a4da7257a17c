"""Spelling of values in the text: quotes, comments on their lines, and lines of elements.

Setters live in comments (`replicas: 3 # kpt-set: ${replicas}`), which the data does not
contain. They are read and written by the positions of the nodes, and no other text
changes. Elements of a List are extracted as documents of their own and put back; the
caller verifies the result by reading it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from fanout.errors import Bug
from fanout.package.field_edits import Path
from fanout.package.yaml_nodes import YamlNode

_COMMENT: Final = re.compile(r"(?:(?P<gap>[ \t]+)#(?P<said>[^\r\n]*))?[ \t]*(?=\r?\n|\Z)")


class ValueSpelling(NamedTuple):
    """Representation of one value in the text."""

    text: str | None  # a scalar's own characters without quotes; None for maps and lists
    quoted: bool  # in quotes or a block: a string whatever it looks like
    comment: str  # on its line, without `#` and surrounding spaces
    has_comment_room: bool  # a line comment can follow it
    aliased: bool = False  # its text is elsewhere, at an anchor


def read_spellings(text: str, root: YamlNode) -> dict[Path, ValueSpelling]:
    """Return the spelling of each scalar, list and flow-style map of a document, by path.

    Values behind an alias or merged with `<<` stand elsewhere in the text and are left out.
    """
    spellings = {}
    for path, key, node in _iter_values(root):
        characters = text[node.start : node.end] if node.kind == "scalar" else None
        is_text = isinstance(node.data, str)
        quoted = characters is not None and is_text and characters[:1] in tuple("'\"|>!&")
        # Quotes, tags, anchors and folded lines are syntax: there the text is what the parser made
        # of it.
        if characters and (quoted or "\n" in characters or characters[0] in "!&"):
            characters = node.data if is_text else None
        # A comment behind a literal block would become a line of its text.
        match = None if is_text and "\n" in node.data else _find_comment(text, key, node)
        comment = (match["said"] or "").strip() if match else ""
        spellings[path] = ValueSpelling(characters, quoted, comment, match is not None)
    return spellings


def add_comments(text: str, root: YamlNode, comments: Mapping[Path, str]) -> str:
    """Return the text with a comment on each value's line, replacing present comments.

    `comments` are texts without `#`, by path; only for paths with `ValueSpelling.has_comment_room`.
    """
    replacements = []
    for path, key, node in _iter_values(root):
        if path in comments:
            if (match := _find_comment(text, key, node)) is None:
                raise Bug("there is no room for a comment", reason="EditFailed")
            new = f"{match['gap'] or ' '}# {comments[path]}"
            replacements.append((match.start(), match.end(), new))
    # From the end of the text, so that the positions of the earlier ones stay valid.
    for start, end, new in sorted(replacements, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


def _iter_values(root: YamlNode) -> Iterator[tuple[Path, YamlNode | None, YamlNode]]:
    pending: list[tuple[Path, YamlNode | None, YamlNode]] = [((), None, root)]
    while pending:
        path, key, node = pending.pop()
        if node.kind == "alias":
            continue
        if node.kind != "mapping" or node.flow:
            yield path, key, node
        children = [((*path, part), k, child) for part, (k, child) in node.children.items()]
        pending += reversed(children)


def _find_comment(text: str, key: YamlNode | None, node: YamlNode) -> re.Match[str] | None:
    """Find the comment behind a scalar or a collection's key, or where one could stand."""
    if node.kind == "scalar" or node.flow or not node.children:
        return _COMMENT.match(text, node.end)
    colon = text.find(":", key.end, node.start + 1) if key else -1
    return _COMMENT.match(text, colon + 1) if colon >= 0 else None


def extract_element(text: str, node: YamlNode) -> str | None:
    """Return the lines of an element, dedented to the margin.

    None for an element in flow style, and for one that shares its first line with other values.
    """
    head = text[text.rfind("\n", 0, node.start) + 1 : node.start]
    if node.flow or node.kind != "mapping" or head.strip(" -"):
        return None
    end, column = _element_end(text, node), node.column
    first, *following = text[node.start : end].replace("\r\n", "\n").split("\n")
    dedented = [it[column:] if not it[:column].strip() else it.lstrip() for it in following]
    return "".join(f"{line}\n" for line in [first, *dedented])


def replace_elements(
    text: str, start: int, end: int, replacements: Sequence[tuple[YamlNode, str]]
) -> str:
    """Return the text from start to end, with LF line breaks and new element lines.

    `replacements` pairs each element's node with its new lines, which begin at the margin.
    """
    result, position = "", start
    for node, lines in sorted(replacements, key=lambda place: place[0].start):
        first, *following = lines.removesuffix("\n").split("\n")
        margin = " " * node.column
        result += text[position : node.start]
        result += "\n".join([first, *(f"{margin}{line}" if line else "" for line in following)])
        position = _element_end(text, node)
    return f"{result}{text[position:end]}".replace("\r\n", "\n")


def _element_end(text: str, node: YamlNode) -> int:
    """Return the end of the line on which the element's last value ends."""
    # To the end of the line and not of the value: its trailing comment belongs to the element.
    end = text.find("\n", node.end)
    end = len(text) if end < 0 else end
    return end - 1 if text[end - 1 : end] == "\r" else end

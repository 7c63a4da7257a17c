"""The lines of one element of a list, taken out as a text of its own, and put back.

Nothing is proved here: the caller reads the result and goes another way where it says something
else.
"""

from collections.abc import Sequence

from fanout.package.nodes import Node


def taken_out(text: str, node: Node) -> str | None:
    """The element's lines from the margin; None for what does not stand in lines of its own."""
    head = text[text.rfind("\n", 0, node.start) + 1 : node.start]
    if node.flow or node.kind != "mapping" or head.strip(" -"):
        return None
    first, *more = text[node.start : _end(text, node)].replace("\r\n", "\n").split("\n")
    return "".join(f"{line}\n" for line in [first, *(_moved(line, node.column) for line in more)])


def put_back(text: str, start: int, end: int, places: Sequence[tuple[Node, str]]) -> str:
    """The text from start to end with other lines for some elements; line breaks of one kind."""
    out, at = "", start
    for node, lines in sorted(places, key=lambda place: place[0].start):
        first, *more = lines.removesuffix("\n").split("\n")
        margin = " " * node.column
        out += text[at : node.start]
        out += "\n".join([first, *(f"{margin}{line}" if line else "" for line in more)])
        at = _end(text, node)
    return f"{out}{text[at:end]}".replace("\r\n", "\n")


def _end(text: str, node: Node) -> int:
    """The end of the line in which the element's last value ends."""
    end = text.find("\n", node.end)
    end = len(text) if end < 0 else end
    return end - 1 if text[end - 1 : end] == "\r" else end


def _moved(line: str, column: int) -> str:
    return line[column:] if not line[:column].strip() else line.lstrip()

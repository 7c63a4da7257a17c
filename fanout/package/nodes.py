"""Reading YAML text into nodes that know where they stand, with every guard against bad files.

libyaml yields events; the nodes are built from them without recursion, so that a file can be as
deep as it likes and is refused by our limit, not by the interpreter's. The data in a node is what
Kubernetes would see; aliases share it, so it must not be changed in place.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import yaml

from fanout.errors import InvalidInput
from fanout.package.invalid import MAX_DEPTH, MAX_EXPANDED, fault
from fanout.package.scalars import Scalar, key_text, resolve

Kind = Literal["scalar", "mapping", "sequence", "alias"]

TAG: Final = "tag:yaml.org,2002:"
MERGE: Final = "<<"
_CHECKS: Final[dict[str, Callable[[object], bool]]] = {
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_MARKER: Final = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_EMPTY: Final[dict[str | int, tuple["Node | None", "Node"]]] = {}  # shared, and never written to


class Node:
    """One value in the text; `end` is where its own last character ends, comments excluded."""

    __slots__ = (
        "anchored",
        "children",
        "column",
        "data",
        "end",
        "flow",
        "height",
        "kind",
        "line",
        "start",
        "weight",
    )

    def __init__(self, kind: Kind, mark: Any, end: int) -> None:
        self.kind = kind
        self.start: int = mark.index
        self.line: int = mark.line + 1
        self.column: int = mark.column
        self.end = end
        self.flow = False
        self.anchored = False
        self.data: Any = None
        self.weight = 1  # nodes in it, aliases expanded
        self.height = 0  # levels below it, aliases expanded
        # of a mapping by key, of a sequence by position; a sequence's items have no key node
        self.children: dict[str | int, tuple[Node | None, Node]] = _EMPTY


@dataclass(slots=True)
class Root:
    """A document that is not empty: its place in the file, its text and its top node."""

    index: int
    body: int  # its first character: behind the line of the marker, where nothing else is on it
    end: int
    node: Node


@dataclass(slots=True)
class Reading:
    """All documents of a text, and all that is wrong with it."""

    roots: list[Root] = field(default_factory=list)
    problems: list[InvalidInput] = field(default_factory=list)


class Refused(Exception):
    """The rest of a document cannot be read; carries the problem."""

    def __init__(self, problem: InvalidInput) -> None:
        super().__init__(str(problem))
        self.problem = problem


def read(text: str, file: str) -> Reading:
    """Read all documents. After a syntax error it goes on at the next document marker.

    Positions are right when there are no problems; lines always are.
    """
    reading = Reading()
    while True:
        try:
            _Composer(text, file, reading).run()
        except Refused as refused:
            reading.problems.append(refused.problem)
            text = _after_error(text, refused.problem.where.line)
            if not text:
                return reading
        else:
            return reading


def _after_error(text: str, line: int) -> str:
    """The documents behind the broken one, each still on its line; "" when there are none."""
    position = 0
    for _ in range(line - 1):
        position = text.find("\n", position) + 1 or len(text)
    # a marker on the very line is the next document unless the error is about what begins there
    begun = _MARKER.match(text, position) and not text[:position].strip()
    marker = _MARKER.search(text, position + 3 if begun else position)
    if marker is None:
        return ""
    return "\n" * text.count("\n", 0, marker.start()) + text[marker.start() :]


_MARK_INSIDE = "\n\ufeff"


def events(text: str, file: str) -> Iterator[Any]:
    """libyaml's events; raises Refused for broken syntax."""
    try:
        parser = yaml.CSafeLoader(text)
        while (event := parser.get_event()) is not None:
            yield event
    except yaml.YAMLError as error:
        raise Refused(_syntax_fault(error, file, text)) from None


def _syntax_fault(error: yaml.YAMLError, file: str, text: str) -> InvalidInput:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 if mark else 0
    if isinstance(error, yaml.reader.ReaderError):
        line = text.encode()[: error.position].count(b"\n") + 1
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "is no YAML"
    if "tab character" in problem or "cannot start any token" in problem:
        return fault(
            file, line, "a tab, or a character that begins nothing in YAML", "indent with spaces"
        )
    if mark and text[: mark.index].rstrip(" ").endswith(("'", '"')):
        sentence = "YAML syntax: something stands behind the quotes that end a value"
        return fault(file, line, sentence, "put the whole value in quotes of the other kind")
    # libyaml counts a mark inside the text as a column, and fails at the line behind it.
    if mark and (behind := text.rfind(_MARK_INSIDE, 0, mark.index + 1)) >= 0:
        line = text.count("\n", 0, behind) + 2
        sentence = "YAML syntax: a byte order mark stands inside the file"
        return fault(file, line, sentence, "remove it; only the first character can be one")
    context = getattr(error, "context", None)
    sentence = f"YAML syntax: {problem} {context}" if context else f"YAML syntax: {problem}"
    return fault(file, line, sentence, "correct the syntax")


def unknown_tag(file: str, line: int, tag: str) -> InvalidInput:
    """A tag that names neither text, number, boolean, null, list nor mapping."""
    shown = f"!!{tag.removeprefix(TAG)}" if tag.startswith(TAG) else tag
    return fault(file, line, f"the tag {shown} is not allowed", "write a plain value")


def tagged(text: str, tag: str, file: str, line: int) -> Scalar:
    """The value of a scalar with an explicit tag; raises Refused."""
    name = tag.removeprefix(TAG)
    if tag == "!" or (name == "str" and tag != name):
        return text
    check = _CHECKS.get(name) if tag.startswith(TAG) else None
    if check is None:
        raise Refused(unknown_tag(file, line, tag))
    value = plain(text, file, line)
    if not check(value):
        problem = f"{text!r} is no !!{name}"
        raise Refused(fault(file, line, problem, "correct the value, or drop the tag"))
    return float(value) if name == "float" and isinstance(value, int) else value


def plain(text: str, file: str, line: int) -> Scalar:
    """The value of a scalar without quotes; raises Refused."""
    try:
        return resolve(text)
    except ValueError:
        problem = f"Kubernetes has no number {text}"
        raise Refused(fault(file, line, problem, "quote it if it is text")) from None


class _Composer:
    """Builds the nodes of one run of the parser."""

    def __init__(self, text: str, file: str, reading: Reading) -> None:
        self.text = text
        self.file = file
        self.reading = reading
        self.stack: list[Node] = []
        self.keys: list[Node | None] = []  # the key that waits for its value, per open collection
        self.anchors: dict[str, Node] = {}
        self.top: Node | None = None
        self.added = 0  # nodes that aliases add to the document

    def run(self) -> None:
        """Read until the end; raises Refused at the first thing that cannot be read."""
        index = begin = 0
        for event in events(self.text, self.file):
            kind = event.__class__
            if kind is yaml.ScalarEvent:
                self.place(self.scalar(event))
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self.open(event, kind is yaml.MappingStartEvent)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.close(event)
            elif kind is yaml.AliasEvent:
                self.place(self.alias(event))
            elif kind is yaml.DocumentStartEvent:
                begin = self.body(event.end_mark.index) if event.explicit else begin
                self.anchors, self.top, self.added = {}, None, 0
            elif kind is yaml.DocumentEndEvent:
                if self.top is not None and self.top.data is not None:
                    end = event.start_mark.index
                    self.reading.roots.append(Root(index, begin, end, self.top))
                begin = event.end_mark.index
                index += 1

    def body(self, begin: int) -> int:
        """Where a document's own lines begin, given the end of its marker."""
        end = self.text.find("\n", begin)
        rest = self.text[begin:end].strip()
        return end + 1 if end >= 0 and (not rest or rest.startswith("#")) else begin

    def fault(self, node: Node, problem: str, remedy: str) -> InvalidInput:
        return fault(self.file, node.line, problem, remedy)

    def scalar(self, event: Any) -> Node:
        node = Node("scalar", event.start_mark, event.end_mark.index)
        if event.style in ("|", ">"):  # its end mark is behind the blank lines that follow
            while self.text[node.end - 1] in "\r\n":
                node.end -= 1
        try:
            node.data = self.value(node, event)
        except Refused as refused:
            self.reading.problems.append(refused.problem)
        if event.anchor is not None:
            self.anchor(event.anchor, node)
        return node

    def value(self, node: Node, event: Any) -> object:
        text: str = event.value
        if event.tag is not None:
            return tagged(text, event.tag, self.file, node.line)
        if not event.implicit[0]:
            return text
        if text == MERGE and self.awaits_key():
            node.kind = "alias"  # what is merged is no entry of this mapping's own
            return MERGE
        return plain(text, self.file, node.line)

    def awaits_key(self) -> bool:
        return bool(self.stack) and self.stack[-1].kind == "mapping" and self.keys[-1] is None

    def open(self, event: Any, is_mapping: bool) -> None:
        node = Node("mapping" if is_mapping else "sequence", event.start_mark, 0)
        node.flow = bool(event.flow_style)
        node.data = {} if is_mapping else []
        node.children = {}
        if event.tag not in (None, "!", TAG + ("map" if is_mapping else "seq")):
            self.reading.problems.append(unknown_tag(self.file, node.line, event.tag))
        if len(self.stack) >= MAX_DEPTH:
            raise Refused(self.fault(node, f"more than {MAX_DEPTH} levels deep", "flatten it"))
        if event.anchor is not None:
            self.anchor(event.anchor, node)
        self.stack.append(node)
        self.keys.append(None)

    def close(self, event: Any) -> None:
        node = self.stack.pop()
        self.keys.pop()
        if node.flow or not node.children:
            node.end = event.end_mark.index
        else:
            node.end = next(reversed(node.children.values()))[1].end
        if node.kind == "mapping" and MERGE in node.children:
            self.merge(node)
        self.place(node)

    def merge(self, node: Node) -> None:
        """What `<<` names gives the keys that the mapping has not; earlier sources win."""
        key, value = node.children[MERGE]
        if key is None or key.kind != "alias":
            return  # an ordinary key in quotes
        sources = value.data if isinstance(value.data, list) else [value.data]
        if not all(isinstance(source, dict) for source in sources):
            problem = self.fault(value, "<< merges something that is no mapping", "write it out")
            self.reading.problems.append(problem)
            return
        node.data.pop(MERGE, None)
        for source in sources:
            node.data = {**source, **node.data}

    def anchor(self, name: str, node: Node) -> None:
        node.anchored = True
        self.anchors[name] = node

    def alias(self, event: Any) -> Node:
        node = Node("alias", event.start_mark, event.end_mark.index)
        name = event.anchor
        target = self.anchors.get(name)
        if target is None:
            raise Refused(
                self.fault(node, f"the alias *{name} has no anchor", "define the anchor first")
            )
        if target in self.stack:
            raise Refused(
                self.fault(node, f"the alias *{name} stands inside its own anchor", "write it out")
            )
        self.added += target.weight
        if self.added > MAX_EXPANDED or len(self.stack) + target.height > MAX_DEPTH:
            problem = f"aliases make the document larger than {MAX_EXPANDED:,} values"
            if self.added <= MAX_EXPANDED:
                problem = f"aliases make the document more than {MAX_DEPTH} levels deep"
            raise Refused(self.fault(node, problem, "write the object out with fewer aliases"))
        node.weight, node.height, node.data = target.weight, target.height, target.data
        node.children = target.children
        return node

    def place(self, node: Node) -> None:
        """Put a finished node into the collection that is open."""
        if not self.stack:
            self.top = node
            return
        parent = self.stack[-1]
        if parent.kind == "mapping" and self.keys[-1] is None:
            self.keys[-1] = node
            return
        parent.weight += node.weight
        if node.height >= parent.height:
            parent.height = node.height + 1
        if parent.kind == "sequence":
            parent.children[len(parent.children)] = (None, node)
            parent.data.append(node.data)
        else:
            key, self.keys[-1] = self.keys[-1], None
            assert key is not None
            self.place_entry(parent, key, node)

    def key_name(self, key: Node) -> str | None:
        """A key as it stands in the text, `on` and `0755` too; None for what can be no key."""
        if isinstance(key.data, str) or key.data is None:
            return key.data
        if isinstance(key.data, dict | list) or key.kind == "alias":
            return None if isinstance(key.data, dict | list) else key_text(key.data)
        # numbers and booleans have no blanks, but may have an anchor or a tag before them
        return self.text[key.start : key.end].split()[-1]

    def sibling(self, parent: Node, key: Node, name: str) -> Node | None:
        """The key that is there already, or one that readers of YAML 1.1 take for the same."""
        if name in parent.children:
            return parent.children[name][0]
        if isinstance(key.data, str) and name not in ("true", "false"):
            return None
        meaning = key_text(key.data)
        there = (one for one, _ in parent.children.values() if one is not None)
        return next((one for one in there if key_text(one.data) == meaning), None)

    def place_entry(self, parent: Node, key: Node, node: Node) -> None:
        name = self.key_name(key)
        if name is None:
            problem = self.fault(key, "a mapping has a key that is no text", "quote the key")
            if key.kind == "mapping":  # {{ name }}, most often
                sentence = "braces begin a mapping, and in {{ one would be the key of another"
                problem = self.fault(key, sentence, "put the whole value in quotes")
            self.reading.problems.append(problem)
        elif (first := self.sibling(parent, key, name)) is not None:
            sentence = f"the key {name} is already on line {first.line}"
            problem = self.fault(key, sentence, "remove one")
            self.reading.problems.append(problem)
        else:
            parent.children[name] = (key, node)
            parent.data[name] = node.data

"""YAML text parsed into nodes with positions, and the guards against invalid files.

libyaml yields events; the nodes are built from them without recursion, so that a file
of any depth is refused by the limit here and not by the interpreter's. A node's data is
what Kubernetes would read; aliases share it, so it must not be changed in place.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import yaml

from fanout.api.reasons import Reason
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.package_limits import ValueCounter
from fanout.package.yaml_scalars import Scalar, resolve_scalar, yaml11_key

BOM: Final = b"\xef\xbb\xbf"
MAX_FILE: Final = 16 << 20  # bytes of one manifest
MAX_OBJECTS: Final = 256 << 20  # bytes of a file of cluster objects
MAX_DEPTH: Final = 100  # the deepest schemas of CRDs have about 50 levels
MAX_EXPANDED: Final = 200_000  # nodes that aliases may add to one document


class InvalidManifest(InvalidInput):
    """File that cannot be read as manifests. `problems` lists every problem that was found."""

    def __init__(self, problems: Sequence[InvalidInput]) -> None:
        unique = {(p.where, p.problem): p for p in problems}
        problems = [unique[key] for key in sorted(unique)]
        first_problem = problems[0]
        super().__init__(
            first_problem.problem,
            reason=Reason.INVALID_MANIFEST,
            remedy=first_problem.remedy,
            where=first_problem.where,
        )
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))

    def __reduce__(self) -> tuple[type["InvalidManifest"], tuple[tuple[InvalidInput, ...]]]:
        """Copy by the constructor's argument, as the message alone cannot rebuild it."""
        return InvalidManifest, (self.problems,)


def manifest_problem(file: str, line: int, problem: str, remedy: str) -> InvalidInput:
    """Build the error for one problem of a file."""
    return InvalidInput(
        problem,
        reason=Reason.INVALID_MANIFEST,
        remedy=remedy,
        where=ErrorLocation(file=file, line=line),
    )


def single_problem(file: str, line: int, problem: str, remedy: str) -> InvalidManifest:
    """Build the error for a file with one problem."""
    return InvalidManifest([manifest_problem(file, line, problem, remedy)])


def decode(data: bytes, file: str, limit: int) -> str:
    """Return the file's text without its byte order mark.

    `limit` is in bytes. Raises InvalidManifest for a file that is too large, is not UTF-8,
    or contains NUL or half a surrogate pair.
    """
    if len(data) > limit:
        problem = f"the file has {len(data):,} bytes, more than {limit:,}"
        raise single_problem(file, 0, problem, "split it into several files")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte {error.start + 1} is not UTF-8"
        raise single_problem(file, line, problem, "save the file as UTF-8") from None
    return text.removeprefix("\ufeff")


Kind = Literal["scalar", "mapping", "sequence", "alias"]

TAG: Final = "tag:yaml.org,2002:"
MERGE: Final = "<<"
_TAG_CHECKS: Final[dict[str, Callable[[object], bool]]] = {
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_MARKER: Final = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NO_LINE_BREAK: Final = re.compile(r"[^\n]")
# Shared by all nodes without children, and never written to.
_NO_CHILDREN: Final[dict[str | int, tuple["YamlNode | None", "YamlNode"]]] = {}


class YamlNode:
    """One value in the text. `end` is the end of its own last character, comments excluded."""

    __slots__ = (
        "anchored", "children", "column", "data", "end", "flow", "height", "kind", "line", "start",
        "weight",
    )  # fmt: skip

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
        self.children: dict[str | int, tuple[YamlNode | None, YamlNode]] = _NO_CHILDREN


@dataclass(slots=True)
class DocumentRoot:
    """Document that is not empty: its index in the file, its text range and its top node."""

    index: int
    start: int  # its first character: behind the line of the marker, where nothing else is on it
    end: int
    node: YamlNode
    has_problems: bool = False


@dataclass(slots=True)
class ParsedYaml:
    """All documents of a text, and all problems that were found in it."""

    roots: list[DocumentRoot] = field(default_factory=list)
    problems: list[InvalidInput] = field(default_factory=list)
    value_count: int = 0  # aliases count once


class RefusedDocument(Exception):
    """The rest of a document cannot be parsed; carries the problem."""

    def __init__(self, file: str, line: int, problem: str, remedy: str) -> None:
        self.problem = manifest_problem(file, line, problem, remedy)
        super().__init__(str(self.problem))


def parse_yaml(text: str, file: str, counter: ValueCounter | None = None) -> ParsedYaml:
    """Parse all documents.

    After a syntax error, parsing resumes at the next document marker. Lines and positions
    are those of the text, also behind an error. Raises InvalidInput as soon as the file
    has more values than `counter` has left.
    """
    reading = ParsedYaml()
    while True:
        try:
            _Composer(text, file, reading, counter).run()
        except RefusedDocument as refused:
            reading.problems.append(refused.problem)
            # The parser cannot be resumed. A user with a bad document still wants the errors of the
            # others, so the rest is parsed again, with spaces in front that keep lines and
            # positions. A marker on the very line is the next document unless the error is about
            # what begins there.
            position = 0
            for _ in range(refused.problem.where.line - 1):
                position = text.find("\n", position) + 1 or len(text)
            starts_at_error = _MARKER.match(text, position) and not text[:position].strip()
            marker = _MARKER.search(text, position + 3 if starts_at_error else position)
            if marker is None:
                break
            text = _NO_LINE_BREAK.sub(" ", text[: marker.start()]) + text[marker.start() :]
        else:
            break
    if counter is not None:
        counter.add(reading.value_count, file)
    return reading


_BOM_INSIDE = "\n\ufeff"


def parse_events(text: str, file: str) -> Iterator[Any]:
    """Yield libyaml's events. Raises RefusedDocument for a syntax error."""
    try:
        parser = yaml.CSafeLoader(text)
        while (event := parser.get_event()) is not None:
            yield event
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = mark.line + 1 if mark else 0
        if isinstance(error, yaml.reader.ReaderError):
            line = text.encode()[: error.position].count(b"\n") + 1
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "is no YAML"
        context = getattr(error, "context", None)
        sentence = f"YAML syntax: {problem} {context}" if context else f"YAML syntax: {problem}"
        remedy = "correct the syntax"
        if "tab character" in problem or "cannot start any token" in problem:
            sentence = "a tab, or a character that cannot start a YAML token"
            remedy = "indent with spaces"
        elif mark and text[: mark.index].rstrip(" ").endswith(("'", '"')):
            sentence = "YAML syntax: text after the closing quote of a value"
            remedy = "quote the whole value with the other kind of quotes"
        # libyaml counts a mark inside the text as a column, and fails at the line behind it.
        elif mark and (bom_position := text.rfind(_BOM_INSIDE, 0, mark.index + 1)) >= 0:
            line = text.count("\n", 0, bom_position) + 2
            sentence = "YAML syntax: byte order mark inside the file"
            remedy = "remove it; it may only be the first character"
        raise RefusedDocument(file, line, sentence, remedy) from None


def unknown_tag(tag: str) -> tuple[str, str]:
    """Return problem and remedy of a tag that names no JSON type."""
    shown = f"!!{tag.removeprefix(TAG)}" if tag.startswith(TAG) else tag
    return f"the tag {shown} is not allowed", "write a plain value"


def tagged_value(text: str, tag: str, file: str, line: int) -> Scalar:
    """Return the value of a scalar with an explicit tag. Raises RefusedDocument."""
    name = tag.removeprefix(TAG)
    if tag == "!" or (name == "str" and tag != name):
        return text
    check = _TAG_CHECKS.get(name) if tag.startswith(TAG) else None
    if check is None:
        raise RefusedDocument(file, line, *unknown_tag(tag))
    value = plain_value(text, file, line)
    if not check(value):
        problem = f"{text!r} is not a valid !!{name}"
        raise RefusedDocument(file, line, problem, "correct the value, or remove the tag")
    return float(value) if name == "float" and isinstance(value, int) else value


def plain_value(text: str, file: str, line: int) -> Scalar:
    """Return the value of a scalar without quotes. Raises RefusedDocument."""
    try:
        return resolve_scalar(text)
    except ValueError:
        problem = f"Kubernetes does not support the number {text}"
        raise RefusedDocument(file, line, problem, "quote it if it is a string") from None


class _Composer:
    """Builder of the nodes for one run of the parser."""

    def __init__(
        self, text: str, file: str, reading: ParsedYaml, counter: ValueCounter | None
    ) -> None:
        self.text = text
        self.file = file
        self.reading = reading
        self.counter = counter
        self.max_values = sys.maxsize if counter is None else counter.limit - counter.count
        self.stack: list[YamlNode] = []
        # the key that waits for its value, per open collection
        self.keys: list[YamlNode | None] = []
        self.anchors: dict[str, YamlNode] = {}
        self.top: YamlNode | None = None
        self.expanded = 0  # nodes that aliases add to the document
        self.earlier_problems = 0  # those of the documents before this one

    def run(self) -> None:
        """Parse to the end. Raises RefusedDocument at the first thing that cannot be parsed."""
        index = begin = 0
        for event in parse_events(self.text, self.file):
            if (kind := event.__class__) is yaml.ScalarEvent:
                self.place_node(self.build_scalar(event))
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self.open_collection(event, kind is yaml.MappingStartEvent)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.close_collection(event)
            elif kind is yaml.AliasEvent:
                self.place_node(self.build_alias(event))
            elif kind is yaml.DocumentStartEvent:
                if event.explicit:  # behind the marker, or its line where nothing else is on it
                    begin = event.end_mark.index
                    end = self.text.find("\n", begin)
                    if end >= 0 and self.text[begin:end].strip()[:1] in ("", "#"):
                        begin = end + 1
                self.anchors, self.top, self.expanded = {}, None, 0
                self.earlier_problems = len(self.reading.problems)
            elif kind is yaml.DocumentEndEvent:
                if self.top is not None and self.top.data is not None:
                    end = event.start_mark.index
                    has_problems = len(self.reading.problems) > self.earlier_problems
                    root = DocumentRoot(index, begin, end, self.top, has_problems)
                    self.reading.roots.append(root)
                begin = event.end_mark.index
                index += 1

    def report(self, node: YamlNode, problem: str, remedy: str) -> None:
        """Add a problem of a document whose other nodes are built all the same."""
        self.reading.problems.append(manifest_problem(self.file, node.line, problem, remedy))

    def build_scalar(self, event: Any) -> YamlNode:
        node = YamlNode("scalar", event.start_mark, event.end_mark.index)
        if event.style in ("|", ">"):  # its end mark is behind the blank lines that follow
            # Otherwise an edit of the next entry would be taken for one that touches this text.
            while self.text[node.end - 1] in "\r\n":
                node.end -= 1
        text: str = event.value
        is_merge_key = text == MERGE and self.stack and self.stack[-1].kind == "mapping"
        try:
            if event.tag is not None:
                node.data = tagged_value(text, event.tag, self.file, node.line)
            elif not event.implicit[0]:
                node.data = text
            elif is_merge_key and not self.keys[-1]:
                node.kind = "alias"  # what is merged is no entry of this mapping's own
                node.data = MERGE
            else:
                node.data = plain_value(text, self.file, node.line)
        except RefusedDocument as refused:
            self.reading.problems.append(refused.problem)
        if event.anchor is not None:
            self.register_anchor(event.anchor, node)
        return node

    def open_collection(self, event: Any, is_mapping: bool) -> None:
        node = YamlNode("mapping" if is_mapping else "sequence", event.start_mark, 0)
        node.flow = bool(event.flow_style)
        node.data = {} if is_mapping else []
        node.children = {}
        if event.tag not in (None, "!", TAG + ("map" if is_mapping else "seq")):
            self.report(node, *unknown_tag(event.tag))
        if len(self.stack) >= MAX_DEPTH:
            problem = f"more than {MAX_DEPTH} levels deep"
            raise RefusedDocument(self.file, node.line, problem, "flatten it")
        if event.anchor is not None:
            self.register_anchor(event.anchor, node)
        self.stack.append(node)
        self.keys.append(None)

    def close_collection(self, event: Any) -> None:
        node = self.stack.pop()
        self.keys.pop()
        # libyaml's end event of a block collection is behind the comments and blank lines
        # that follow it.
        if node.flow or not node.children:
            node.end = event.end_mark.index
        else:
            node.end = next(reversed(node.children.values()))[1].end
        if node.kind == "mapping" and MERGE in node.children:
            self.merge_keys(node)
        self.place_node(node)

    def merge_keys(self, node: YamlNode) -> None:
        """Add the keys of the mappings that `<<` names; own keys win, then earlier sources."""
        key, value = node.children[MERGE]
        if key is None or key.kind != "alias":
            return  # an ordinary key in quotes
        sources = value.data if isinstance(value.data, list) else [value.data]
        if not all(isinstance(source, dict) for source in sources):
            self.report(value, "<< merges a value that is not a mapping", "write it out")
            return
        # Kubernetes never sees `<<`, so it is removed from the data; the node keeps it as a child.
        node.data.pop(MERGE, None)
        for source in sources:
            node.data = {**source, **node.data}

    def register_anchor(self, name: str, node: YamlNode) -> None:
        node.anchored = True
        self.anchors[name] = node

    def build_alias(self, event: Any) -> YamlNode:
        node = YamlNode("alias", event.start_mark, event.end_mark.index)
        name = event.anchor
        if (target := self.anchors.get(name)) is None:
            problem = f"the alias *{name} has no anchor"
            raise RefusedDocument(self.file, node.line, problem, "define the anchor first")
        if target in self.stack:
            problem = f"the alias *{name} is inside its own anchor"
            raise RefusedDocument(self.file, node.line, problem, "write it out")
        # Counted before anything is expanded: a few nested aliases can stand for billions
        # of values.
        self.expanded += target.weight
        if self.expanded > MAX_EXPANDED or len(self.stack) + target.height > MAX_DEPTH:
            problem = f"aliases make the document larger than {MAX_EXPANDED:,} values"
            if self.expanded <= MAX_EXPANDED:
                problem = f"aliases make the document more than {MAX_DEPTH} levels deep"
            raise RefusedDocument(
                self.file, node.line, problem, "write the object out with fewer aliases"
            )
        node.weight, node.height, node.data = target.weight, target.height, target.data
        # Children are shared and keep their positions at the anchor, so writers must treat
        # an alias as one unit and never patch inside it.
        node.children = target.children
        return node

    def place_node(self, node: YamlNode) -> None:
        """Add a finished node to the collection that is open."""
        if self.stack and self.stack[-1].kind == "mapping" and self.keys[-1] is None:
            self.keys[-1] = node
            return
        self.reading.value_count += 1
        # Counted here and not when the file is read: a collection in the package's byte limit
        # takes fifty times its bytes as nodes.
        if self.reading.value_count > self.max_values:
            assert self.counter is not None, "the number is limited"
            raise self.counter.limit_error(self.file)
        if not self.stack:
            self.top = node
            return
        parent = self.stack[-1]
        # Size and height are summed up while nodes are placed, so that aliases can be
        # refused before their expansion costs anything.
        parent.weight += node.weight
        if node.height >= parent.height:
            parent.height = node.height + 1
        if parent.kind == "sequence":
            parent.children[len(parent.children)] = (None, node)
            parent.data.append(node.data)
        else:
            key, self.keys[-1] = self.keys[-1], None
            assert key is not None
            if node.start == node.end and ":" not in self.text[key.end : node.start]:
                # `? key` alone: libyaml puts its value where the next token begins.
                node.start = node.end = key.end
            if (name := self.key_name(key)) is None:
                if key.kind == "mapping":  # `{{ name }}` of a template, most often
                    problem = "{{ without quotes is a mapping inside a mapping"
                    self.report(key, problem, "quote the whole value")
                else:
                    self.report(key, "a mapping has a key that is not a string", "quote the key")
            elif (first := self.find_duplicate(parent, key, name)) is not None:
                self.report(key, f"the key {name} is already on line {first.line}", "remove one")
            else:
                parent.children[name] = (key, node)
                parent.data[name] = node.data

    def key_name(self, key: YamlNode) -> str | None:
        """Return a key as the text spells it, `on` and `0755` too; None if it cannot be a key."""
        if isinstance(key.data, str) or key.data is None:
            return key.data
        if isinstance(key.data, dict | list) or key.kind == "alias":
            return None if isinstance(key.data, dict | list) else yaml11_key(key.data)
        # numbers and booleans have no spaces, but may have an anchor or a tag before them
        return self.text[key.start : key.end].split()[-1]

    def find_duplicate(self, parent: YamlNode, key: YamlNode, name: str) -> YamlNode | None:
        """Return the node of an equal key, or of one that equals it in YAML 1.1."""
        if name in parent.children:
            return parent.children[name][0]
        if isinstance(key.data, str) and name not in ("true", "false"):
            return None
        meaning = yaml11_key(key.data)
        key_nodes = (key_node for key_node, _ in parent.children.values() if key_node is not None)
        return next(
            (key_node for key_node in key_nodes if yaml11_key(key_node.data) == meaning), None
        )

"""A YAML or JSON file as a value that keeps its bytes.

Upstream is parsed once; its edits are then made thousands of times with other values. So the places
are looked up and the result is checked once per *shape* of edits (documents, paths, kinds of
values), and after that an edit only joins text.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from fanout.api.reasons import Reason
from fanout.errors import Bug, InvalidInput, Where
from fanout.package import textpatch
from fanout.package.alike import read_alike
from fanout.package.blocks import put_back, taken_out
from fanout.package.dump import dump
from fanout.package.edits import (
    MISSING,
    REMOVE,
    BlockedPath,
    Edit,
    Path,
    applied,
    get,
    independent,
    same,
    show,
    with_value,
)
from fanout.package.invalid import BOM, MAX_FILE, InvalidManifest, decode
from fanout.package.jsontext import edited_json, is_json, json_line, read_json
from fanout.package.nodes import Node, Root
from fanout.package.roundtrip import CannotEdit, round_trip
from fanout.package.sharing import edited_where_shared
from fanout.package.spelling import Spelling, commented, spellings
from fanout.values import frozen

_MOST_SHAPES: Final = 1000  # remembered per file


@frozen
class Document:
    """One document that is not empty. `value` is shared and must not be changed in place."""

    index: int  # its place in the file, empty documents counted
    value: Any
    file: str = field(repr=False)
    _text: str = field(repr=False)
    root: Root | None = field(repr=False)  # None: the file is JSON
    _spellings: dict[Path, Mapping[Path, Spelling]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def path(self) -> Path:
        """Where the object is in its document: it is all of it."""
        return ()

    def spellings(self, below: Path = ()) -> Mapping[Path, Spelling]:
        """How the values below a path stand in the text, by their paths from there; nothing for
        JSON, which has no comments."""
        if self.root is None:
            return {}
        found = self._spellings.get(below)
        if found is None:
            found = self._spellings[below] = spellings(self._text, self._node(below))
        return found

    def own_text(self) -> str:
        """Its lines, with line breaks of one kind; not for JSON."""
        root = _root(self)
        return self._text[root.body : root.end].replace("\r\n", "\n")

    def part_text(self, path: Path) -> str | None:
        """The lines of one object in it, as if they were a document; None where it has no lines
        that say the same alone."""
        text = taken_out(self._text, self._node(path)) if self.root is not None else None
        alone = None if text is None else _only(text, self.file)
        return text if same(alone, get(self.value, path)) else None

    def with_parts(self, texts: Mapping[Path, str]) -> str | None:
        """Its lines with other ones for some objects in it; None where that would say something
        else than they do. `part_text` must have had an answer for each."""
        root, wanted = _root(self), self.value
        places = [(self._node(path), text) for path, text in texts.items()]
        result = put_back(self._text, root.body, root.end, places)
        for path, text in texts.items():
            wanted = with_value(wanted, path, _only(text, self.file))
        return result if same(_only(result, self.file), wanted) else None

    def _node(self, path: Path) -> Node:
        node = _root(self).node
        for part in path:
            _, node = node.children[part]
        return node

    def written_key(self, path: Path) -> str:
        """The last key of the path with its quotes; "" where it is not there, and for JSON."""
        node, key = self.root.node if self.root else None, None
        for part in path:
            if node is None or part not in node.children:
                return ""
            key, node = node.children[part]
        return self._text[key.start : key.end] if key else ""

    def line_of(self, path: Path) -> int:
        """The line, from 1, of the deepest value on the path that is there."""
        if self.root is None:
            return json_line(self._text, path)
        node = self.root.node
        line = node.line
        for part in path:
            if part not in node.children:
                break
            key, node = node.children[part]
            line = (key or node).line
        return line


class _Plan(NamedTuple):
    pieces: list[bytes]
    writes: list[textpatch.Write]


class _Shape:
    """What is known of the edits with certain paths: the present values, and a plan by kinds."""

    __slots__ = ("plans", "present")

    def __init__(self, present: list[Any]) -> None:
        self.present = present
        self.plans: dict[str, _Plan | None] = {}  # None: only the slow way is right


class Manifest:
    """A file of documents; it never changes. `Manifest.parse` makes it."""

    def __init__(self, data: bytes, text: str, file: str, documents: Sequence[Document]) -> None:
        self.data = data
        self.file = file
        self.documents = tuple(documents)
        self._text = text
        self._by_index = {document.index: document for document in documents}
        self._shapes: dict[tuple[tuple[int, Path], ...], _Shape] = {}

    @classmethod
    def parse(cls, data: bytes, file: str) -> "Manifest":
        """Read a file; `file` is for messages, and a name in `.json` says that it is JSON.

        Raises InvalidManifest with all problems: not UTF-8, syntax, tabs, duplicate keys, tags,
        keys that are no text, numbers that Kubernetes does not have, and what exceeds the limits.
        """
        text, _ = decode(data, file, MAX_FILE)
        if is_json(file):
            value = read_json(text, file)
            return cls(
                data, text, file, () if value is None else (Document(0, value, file, text, None),)
            )
        reading = read_alike(text, file)
        if reading.problems:
            raise InvalidManifest(reading.problems)
        return cls(data, text, file, [_document(root, file, text) for root in reading.roots])

    def document(self, index: int) -> Document:
        """The document at a place of the file; Bug when it is empty or there is none."""
        if index not in self._by_index:
            raise Bug(f"{self.file} has no document {index}", reason="NoDocument")
        return self._by_index[index]

    def edited(self, edits: Sequence[Edit]) -> bytes:
        """The file's bytes after the edits, made in their order.

        What they do not touch stays byte for byte; edits that change nothing answer the same bytes.
        The result always reads as the data would be after the same edits. Where text cannot be
        patched, the document's layout may change; where anchors stand in the way, its comments may
        go. Raises InvalidInput where a path leads through a scalar or a value is no JSON data.
        """
        values = [edit[2] for edit in edits]
        places = tuple([edit[:2] for edit in edits])
        shape = self._shapes.get(places)
        if shape is None:
            shape = self._remember(places)
        kinds = "".join(map(_kind, values, shape.present))
        plan = shape.plans.get(kinds)
        if plan is None:
            if kinds not in shape.plans:
                return self._first(shape, kinds, edits)
            return self._slowly(edits)
        return textpatch.fill(plan.pieces, plan.writes, values)

    def commented(self, comments: Mapping[int, Mapping[Path, str]]) -> bytes:
        """The file's bytes with comments on the lines of values, by document and path.

        Each must have room for one (`Spelling.comments`).
        """
        text = self._text
        for index in sorted(comments, reverse=True):
            text = commented(text, _root(self.document(index)).node, comments[index])
        return self._mark() + text.encode()

    def without(self, indices: Collection[int]) -> bytes | None:
        """The file's bytes without these documents; None when no other one is left in it."""
        kept = [document for document in self.documents if document.index not in indices]
        if not kept:
            return None
        if len(kept) == len(self.documents):
            return self.data
        before = {later.index: this for this, later in pairwise(self.documents)}
        head = _root(self.documents[0]).body
        pieces = [self._text[:head], self._part(kept[0])]
        for document in kept[1:]:
            gap = _root(before[document.index]).end  # the markers between the two stay as they are
            pieces += [self._text[gap : _root(document).body], self._part(document)]
        if kept[-1] is self.documents[-1]:
            pieces.append(self._text[_root(kept[-1]).end :])
        result = self._mark() + "".join(pieces).encode()
        if not same([d.value for d in Manifest.parse(result, self.file).documents],
                    [d.value for d in kept]):  # fmt: skip
            raise Bug(f"{self.file} cannot be taken apart", reason="EditFailed")
        return result

    def _part(self, document: Document) -> str:
        root = _root(document)
        return self._text[root.body : root.end]

    def _remember(self, places: tuple[tuple[int, Path], ...]) -> _Shape:
        present = [get(self.document(document).value, path) for document, path in places]
        if len(self._shapes) >= _MOST_SHAPES:
            self._shapes.clear()
        shape = self._shapes[places] = _Shape(present)
        return shape

    def _first(self, shape: _Shape, kinds: str, edits: Sequence[Edit]) -> bytes:
        """Edit for the first time in this shape: make the plan, and trust it if it is right."""
        if not kinds.strip(textpatch.KEEP):
            shape.plans[kinds] = _Plan([self.data], [])
            return self.data
        wanted = self._wanted(edits)
        if not is_json(self.file) and independent(edits):
            try:
                plan = self._plan(edits, kinds)
            except textpatch.CannotPatch:
                pass
            else:
                result = textpatch.fill(plan.pieces, plan.writes, [edit.value for edit in edits])
                if self._is(result, wanted):
                    shape.plans[kinds] = plan
                    return result
        shape.plans[kinds] = None
        return self._slowly(edits)

    def _plan(self, edits: Sequence[Edit], kinds: str, *, shared: bool = False) -> _Plan:
        spans: list[textpatch.Span] = []
        by_document: dict[int, list[textpatch.Wanted]] = {}
        for number, (edit, kind) in enumerate(zip(edits, kinds, strict=True)):
            if kind != textpatch.KEEP:
                wants = by_document.setdefault(edit.document, [])
                wants.append(textpatch.Wanted(number, edit.path, kind))
        for index, wants in by_document.items():
            root = _root(self._by_index[index])
            spans += textpatch.plan(self._text, root.node, wants, shared=shared)
        pieces, writes = textpatch.cut(self._text, spans)
        pieces[0] = self._mark() + pieces[0]
        return _Plan(pieces, writes)

    def _mark(self) -> bytes:
        """The byte order mark, if the file begins with one."""
        return BOM if self.data.startswith(BOM) else b""

    def _wanted(self, edits: Sequence[Edit]) -> dict[int, Any]:
        """The data of all documents after the edits."""
        wanted = {document.index: document.value for document in self.documents}
        for edit in edits:
            try:
                wanted[edit.document] = applied(wanted[edit.document], [edit])
            except BlockedPath as blocked:
                line = self._by_index[edit.document].line_of(edit.path[: blocked.depth])
                raise InvalidInput(
                    blocked.sentence,
                    reason=Reason.INVALID_MANIFEST,
                    remedy="correct the file, or do not set this field",
                    where=Where(field=show(edit.path), file=self.file, line=line),
                ) from None
        return wanted

    def _is(self, result: bytes, wanted: dict[int, Any]) -> bool:
        """Does the text read as this data?"""
        return same(self._read(result), wanted)

    def _read(self, result: bytes) -> dict[int, Any] | None:
        """The data of a text that an edit came to; None where it cannot be read."""
        reading = read_alike(result.decode().removeprefix("\ufeff"), self.file)
        found = {root.index: root.node.data for root in reading.roots}
        return None if reading.problems else found

    def _slowly(self, edits: Sequence[Edit]) -> bytes:
        wanted = self._wanted(edits)
        if is_json(self.file):
            return self._mark() + edited_json(wanted[0], self._text, self.file).encode()
        touched = [d for d in self.documents if not same(d.value, wanted[d.index])]
        if not touched:
            return self.data
        shared = self._where_shared(edits, wanted) if "&" in self._text else None
        if shared is not None:
            return shared
        try:
            texts = {d.index: self._round_trip(d, edits) for d in touched}
            result = self.replaced(texts)
            if self._is(result, wanted):
                return result
        except CannotEdit:
            pass
        result = self.replaced({d.index: dump(wanted[d.index]) for d in touched})
        if not self._is(result, wanted):
            Manifest.parse(result, self.file)  # too deep, for instance
            raise Bug(f"{self.file} cannot be edited", reason="EditFailed")
        return result

    def _where_shared(self, edits: Sequence[Edit], wanted: dict[int, Any]) -> bytes | None:
        roots = {document.index: _root(document).node for document in self.documents}

        def patched(now: Sequence[Edit]) -> tuple[bytes, dict[int, Any]] | None:
            values = [edit.value for edit in now]
            kinds = "".join(_kind(value, MISSING) if value is not REMOVE else textpatch.REMOVED
                            for value in values)  # fmt: skip
            try:
                plan = self._plan(now, kinds, shared=True)
            except textpatch.CannotPatch:
                return None
            result = textpatch.fill(plan.pieces, plan.writes, values)
            found = self._read(result)
            return None if found is None else (result, found)

        return edited_where_shared(roots, edits, wanted, patched)

    def _round_trip(self, document: Document, edits: Sequence[Edit]) -> str:
        mine = [edit for edit in edits if edit.document == document.index]
        style = textpatch.style_of(_root(document).node)
        return round_trip(document.own_text(), mine, style)

    def replaced(self, texts: Mapping[int, str]) -> bytes:
        """The file's bytes with the lines of some documents replaced; not for JSON.

        Line breaks become those of the file.
        """
        out, position = [self._mark().decode()], 0
        for index, text in sorted(texts.items()):
            root = _root(self._by_index[index])
            gap = "\n" if root.body and self._text[root.body - 1] != "\n" else ""
            out += [self._text[position : root.body], gap]
            out.append(text.replace("\n", "\r\n") if "\r\n" in self._text else text)
            position = root.end
        return "".join([*out, self._text[position:]]).encode()


def _root(document: Document) -> Root:
    assert document.root is not None  # a JSON file is one document, which has no neighbours
    return document.root


def _only(text: str, file: str) -> Any:
    """The data of a text that is one document; MISSING for any other text."""
    reading = read_alike(text, file)
    alone = len(reading.roots) == 1 and not reading.problems
    return reading.roots[0].node.data if alone else MISSING


def _document(root: Root, file: str, text: str) -> Document:
    return Document(root.index, root.node.data, file, text, root)


def _kind(value: Any, present: Any) -> str:
    if value.__class__ is str:
        if value == present and present.__class__ is str:
            return textpatch.KEEP
        return textpatch.kind_of(value) if "\n" in value else textpatch.SINGLE
    if value is REMOVE:
        return textpatch.KEEP if present is MISSING else textpatch.REMOVED
    return textpatch.KEEP if same(value, present) else textpatch.kind_of(value)

"""YAML or JSON file as a value that keeps its bytes.

Upstream is parsed once; its edits are then made thousands of times with other values.
So positions are looked up and the result is verified once per *shape* of edits
(documents, paths, kinds of values); after that an edit only joins text.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final

from fanout.api.reasons import Reason
from fanout.errors import Bug, ErrorLocation, InvalidInput
from fanout.package import text_patch
from fanout.package.field_edits import (
    MISSING,
    REMOVE,
    BlockedPath,
    Edit,
    Path,
    ValueEditor,
    are_independent,
    diff_values,
    format_path,
    get_value,
    same_json,
)
from fanout.package.json_manifest import edit_json, find_json_line, is_json, read_json
from fanout.package.package_limits import ValueCounter
from fanout.package.text_patch import PatchPlan
from fanout.package.value_spelling import (
    ValueSpelling,
    add_comments,
    extract_element,
    read_spellings,
    replace_elements,
)
from fanout.package.yaml_nodes import (
    BOM,
    MAX_FILE,
    MERGE,
    DocumentRoot,
    InvalidManifest,
    YamlNode,
    decode,
    parse_yaml,
)
from fanout.package.yaml_scalars import dump
from fanout.values import KeyedValue, field

_MAX_SHAPES: Final = 1000  # remembered per file
# The first attempt shows which values follow an edit by mistake, the second which values change
# when those are written out; the third writes out all of them.
_MAX_ATTEMPTS: Final = 3


class Document(KeyedValue):
    """Document that is not empty. `value` is shared and must not be changed in place."""

    UNCOMPARED: ClassVar = ("_spellings",)

    index: int  # its place in the file, empty documents counted
    value: Any
    file: str
    _text: str
    root: DocumentRoot | None  # None: the file is JSON
    _spellings: dict[Path, Mapping[Path, ValueSpelling]] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Path of the object in its document: empty, as the object is the whole document."""
        return ()

    def spellings(self, parent_path: Path = ()) -> Mapping[Path, ValueSpelling]:
        """Return the spellings of the values below a path, by relative path; {} for JSON."""
        if self.root is None:
            return {}
        if (cached := self._spellings.get(parent_path)) is None:
            cached = self._spellings[parent_path] = read_spellings(
                self._text, self._node_at(parent_path)
            )
        return cached

    def document_text(self) -> str:
        """Return the document's lines with LF line breaks; not for JSON."""
        root = _root_of(self)
        return self._text[root.start : root.end].replace("\r\n", "\n")

    def element_text(self, path: Path) -> str | None:
        """Return the lines of one element as if it were a document.

        None if the lines alone would not read as the same value.
        """
        text = extract_element(self._text, self._node_at(path)) if self.root is not None else None
        parsed = None if text is None else _parse_single(text, self.file)
        return text if same_json(parsed, get_value(self.value, path)) else None

    def replace_elements_text(self, texts: Mapping[Path, str]) -> str | None:
        """Return the document's lines with new lines for some elements, by their paths.

        None if the result would not read as the elements do. `element_text` must have returned a
        text for each of them.
        """
        root, expected = _root_of(self), ValueEditor(self.value)
        replacements = [(self._node_at(path), text) for path, text in texts.items()]
        result = replace_elements(self._text, root.start, root.end, replacements)
        for path, text in texts.items():
            expected.set(path, _parse_single(text, self.file))
        return result if same_json(_parse_single(result, self.file), expected.value) else None

    def _node_at(self, path: Path) -> YamlNode:
        node = _root_of(self).node
        for part in path:
            _, node = node.children[part]
        return node

    def written_key(self, path: Path) -> str:
        """Return the last key of the path with its quotes.

        "" if it does not exist, and for JSON.
        """
        node, key = self.root.node if self.root else None, None
        for part in path:
            if node is None or part not in node.children:
                return ""
            key, node = node.children[part]
        return self._text[key.start : key.end] if key else ""

    def line_of(self, path: Path) -> int:
        """Return the line, from 1, of the deepest value on the path that exists."""
        if self.root is None:
            return find_json_line(self._text, path)
        node = self.root.node
        line = node.line
        for part in path:
            if part not in node.children:
                break
            key, node = node.children[part]
            line = (key or node).line
        return line


@dataclass(slots=True)
class _EditShape:
    """Memo for edits of certain paths: present values, and a plan per kinds of values."""

    present: list[Any]
    plans: dict[str, PatchPlan | None]  # None: only the slow way is right


class Manifest:
    """File of documents, immutable; built by `Manifest.parse`."""

    def __init__(self, data: bytes, text: str, file: str, documents: Sequence[Document]) -> None:
        self.data = data
        self.file = file
        self.documents = tuple(documents)
        self._text = text
        self._by_index = {document.index: document for document in documents}
        self._shapes: dict[tuple[tuple[int, Path], ...], _EditShape] = {}

    @classmethod
    def parse(cls, data: bytes, file: str, counter: ValueCounter | None = None) -> "Manifest":
        """Parse a file; `file` is for messages, and a name in `.json` means JSON.

        `counter` counts the values of the package that the file belongs to. Raises
        InvalidManifest with all problems: not UTF-8, syntax, tabs, duplicate keys, tags, keys
        that are not strings, numbers that Kubernetes does not have, and exceeded limits; and
        InvalidInput if the package has too many values.
        """
        text = decode(data, file, MAX_FILE)
        if is_json(file):
            value = read_json(text, file, counter)
            return cls(
                data, text, file, () if value is None else (Document(0, value, file, text, None),)
            )
        reading = parse_yaml(text, file, counter)
        if reading.problems:
            raise InvalidManifest(reading.problems)
        return cls(data, text, file, [_build_document(root, file, text) for root in reading.roots])

    @classmethod
    def parse_valid(cls, data: bytes, file: str) -> "Manifest":
        """Parse the documents of a YAML file that have no problems, and leave out the others.

        The result is for reading: it cannot be edited. Raises InvalidManifest for a file that
        is not text, and for JSON, which has one document.
        """
        if is_json(file):
            return cls.parse(data, file)
        text = decode(data, file, MAX_FILE)
        roots = [root for root in parse_yaml(text, file).roots if not root.has_problems]
        return cls(data, text, file, [_build_document(root, file, text) for root in roots])

    def document(self, index: int) -> Document:
        """Return the document at an index of the file. Raises Bug if it is empty or missing."""
        if index not in self._by_index:
            raise Bug(f"{self.file} has no document {index}", reason="NoDocument")
        return self._by_index[index]

    def apply_edits_to_text(self, edits: Sequence[Edit]) -> bytes:
        """Return the file's bytes after the edits, made in their order.

        Bytes outside the edits stay; edits that change nothing return the same bytes. The result
        always reads as the data would be after the same edits. If the text cannot be patched, the
        document's layout may change; if anchors are in the way, its comments may be lost. Raises
        InvalidInput for a path that leads through a scalar, and for a value that is not JSON data.
        """
        values = [edit[2] for edit in edits]
        edit_paths = tuple([edit[:2] for edit in edits])
        if (shape := self._shapes.get(edit_paths)) is None:
            present = [get_value(self.document(index).value, path) for index, path in edit_paths]
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            shape = self._shapes[edit_paths] = _EditShape(present, {})
        # A plan depends on the kinds of the values only, never on the values: it is proved
        # right once, and then holds for every variant with values of these kinds.
        kinds = "".join(map(_edit_kind, values, shape.present))
        if (plan := shape.plans.get(kinds)) is None:
            if kinds not in shape.plans:
                return self._edit_new_kinds(shape, kinds, edits)
            return self._edit_without_plan(edits)
        return plan.fill(values)

    def add_line_comments(self, comments: Mapping[int, Mapping[Path, str]]) -> bytes:
        """Return the file's bytes with line comments, by document index and path.

        Each value must allow one (`ValueSpelling.has_comment_room`).
        """
        text = self._text
        # From the last document, so that the node positions of the earlier ones stay valid.
        for index in sorted(comments, reverse=True):
            text = add_comments(text, _root_of(self.document(index)).node, comments[index])
        return self._bom() + text.encode()

    def remove_documents(self, indices: Collection[int]) -> bytes | None:
        """Return the file's bytes without the documents of these indices. None if none remains."""
        remaining = [document for document in self.documents if document.index not in indices]
        if not remaining:
            return None
        if len(remaining) == len(self.documents):
            return self.data
        previous = {later.index: current for current, later in pairwise(self.documents)}
        first_start, root = _root_of(self.documents[0]).start, _root_of(remaining[0])
        pieces = [self._text[:first_start], self._text[root.start : root.end]]
        for document in remaining[1:]:
            # The text between two remaining documents is that before the second one: a comment
            # at the end of a removed document's range goes with it, and no marker is doubled.
            gap_start = _root_of(previous[document.index]).end
            pieces.append(self._text[gap_start : _root_of(document).end])
        if remaining[-1] is self.documents[-1]:
            pieces.append(self._text[_root_of(remaining[-1]).end :])
        result = self._bom() + "".join(pieces).encode()
        if not same_json([d.value for d in Manifest.parse(result, self.file).documents],
                    [d.value for d in remaining]):  # fmt: skip
            raise Bug(f"{self.file} cannot be split into documents", reason="EditFailed")
        return result

    def _edit_new_kinds(self, shape: _EditShape, kinds: str, edits: Sequence[Edit]) -> bytes:
        """Edit with new kinds of values: make a plan and keep it if its result is right."""
        if not kinds.strip(text_patch.KEPT):
            shape.plans[kinds] = PatchPlan([self.data], [])
            return self.data
        expected = self._expected_data(edits)
        # A plan looks every edit up in the unchanged text. Edits that depend on each other
        # have no such positions: the second one's path may exist only after the first.
        if not is_json(self.file) and are_independent(edits):
            try:
                plan = self._make_plan(edits, kinds)
            except text_patch.CannotPatch:
                pass
            else:
                result = plan.fill([edit.value for edit in edits])
                if same_json(self._read_result(result), expected):
                    shape.plans[kinds] = plan
                    return result
        # Remembered as well: a plan that was refused once would be refused for every other variant.
        shape.plans[kinds] = None
        return self._edit_without_plan(edits)

    def _make_plan(self, edits: Sequence[Edit], kinds: str, *, shared: bool = False) -> PatchPlan:
        spans: list[text_patch.PatchSpan] = []
        by_document: dict[int, list[text_patch.PlannedEdit]] = {}
        for index_of_value, (edit, kind) in enumerate(zip(edits, kinds, strict=True)):
            if kind != text_patch.KEPT:
                planned = by_document.setdefault(edit.document, [])
                planned.append(text_patch.PlannedEdit(index_of_value, edit.path, kind))
        for index, planned in by_document.items():
            root = _root_of(self._by_index[index])
            spans += text_patch.plan_patch(self._text, root.node, planned, may_edit_shared=shared)
        plan = text_patch.cut_pieces(self._text, spans)
        plan.pieces[0] = self._bom() + plan.pieces[0]
        return plan

    def _bom(self) -> bytes:
        """Return the byte order mark if the file begins with one, else b""."""
        return BOM if self.data.startswith(BOM) else b""

    def _expected_data(self, edits: Sequence[Edit]) -> dict[int, Any]:
        """Return the data of all documents after the edits, by index. Raises InvalidInput."""
        expected = {document.index: ValueEditor(document.value) for document in self.documents}
        for edit in edits:
            try:
                expected[edit.document].set(edit.path, edit.value)
            except BlockedPath as blocked:
                line = self._by_index[edit.document].line_of(edit.path[: blocked.depth])
                raise InvalidInput(
                    blocked.message,
                    reason=Reason.INVALID_MANIFEST,
                    remedy="correct the file, or do not set this field",
                    where=ErrorLocation(field=format_path(edit.path), file=self.file, line=line),
                ) from None
        return {index: edited.value for index, edited in expected.items()}

    def _read_result(self, result: bytes) -> dict[int, Any] | None:
        """Return the data of an edited text by document index; None if it cannot be parsed."""
        reading = parse_yaml(result.decode().removeprefix("\ufeff"), self.file)
        data_by_index = {root.index: root.node.data for root in reading.roots}
        return None if reading.problems else data_by_index

    def _edit_without_plan(self, edits: Sequence[Edit]) -> bytes:
        expected = self._expected_data(edits)
        if is_json(self.file):
            return self._bom() + edit_json(expected[0], self._text, self.file).encode()
        touched = [d for d in self.documents if not same_json(d.value, expected[d.index])]
        if not touched:
            return self.data
        # Three ways, from the one that keeps most of the text to the one that keeps least: patches
        # that write out what anchors share, a round trip through ruamel.yaml, and the document
        # written anew. Each result is read, and refused if it says anything else.
        if "&" in self._text and (result := self._edit_with_anchors(edits, expected)) is not None:
            return result
        # Loaded here: hardly any edit gets this far, and ruamel.yaml costs every process 10 ms.
        from fanout.package.round_trip import CannotEdit, edit_by_round_trip  # noqa: PLC0415

        try:
            texts: dict[int, str] = {}
            for document in touched:
                own_edits = [edit for edit in edits if edit.document == document.index]
                style = text_patch.detect_style(_root_of(document).node)
                text = document.document_text()
                texts[document.index] = edit_by_round_trip(text, own_edits, style)
            result = self.replace_documents(texts)
            if same_json(self._read_result(result), expected):
                return result
        except CannotEdit:
            pass
        result = self.replace_documents({d.index: dump(expected[d.index]) for d in touched})
        if not same_json(self._read_result(result), expected):
            # Written anew, a document can only fail by a limit: parsing raises the error that
            # says which.
            Manifest.parse(result, self.file)  # too deep, for instance
            raise Bug(f"{self.file} cannot be edited", reason="EditFailed")
        return result

    def _edit_with_anchors(self, edits: Sequence[Edit], expected: dict[int, Any]) -> bytes | None:
        """Edit a file in which anchors, aliases or merge keys (`<<`) share values.

        One place in the text is several in the data. An edit of that place would edit all, so
        values that must not change are written out, and nothing else is. None if that fails.
        """
        roots = {document.index: _root_of(document).node for document in self.documents}
        text_edits = {
            edit[:2]: edit.value
            for edit in edits
            if _is_in_place(roots[edit.document], edit.path)
            and not same_json(get_value(roots[edit.document].data, edit.path), edit.value)
        }
        # Each attempt compares the patched data with what is expected, and adds the values
        # that changed along with a shared one to the edits.
        for _ in range(_MAX_ATTEMPTS):
            attempted_edits = [Edit(*place, value) for place, value in text_edits.items()]
            values = [edit.value for edit in attempted_edits]
            kinds = "".join(
                _edit_kind(value, MISSING) if value is not REMOVE else text_patch.REMOVED
                for value in values
            )
            if not are_independent(attempted_edits):
                return None
            try:
                result = self._make_plan(attempted_edits, kinds, shared=True).fill(values)
            except text_patch.CannotPatch:
                return None
            actual = self._read_result(result)
            if same_json(actual, expected):
                return result
            if actual is None or actual.keys() != expected.keys():
                return None
            for index, root in roots.items():
                for path, value in diff_values(actual[index], expected[index]):
                    text_edits |= _expand_merge_key(index, root, path, value, expected[index])
        return None

    def replace_documents(self, texts: Mapping[int, str]) -> bytes:
        """Return the file's bytes with the lines of some documents replaced; not for JSON.

        Line breaks become those of the file.
        """
        pieces, position = [self._bom().decode()], 0
        for index, text in sorted(texts.items()):
            root = _root_of(self._by_index[index])
            # A document may begin on the line of its marker (`--- a: 1`); its new text needs a
            # line of its own.
            gap = "\n" if root.start and self._text[root.start - 1] != "\n" else ""
            pieces += [self._text[position : root.start], gap]
            pieces.append(text.replace("\n", "\r\n") if "\r\n" in self._text else text)
            position = root.end
        return "".join([*pieces, self._text[position:]]).encode()


def _root_of(document: Document) -> DocumentRoot:
    assert document.root is not None  # a JSON file is one document, which has no neighbours
    return document.root


def _parse_single(text: str, file: str) -> Any:
    """Return the data of a text of exactly one document; MISSING for any other text."""
    reading = parse_yaml(text, file)
    is_single = len(reading.roots) == 1 and not reading.problems
    return reading.roots[0].node.data if is_single else MISSING


def _build_document(root: DocumentRoot, file: str, text: str) -> Document:
    return Document(root.index, root.node.data, file, text, root)


def _edit_kind(value: Any, present: Any) -> str:
    if value.__class__ is str:
        if value == present and present.__class__ is str:
            return text_patch.KEPT
        return text_patch.value_kind(value) if "\n" in value else text_patch.SINGLE
    if value is REMOVE:
        return text_patch.KEPT if present is MISSING else text_patch.REMOVED
    return text_patch.KEPT if same_json(value, present) else text_patch.value_kind(value)


def _is_in_place(node: YamlNode, path: Path) -> bool:
    """Return whether the value stands at this path of the text, or would be added at it."""
    for part in path:
        if node.kind == "alias":
            return False
        if part not in node.children:
            return not (isinstance(node.data, dict) and part in node.data)
        node = node.children[part][1]
    return True


def _expand_merge_key(
    document: int, root: YamlNode, path: Path, value: Any, expected: Any
) -> dict[tuple[int, Path], Any]:
    """Return the edits after which the value differs from the one it shares."""
    if value is not REMOVE or not path:
        return {(document, path): value}
    parent_path, node = path[:-1], root
    for part in parent_path:
        if part not in node.children:
            return {(document, path): value}
        node = node.children[part][1]
    if MERGE not in node.children or path[-1] in node.children:
        return {(document, path): value}
    # One of the merged keys is removed: all others are written out in place of `<<`.
    expected_parent = get_value(expected, parent_path)
    if len(node.children) == 1:
        return {(document, parent_path): expected_parent}
    merged = [key for key in expected_parent if key not in node.children]
    return {(document, (*parent_path, MERGE)): REMOVE} | {
        (document, (*parent_path, key)): expected_parent[key] for key in merged
    }

"""Units of a merge: the objects of each side's files, and the key they merge under.

An object is identified by group, kind, namespace and name, whatever file it is in
(docs/concepts/merge.md). The comment `# kpt-merge: ns/name` on the line of `metadata` names the
upstream object it was cloned from and goes before its own name. An object that one side puts into
another namespace is still that object: `set-namespace` changes the identity of all objects at once,
and taken for new ones they would exist twice, with the local edits in the old ones.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from fanout.control_characters import escape_unprintable
from fanout.package.field_edits import MISSING, get_value, same_json
from fanout.package.json_manifest import is_json, read_json
from fanout.package.kptfile import KPTFILE
from fanout.package.merge.merge_values import EntrySpan, SideValue, ValueSides, find_line_end
from fanout.package.yaml_nodes import BOM, MAX_FILE, InvalidManifest, decode, parse_yaml
from fanout.values import Value, replace

Identity = tuple[str, str, str, str]  # group, kind, namespace, name
_KPT_MERGE_COMMENT: Final = re.compile(r"#.*?\bkpt-merge:\s*([^\s/]*)/([^\s/]+)\s*$")


def object_identity(data: Any) -> Identity | None:
    """Return the identity of an object, None for data without kind or name."""
    if not isinstance(data, dict):
        return None
    version, kind, metadata = data.get("apiVersion"), data.get("kind"), data.get("metadata")
    if not isinstance(kind, str) or not isinstance(version, str) or not isinstance(metadata, dict):
        return None
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str):
        return None
    group = version.rpartition("/")[0]
    return group, kind, namespace if isinstance(namespace, str) else "", name


def merge_identity(value: SideValue) -> Identity | None:
    """Return the identity of an object in a file. Its kpt-merge comment goes before its name."""
    if (identity := object_identity(value.data)) is None or value.is_leaf:
        return identity
    metadata = value.children["metadata"]
    if metadata.span is None:
        return identity
    match = _KPT_MERGE_COMMENT.search(
        value.text[metadata.span.value_start : find_line_end(value.text, metadata.span.value_start)]
    )
    return (*identity[:2], match[1], match[2]) if match else identity


LOCAL_CONFIG: Final = "config.kubernetes.io/local-config"


def is_local_config(item: Any) -> bool:
    """Return whether the object is local-config: for tools, not for the cluster."""
    mark = get_value(item, ("metadata", "annotations", LOCAL_CONFIG))
    return mark is not MISSING and str(mark or "false").lower() != "false"


def is_list(data: Any) -> bool:
    """Return whether the data is a List whose items are objects."""
    if not isinstance(data, dict) or not isinstance(data.get("items"), list):
        return False
    kind = data.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List") or object_identity(data):
        return False
    return all(object_identity(item) for item in data["items"])


def format_identity(identity: Identity) -> str:
    """Format as `Deployment/shop/web`, without the namespace if there is none."""
    _, kind, namespace, name = identity
    return "/".join(part for part in (kind, namespace, name) if part)


UnitKey = tuple[object, ...]  # what is merged with what
Container = tuple[object, ...]  # a file, or a List in a file

_MARKER: Final = re.compile(r"^---(?=[ \t\n]|\Z)", re.MULTILINE)
_UNUSUAL: Final = re.compile(r"^(?:%|\.\.\.)|\r", re.MULTILINE)  # directives, ends, odd breaks
_MAX_MEMOIZED: Final = 16 << 10  # characters of the largest document that is kept parsed


class MergeDocument(Value):
    """Document of a file; positions of its value are those in a stretch of the file."""

    file: str
    number: int  # among those of the file that are not empty
    value: SideValue
    start: int  # in the file's text, behind the marker
    end: int
    line: int  # how many lines stand before the stretch

    @property
    def text(self) -> str:
        """All lines of the document, comments included."""
        span = self.value.span
        return self.value.text if span is None else self.value.text[span.value_start + 1 : span.eol]

    @property
    def offset(self) -> int:
        """Offset from positions in the document's stretch to positions in its file."""
        span = self.value.span
        return self.start - (span.value_start + 1) if span else 0


class MergeFile(Value):
    """File as its documents, with line breaks of one kind and without byte order mark."""

    path: str
    data: bytes
    text: str
    documents: tuple[MergeDocument, ...]

    @property
    def crlf(self) -> bool:
        """True if all lines ended with CR and LF."""
        return b"\r\n" in self.data and "\r" not in self.text

    @property
    def bom(self) -> bytes:
        """Byte order mark, b"" if the file has none."""
        return BOM if self.data.startswith(BOM) else b""

    def between(self, number: int) -> str:
        """Return the text before a document: its marker, and all behind the previous one."""
        before = self.documents[number - 1].end if number else 0
        return self.text[before : self.documents[number].start]

    @property
    def tail(self) -> str:
        """Text behind the last document."""
        return self.text[self.documents[-1].end :]

    def iter_comments(self) -> Iterator[tuple[int, str]]:
        """Yield the comments outside of all scalars, each with its position."""
        scalar_spans: list[tuple[int, int]] = []  # of aliases and keys, too
        for document in self.documents:
            shift = document.offset
            pending = [document.value.node]
            while pending:
                if (node := pending.pop()) is not None and node.children:
                    pending += (it for entry in node.children.values() for it in entry)
                elif node is not None:
                    scalar_spans.append((node.start + shift, node.end + shift))
        scanned_to = 0
        for start, end in (*sorted(scalar_spans), (len(self.text), len(self.text))):
            position = self.text.find("#", scanned_to, start)
            while position >= 0:
                eol = find_line_end(self.text, position)
                if position == 0 or self.text[position - 1] in " \t\n":
                    yield position, self.text[position:eol].rstrip()
                position = self.text.find("#", eol, start)
            scanned_to = max(scanned_to, end)


def is_manifest(path: str) -> bool:
    """Return whether the file contains objects, by its name."""
    return path.rpartition("/")[2] == KPTFILE or path.endswith((".yaml", ".yml", ".json"))


class DocumentReader:
    """Parser of the files of one merge. A document that occurs on several sides is parsed once."""

    def __init__(self) -> None:
        self._values_by_stretch: dict[str, tuple[SideValue, ...] | None] = {}

    def parse(self, path: str, data: bytes) -> MergeFile | None:
        """Return the documents of a file.

        None if it is not readable as objects and merged as text.
        """
        try:
            text = decode(data, path, MAX_FILE)
            if is_json(path):
                value = read_json(text, path)
                if object_identity(value) is None and not is_list(value):
                    return None
                top = MergeDocument(path, 0, SideValue(value, text), 0, len(text), 0)
                return MergeFile(path, data, text, (top,))
        except InvalidManifest:
            return None
        # A file with mixed line breaks keeps its CRs as text: turning all to LF would
        # change other lines.
        if text.count("\r\n") == text.count("\n"):
            text = text.replace("\r\n", "\n")
        documents = self.parse_documents(path, text)
        return None if documents is None else MergeFile(path, data, text, tuple(documents))

    def parse_documents(self, path: str, text: str) -> list[MergeDocument] | None:
        """Return the documents of a YAML text that are not empty; None if it is not readable."""
        documents: list[MergeDocument] = []
        line = 0
        for start, stretch in _split_stretches(text):
            if stretch not in self._values_by_stretch:
                parse = _parse_memoized if len(stretch) <= _MAX_MEMOIZED else _parse_values
                self._values_by_stretch[stretch] = parse(stretch)
            if (values := self._values_by_stretch[stretch]) is None:
                return None
            for value in values:
                span = value.entry_span
                document_start, end = start + span.value_start + 1, start + span.eol
                documents.append(
                    MergeDocument(path, len(documents), value, document_start, end, line)
                )
            line += stretch.count("\n")
        return documents

    def reads_as(self, text: str, data: list[Any]) -> bool:
        """Return whether a YAML text reads as exactly these documents. New parses are not kept."""
        values_read: list[Any] = []
        for _, stretch in _split_stretches(text):
            cached = self._values_by_stretch.get(stretch)
            values = _parse_values(stretch) if cached is None else cached
            if values is None:
                return False
            values_read += [value.data for value in values]
        return same_json(values_read, data)


def _split_stretches(text: str) -> Iterator[tuple[int, str]]:
    """Yield the text cut before each marker, or uncut if other syntax delimits documents."""
    if _UNUSUAL.search(text):
        yield 0, text
        return
    start = 0
    # Documents are parsed one by one and by their text alone, so that what two sides or two
    # variants share is parsed once. Hence positions count from the stretch and lines are added up.
    for match in _MARKER.finditer(text):
        if match.start() > start:
            yield start, text[start : match.start()]
            start = match.start()
    yield start, text[start:]


def _parse_values(text: str) -> tuple[SideValue, ...] | None:
    reading = parse_yaml(text, "")
    if reading.problems:
        return None
    values = []
    for root in reading.roots:
        span = EntrySpan(root.start, root.start, root.start - 1, root.node.end, root.end)
        values.append(SideValue(root.node.data, text, root.node, span))
    return tuple(values)


_parse_memoized = lru_cache(maxsize=512)(_parse_values)


class MergeUnit(Value):
    """Unit of a merge: an object, a List without its items, or a nameless document."""

    key: UnitKey
    name: str  # for people
    container: Container
    document: MergeDocument
    value: SideValue


UnitSides = tuple[MergeUnit | None, MergeUnit | None, MergeUnit | None]  # origin, upstream, local


def values_of(units: UnitSides) -> ValueSides:
    """Return the value of the unit on each side."""
    origin, upstream, local = (unit.value if unit else None for unit in units)
    return origin, upstream, local


def collect_units(
    sides: Sequence[Iterable[MergeFile]],
) -> tuple[list[dict[UnitKey, MergeUnit]], list[str]]:
    """Return the units of each side, in the order of its files, and notes on duplicates.

    A local-config object may share its identity with another one. Other objects of one
    identity on one side are distinguished by file and occurrence.
    """
    units_by_side = [[unit for file in files for unit in _file_units(file)] for files in sides]
    duplicates = _find_duplicates(units_by_side)
    if duplicates:
        # Only there: elsewhere an object that a side marks as local-config is still the same.
        units_by_side = [
            [
                replace(unit, key=(*unit.key, LOCAL_CONFIG))
                if unit.key in duplicates
                and (is_local_config(unit.value.data) or is_local_config(unit.document.value.data))
                else unit
                for unit in units
            ]
            for units in units_by_side
        ]
        duplicates = _find_duplicates(units_by_side)
    notes = [
        f"{escape_unprintable(units[0].document.file)}: {units[0].name} is declared twice, also in "
        f"{escape_unprintable(units[1].document.file)}; duplicates are matched by position"
        for units in duplicates.values()
    ]
    indices: list[dict[UnitKey, MergeUnit]] = []
    for units in units_by_side:
        index: dict[UnitKey, MergeUnit] = {}
        occurrences: Counter[UnitKey] = Counter()
        for unit in units:
            if (key := unit.key) in duplicates:
                key = (*key, unit.document.file)
                occurrences[key] += 1
                key = (*key, occurrences[key])
            index[key] = replace(unit, key=key)
        indices.append(index)
    return indices, notes


def _find_duplicates(
    units_by_side: Iterable[Sequence[MergeUnit]],
) -> dict[UnitKey, list[MergeUnit]]:
    """Return the units that share their key with another one of their side, by key."""
    duplicates: dict[UnitKey, list[MergeUnit]] = {}
    for units in units_by_side:
        counts = Counter(unit.key for unit in units)
        for unit in units:
            if counts[unit.key] > 1:
                duplicates.setdefault(unit.key, []).append(unit)
    return duplicates


def _file_units(file: MergeFile) -> list[MergeUnit]:
    units: list[MergeUnit] = []
    for document in file.documents:
        value, container = document.value, (file.path,)
        if file.path.rpartition("/")[2] == KPTFILE:
            units.append(MergeUnit((KPTFILE, document.number), KPTFILE, container, document, value))
        elif is_list(value.data):
            list_container: Container = (file.path, document.number)
            key, kind = ("list", *list_container), str(value.data["kind"])
            units.append(MergeUnit(key, kind, container, document, value))
            items = value.children["items"].children.values()
            units += [_object_unit(document, item, list_container) for item in items]
        else:
            units.append(_object_unit(document, value, container))
    return units


def _object_unit(document: MergeDocument, value: SideValue, container: Container) -> MergeUnit:
    # `kpt-merge` comments are read on documents only, not on the items of a List.
    has_comment = value is document.value and "kpt-merge" in value.text
    identity = merge_identity(value) if has_comment else object_identity(value.data)
    if identity is None:
        data = value.data
        kind = data.get("kind") if isinstance(data, dict) else None
        key: UnitKey = ("document", document.file, document.number)
        return MergeUnit(key, kind if isinstance(kind, str) else "", container, document, value)
    return MergeUnit(("object", *identity), format_identity(identity), container, document, value)


Units = dict[UnitKey, MergeUnit]


def follow_namespaces(origin: Units, upstream: Units, local: Units) -> tuple[Units, Units]:
    """Return upstream's and the local units.

    Objects in a new namespace keep their old key. Only if it is certain: one object of that kind
    and name is missing, one is new, and the other side has no object with the new identity.
    """
    moved_upstream, moved_locally = _find_moved(origin, upstream), _find_moved(origin, local)
    upstream_keys = {
        new: old
        for new, old in moved_upstream.items()
        if new not in local or moved_locally.get(new) == old
    }
    local_keys = {
        new: old
        for new, old in moved_locally.items()
        if new not in upstream or moved_upstream.get(new) == old
    }
    return _rename_keys(upstream, upstream_keys), _rename_keys(local, local_keys)


def _find_moved(origin: Units, side: Units) -> dict[UnitKey, UnitKey]:
    """Return the old keys of objects that only changed their namespace, by their new keys."""
    removed_keys = dict(_only_on_side(origin, side))
    return {
        key: removed_keys[reduced_key]
        for reduced_key, key in _only_on_side(side, origin)
        if reduced_key in removed_keys
    }


def _only_on_side(side: Units, other_side: Units) -> Iterator[tuple[UnitKey, UnitKey]]:
    """Yield (key without namespace, key) of the objects that only this side has."""
    keys = [
        key
        for key in side
        if key[0] == "object" and len(key) == _UNIQUE_KEY_LENGTH and key not in other_side
    ]
    counts = Counter(_without_namespace(key) for key in keys)
    # Two objects of one kind and name in different namespaces are ambiguous without theirs.
    return ((_without_namespace(key), key) for key in keys if counts[_without_namespace(key)] == 1)


# "object", group, kind, namespace, name; longer where there are two of one identity
_UNIQUE_KEY_LENGTH = 5


def _without_namespace(key: UnitKey) -> UnitKey:
    return key[1], key[2], key[4]


def _rename_keys(units: Units, keys: Mapping[UnitKey, UnitKey]) -> Units:
    return {
        keys.get(key, key): replace(unit, key=keys[key]) if key in keys else unit
        for key, unit in units.items()
    }

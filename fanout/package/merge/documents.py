"""The files of one side as documents: what is in them, and under which name it is merged."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from fanout.package.alike import read_alike
from fanout.package.edits import same
from fanout.package.invalid import BOM, MAX_FILE, InvalidManifest, decode
from fanout.package.jsontext import is_json, read_json
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.merge.identity import identity_of, is_list, merge_identity, shown
from fanout.package.merge.sides import Slot, Value
from fanout.package.nodes import Root
from fanout.values import frozen

Key = tuple[object, ...]  # what is merged with what
Container = tuple[object, ...]  # a file, or a List in a file

_MARKER: Final = re.compile(r"^---(?=[ \t\n]|\Z)", re.MULTILINE)
_UNUSUAL: Final = re.compile(r"^(?:%|\.\.\.)|\r", re.MULTILINE)  # directives, ends, odd breaks
_REMEMBERED: Final = 16 << 10  # characters of the largest document that is kept parsed


@frozen
class Document:
    """One document of a file; its value's positions are those in a stretch of the file."""

    file: str
    number: int  # among those of the file that are not empty
    value: Value
    start: int  # in the file's text, behind the marker
    end: int
    line: int  # how many lines stand before the stretch

    @property
    def text(self) -> str:
        """All of its lines, comments included."""
        slot = self.value.slot
        return self.value.text if slot is None else self.value.text[slot.mark + 1 : slot.eol]


@frozen
class File:
    """A file as its documents, with line breaks of one kind and without byte order mark."""

    path: str
    data: bytes
    text: str
    documents: tuple[Document, ...]

    @property
    def crlf(self) -> bool:
        """Did all lines end with CR and LF?"""
        return b"\r\n" in self.data and "\r" not in self.text

    @property
    def bom(self) -> bytes:
        """The byte order mark, if it has one."""
        return BOM if self.data.startswith(BOM) else b""

    def between(self, number: int) -> str:
        """What stands before a document: its marker, and what is between it and the last one."""
        before = self.documents[number - 1].end if number else 0
        return self.text[before : self.documents[number].start]

    @property
    def tail(self) -> str:
        """What stands behind the last document."""
        return self.text[self.documents[-1].end :]


def is_manifest(path: str) -> bool:
    """Is it a file of objects, by its name?"""
    return path.rpartition("/")[2] == KPTFILE or path.endswith((".yaml", ".yml", ".json"))


class Reader:
    """Reads files of one merge; a document that several of them have alike is parsed once."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Value, ...] | None] = {}

    def parse(self, path: str, data: bytes) -> File | None:
        """The documents of a file; None when it cannot be read as objects and is merged as text."""
        try:
            text, _ = decode(data, path, MAX_FILE)
            if is_json(path):
                value = read_json(text, path)
                if identity_of(value) is None and not is_list(value):
                    return None
                top = Document(path, 0, Value(value, text, None, None), 0, len(text), 0)
                return File(path, data, text, (top,))
        except InvalidManifest:
            return None
        if text.count("\r\n") == text.count("\n"):
            text = text.replace("\r\n", "\n")
        documents = self.documents(path, text)
        return None if documents is None else File(path, data, text, tuple(documents))

    def documents(self, path: str, text: str) -> list[Document] | None:
        """The documents of a YAML text that are not empty; None when it is not readable."""
        found: list[Document] = []
        line = 0
        for start, stretch in _stretches(text):
            values = self._values(stretch)
            if values is None:
                return None
            for value in values:
                assert value.slot is not None
                begin, end = start + value.slot.mark + 1, start + value.slot.eol
                found.append(Document(path, len(found), value, begin, end, line))
            line += stretch.count("\n")
        return found

    def says(self, text: str, data: list[Any]) -> bool:
        """Does a YAML text hold exactly these documents? What is parsed for it is not kept."""
        found: list[Any] = []
        for _, stretch in _stretches(text):
            seen = self._seen.get(stretch)
            values = _parse(stretch) if seen is None else seen
            if values is None:
                return False
            found += [value.data for value in values]
        return same(found, data)

    def _values(self, stretch: str) -> tuple[Value, ...] | None:
        if stretch not in self._seen:
            short = len(stretch) <= _REMEMBERED
            self._seen[stretch] = _remembered(stretch) if short else _parse(stretch)
        return self._seen[stretch]


def _stretches(text: str) -> Iterator[tuple[int, str]]:
    """The text cut before each marker, where nothing else begins or ends documents."""
    if _UNUSUAL.search(text):
        yield 0, text
        return
    start = 0
    for match in _MARKER.finditer(text):
        if match.start() > start:
            yield start, text[start : match.start()]
            start = match.start()
    yield start, text[start:]


def _parse(text: str) -> tuple[Value, ...] | None:
    reading = read_alike(text, "")
    return None if reading.problems else tuple(_top(root, text) for root in reading.roots)


_remembered = lru_cache(maxsize=512)(_parse)


def _top(root: Root, text: str) -> Value:
    slot = Slot(root.body, root.body, root.body - 1, (root.node.end, root.end))
    return Value(root.node.data, text, root.node, slot)


@frozen
class Unit:
    """What is merged as one: an object, a List without its items, or a document without a name."""

    key: Key
    name: str  # for people
    container: Container
    document: Document
    value: Value


def units_of(sides: Sequence[Iterable[File]]) -> tuple[list[dict[Key, Unit]], list[str]]:
    """The units of each side, in the order of its files, and notes on what is there twice.

    Objects of one identity in one side are told apart by their file and place.
    """
    found = [[unit for file in files for unit in _units(file)] for files in sides]
    twice: dict[Key, list[Unit]] = {}
    for units in found:
        counts = Counter(unit.key for unit in units)
        for unit in units:
            if counts[unit.key] > 1:
                twice.setdefault(unit.key, []).append(unit)
    notes = [
        f"{units[0].document.file}: {units[0].name} is there twice, also in "
        f"{units[1].document.file}; such objects are matched by their place"
        for units in twice.values()
    ]
    return [_by_key(units, twice) for units in found], notes


def _by_key(units: list[Unit], twice: Mapping[Key, object]) -> dict[Key, Unit]:
    found: dict[Key, Unit] = {}
    places: Counter[Key] = Counter()
    for unit in units:
        key = unit.key
        if key in twice:
            key = (*key, unit.document.file)
            places[key] += 1
            key = (*key, places[key])
        found[key] = Unit(key, unit.name, unit.container, unit.document, unit.value)
    return found


def _units(file: File) -> list[Unit]:
    found: list[Unit] = []
    for document in file.documents:
        value, here = document.value, (file.path,)
        if file.path.rpartition("/")[2] == KPTFILE:
            found.append(Unit((KPTFILE, document.number), KPTFILE, here, document, value))
        elif is_list(value.data):
            lists: Container = (file.path, document.number)
            found.append(Unit(("list", *lists), str(value.data["kind"]), here, document, value))
            items = value.children["items"].children.values()
            found += [_object(document, item, lists) for item in items]
        else:
            found.append(_object(document, value, here))
    return found


def _object(document: Document, value: Value, container: Container) -> Unit:
    # an item of a List is not called something else than it is
    marked = value is document.value and "kpt-merge" in value.text
    identity = merge_identity(value) if marked else identity_of(value.data)
    if identity is None:
        data = value.data
        kind = data.get("kind") if isinstance(data, dict) else None
        key: Key = ("document", document.file, document.number)
        return Unit(key, kind if isinstance(kind, str) else "", container, document, value)
    return Unit(("object", *identity), shown(identity), container, document, value)

"""What the branch of one book holds, read from Git; what was read before is not read again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fanout.cluster.arrivals import History, walk
from fanout.cluster.books import RECORDS, STATUS, UnreadableError, read_record, read_shard
from fanout.errors import InvalidInput
from fanout.package.tree import Entry
from fanout.plan.book import Book, BookKey, Recorded
from fanout.ports import Reader

_FILE = ("100644", "100755")


@dataclass(frozen=True, slots=True)
class Shard:
    """One status file: its blob id and its lines by key."""

    oid: str = ""
    lines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Branch:
    """A book, and what the next reading of its branch can take over."""

    book: Book = field(default_factory=Book)
    history: History = field(default_factory=History)
    parsed: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)  # by blob id
    shards: Mapping[str, Shard] = field(default_factory=dict)  # by path


def read_branch(reader: Reader, head: str, key: BookKey, before: Branch) -> Branch:
    """The branch at `head`. What cannot be understood is a sentence in the book's `unreadable`."""
    unreadable: list[str] = []
    try:
        history = walk(reader, head, before.history)
        problem = reader.paths(head, [RECORDS])[RECORDS].problem
        if problem:
            unreadable.append(f"{RECORDS}: {problem}; move it away")
        parsed, records = _records(reader, key, history, before.parsed, unreadable)
        shards = read_shards(reader, head, before.shards, unreadable)
    except InvalidInput as error:  # a submodule; one broken branch leaves the others readable
        return Branch(Book(head, unreadable=(str(error),)))
    lines = {name: line for shard in shards.values() for name, line in shard.lines.items()}
    book = Book(head, records, dict(sorted(lines.items())), tuple(unreadable))
    return Branch(book, history, parsed, shards)


def read_shards(
    reader: Reader, head: str, known: Mapping[str, Shard], unreadable: list[str]
) -> dict[str, Shard]:
    """All status files at the head, by path; sentences about the others go to `unreadable`."""
    shards: dict[str, Shard] = {}
    for name, entry in sorted(_status_files(reader, head, unreadable).items()):
        path = f"{STATUS}/{name}"
        if path in known and known[path].oid == entry.oid:
            shards[path] = known[path]
            continue
        try:
            _refuse_link(entry)
            shards[path] = Shard(entry.oid, read_shard(reader.blob(entry.oid), path))
        except UnreadableError as error:
            unreadable.append(f"{path} {error}; restore it from the commit before")
    return shards


def _status_files(reader: Reader, head: str, unreadable: list[str]) -> Mapping[str, Entry]:
    state = reader.paths(head, [STATUS])[STATUS]
    if state.problem:
        unreadable.append(f"{STATUS}: {state.problem}; move it away")
    return reader.entries(state.tree) if state.tree else {}


def _records(
    reader: Reader,
    key: BookKey,
    history: History,
    known: Mapping[str, tuple[str, Mapping[str, Any]]],
    unreadable: list[str],
) -> tuple[dict[str, tuple[str, Mapping[str, Any]]], tuple[Recorded, ...]]:
    parsed: dict[str, tuple[str, Mapping[str, Any]]] = {}
    records: list[Recorded] = []
    for file, arrival in history.arrivals.items():
        entry = history.entries.get(file)
        if entry is None:  # removed by a person: what is not there is not on record
            continue
        try:
            name = _name(file, entry)
            if entry.oid != arrival.oid:
                raise UnreadableError("was changed after it had been recorded")
            parsed[entry.oid] = known.get(entry.oid) or read_record(reader.blob(entry.oid), key)
            kind, spec = parsed[entry.oid]
            records.append(Recorded(name, arrival.at, arrival.by, kind, spec))
        except UnreadableError as error:
            unreadable.append(f"{RECORDS}/{file} {error}; restore it, or remove it with git")
    return parsed, tuple(records)


def _name(file: str, entry: Entry) -> str:
    name = file.removesuffix(".json")
    if name in ("", file) or "/" in name:
        raise UnreadableError("is not a record's file (*.json)")
    _refuse_link(entry)
    return name


def _refuse_link(entry: Entry) -> None:
    if entry.mode not in _FILE:
        raise UnreadableError("is a symlink")

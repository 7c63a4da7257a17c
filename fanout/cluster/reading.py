"""What the branch of one book holds, read from Git; what was read before is not read again."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from fanout.api.reasons import Reason
from fanout.cluster.arrivals import Arrival, History, listed, walk
from fanout.cluster.books import (
    LIMITS,
    RECORDS,
    STATUS,
    UnreadableError,
    is_name_of,
    read_record,
    read_shard,
)
from fanout.errors import InvalidInput
from fanout.package.tree import Entry
from fanout.plan.book import Book, BookKey, Recorded
from fanout.ports import Reader
from fanout.values import frozen, replace

_FILE = ("100644", "100755")


@frozen
class Shard:
    """One status file: its blob id and its lines by key."""

    oid: str = ""
    lines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@frozen
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
        history, files = _history(reader, head, before.history, unreadable)
        parsed, records = _records(reader, key, (history, files), before.parsed, unreadable)
        shards = read_shards(reader, head, before.shards, unreadable)
    except InvalidInput as error:  # a submodule; one broken branch leaves the others readable
        limited = error.reason == Reason.LIMIT_EXCEEDED  # which no setting of packages raises
        return Branch(Book(head, unreadable=(error.problem if limited else str(error),)))
    lines = {name: line for shard in shards.values() for name, line in shard.lines.items()}
    book = Book(head, records, dict(sorted(lines.items())), tuple(unreadable))
    return Branch(book, history, parsed, shards)


def read_shards(
    reader: Reader, head: str, known: Mapping[str, Shard], unreadable: list[str]
) -> dict[str, Shard]:
    """All status files at the head, by path; sentences about the others go to `unreadable`."""
    shards: dict[str, Shard] = {}
    for name, entry in sorted(_files(reader, head, STATUS, unreadable).items()):
        path = f"{STATUS}/{name}"
        if path in known and known[path].oid == entry.oid:
            shards[path] = known[path]
            continue
        try:
            _refuse_link(entry)
            shards[path] = Shard(entry.oid, read_shard(_content(reader, entry), path))
        except UnreadableError as error:
            unreadable.append(f"{path} {error}; restore it from the commit before")
    return shards


def _files(reader: Reader, head: str, directory: str, unreadable: list[str]) -> Mapping[str, Entry]:
    state = reader.paths(head, [directory])[directory]
    if state.problem:
        unreadable.append(f"{directory}: {state.problem}; move it away")
    return listed(reader, state.tree)


def _history(
    reader: Reader, head: str, known: History, unreadable: list[str]
) -> tuple[History, Mapping[str, Entry]]:
    """How the files came that are in `records` now, each with the content it came with."""
    files = _files(reader, head, RECORDS, unreadable)
    history = walk(reader, head, known)
    held = {name: _held(reader, name, entry, history) for name, entry in files.items()}
    if None in held.values():  # somebody wrote or rewrote a commit by hand
        return walk(reader, head, History(), trusting=False), files
    arrivals = {**history.arrivals, **{name: one for name, one in held.items() if one}}
    return replace(history, arrivals=arrivals), files


def _held(reader: Reader, name: str, entry: Entry, history: History) -> Arrival | None:
    """The arrival, its content known; None when nothing proves it."""
    arrival = history.arrivals.get(name)
    if arrival is None or arrival.oid:
        return arrival
    try:
        data = _content(reader, entry)
    except UnreadableError:
        return None
    if is_name_of(name.removesuffix(".json"), data, arrival.by):
        return replace(arrival, oid=entry.oid)
    return None


def _content(reader: Reader, entry: Entry) -> bytes:
    try:
        return reader.blob(entry.oid, LIMITS.file_size)
    except InvalidInput:
        raise UnreadableError(f"has more than {LIMITS.file_size:,} bytes") from None


def _records(
    reader: Reader,
    key: BookKey,
    found: tuple[History, Mapping[str, Entry]],
    known: Mapping[str, tuple[str, Mapping[str, Any]]],
    unreadable: list[str],
) -> tuple[dict[str, tuple[str, Mapping[str, Any]]], tuple[Recorded, ...]]:
    """All that could be parsed, by blob id, and the records in the order in which they came."""
    history, files = found
    parsed: dict[str, tuple[str, Mapping[str, Any]]] = {}
    records: list[Recorded] = []
    for file, arrival in history.arrivals.items():
        entry = files.get(file)
        if entry is None:  # removed by a person: what is not there is not on record
            continue
        try:
            name = _name(file, entry)
            if entry.oid != arrival.oid:
                raise UnreadableError("was changed after it had been recorded")
            parsed[entry.oid] = known.get(entry.oid) or read_record(_content(reader, entry), key)
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

"""The records repository: what people and machines said, and the status, kept in Git (design §3).

One branch per policy. Every write is a compare-and-swap of the branch, so processes on many
machines may share one repository. Records are only ever added. Nothing is written when nothing
changed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from fanout.cluster.arrivals import message
from fanout.cluster.books import (
    LIMITS,
    RECORDS,
    UnreadableError,
    branch,
    branches,
    branches_under,
    canonical,
    check_record,
    key_of,
    record_name,
    record_path,
    shard_of,
    write_shard,
)
from fanout.cluster.contention import until_it_wins
from fanout.cluster.last_heads import LastHead, LastHeads
from fanout.cluster.reading import Branch, Shard, read_branch, read_shards
from fanout.cluster.records_repository import RecordsRepository
from fanout.errors import Bug, FanoutError, InvalidInput, Where
from fanout.package.tree import blob_id
from fanout.plan.book import Book, BookKey, Rewound, StatusChange, accepted
from fanout.plan.repository import FileCommit, Identity
from fanout.telemetry.barrier import run_contained
from fanout.values import replace


class GitRecords:
    """`fanout.ports.RecordStore` on a Git repository. One pass at a time may use it."""

    def __init__(
        self,
        repository: RecordsRepository,
        install: str,
        identity: Identity,
        last_heads: LastHeads | None = None,
        *,
        begin_anew: bool = False,
    ) -> None:
        """`identity` commits the status. To `begin_anew` is not to ask for what was seen last."""
        self._repository = repository
        self._last_heads = last_heads or LastHeads(None, repository.remote.url)
        self._begin_anew = begin_anew
        self._install = install
        self._identity = identity
        self._branches: dict[BookKey, Branch] = {}

    # ---- reading -------------------------------------------------------------------------------

    def read(self, keys: Sequence[BookKey]) -> Mapping[BookKey, Book]:
        """All books in one listing; what stands as this process last saw it is not read again.

        Raises Unavailable or Denied. A file that cannot be understood is a sentence in its book.
        """
        return self._books(self._heads(keys))

    def read_all(self, keys: Sequence[BookKey]) -> Mapping[BookKey, Book]:
        """The same, and the books of whom nobody named.

        Whoever is on record keeps what it has, though its policy is not declared.
        """
        return self._books(dict.fromkeys(keys, "") | self.heads())

    def heads(self) -> dict[BookKey, str]:
        """Where all books are, in one listing; none is read. Raises Unavailable or Denied."""
        found = self._repository.under(branches_under(self._install))
        known = {key_of(self._install, ref): head for ref, head in sorted(found.items())}
        return {key: head for key, head in known.items() if key is not None}

    def as_seen(self, heads: Mapping[BookKey, str]) -> bool:
        """Are these the heads that were seen last? Else some may have been put back."""
        refs = {self._branch(key): head for key, head in heads.items()}
        return self._last_heads.agrees(refs, branches_under(self._install))

    def _books(self, heads: Mapping[BookKey, str]) -> Mapping[BookKey, Book]:
        failed: dict[BookKey, Book] = {}
        moved = [key for key, head in heads.items() if head != self._seen(key).book.head]
        if any(heads[key] for key in moved):
            with self._repository.reader() as reader:
                for key in filter(heads.__getitem__, moved):
                    before = self._seen(key)
                    branch = run_contained(partial(read_branch, reader, heads[key], key, before))
                    if isinstance(branch, Bug):  # that book's own; the next reading tries again
                        failed[key] = Book(heads[key], failure=branch)
                    elif isinstance(branch, FanoutError):
                        raise branch
                    else:
                        self._branches[key] = branch
        books = {key: self._placed(key) if head else Book() for key, head in heads.items()}
        return self._compared(books | failed)

    def _compared(self, books: Mapping[BookKey, Book]) -> Mapping[BookKey, Book]:
        """The books, compared with where their branches were last seen; noted if they descend."""
        last = {key: self._last_heads.of(self._branch(key)) for key in books}
        moved = [
            key
            for key, book in books.items()
            if book.head != last[key].head and book.failure is None
        ]
        found, seen = dict(books), {}
        for key in moved:
            book, before, ref = books[key], last[key], self._branch(key)
            decision = accepted(book.records)
            now = LastHead(book.head, decision.name if decision is not None else "")
            if self._begin_anew or not before.head or now.accepted != before.accepted:
                goes_on = True
            else:
                goes_on = self._descends(book.head, before.head)
            if not goes_on:
                found[key] = replace(book, rewound=self._rewound(key, book, before.head))
            elif not book.unreadable:  # one that is, may be put back to what it was before
                seen[ref] = now
        self._last_heads.note(seen)
        return found

    def _descends(self, head: str, before: str) -> bool:
        if not head:
            return False
        with self._repository.reader() as reader:
            return reader.contains(head, before)

    def _rewound(self, key: BookKey, book: Book, lost: str) -> Rewound:
        url, name = self._repository.remote.url, self._branch(key).removeprefix("refs/heads/")
        place, there = f"branch {name} of {url}", {record.name for record in book.records}
        try:
            with self._repository.reader() as reader:
                before = read_branch(reader, lost, key, Branch()).book.records
        except FanoutError:  # the mirror was made anew since
            return Rewound(place, lost)
        return Rewound(place, lost, tuple(it for it in before if it.name not in there))

    def blank(self) -> str:
        """Where nothing at all is on record for this installation; "" when something is.

        Raises Unavailable or Denied.
        """
        return self._repository.without(branches(self._install))

    def _seen(self, key: BookKey) -> Branch:
        return self._branches.get(key, Branch())

    def _placed(self, key: BookKey) -> Book:
        """The book; sentences say in which repository and branch the file is."""
        book = self._seen(key).book
        if not book.unreadable:
            return book
        url, name = self._repository.remote.url, self._branch(key).removeprefix("refs/heads/")
        return replace(
            book, unreadable=tuple(f"{url}, branch {name}: {line}" for line in book.unreadable)
        )

    def _branch(self, key: BookKey) -> str:
        return branch(self._install, key)

    def _heads(self, keys: Sequence[BookKey]) -> dict[BookKey, str]:
        heads = self._repository.heads(map(self._branch, keys))
        return {key: heads[self._branch(key)] for key in keys}

    # ---- writing -------------------------------------------------------------------------------

    def append(
        self, key: BookKey, records: Sequence[Mapping[str, Any]], by: Identity, at: datetime
    ) -> tuple[str, ...]:
        """Add records in one commit; answers their names.

        What was said before in the same second is said again, under a name of its own; but a lost
        race is run again under the same names, so nothing is written twice. Raises InvalidInput for
        a record that could not be read back, Conflict when the branch moved under each attempt of
        half a minute, Unavailable or Denied from Git.
        """
        for record in records:
            _refuse_invalid(record, key)
        taken = self._record_names(self._heads([key])[key])
        names, files = [], {}
        for record in records:
            data = canonical(record)
            names.append(record_name(data, f"{by.name} <{by.email}>", at, taken))
            files[record_path(names[-1])] = data
        kinds = ", ".join(sorted({str(record["kind"]) for record in records}))
        text = message(f"Record {kinds}", names)

        def add() -> None:
            head = self._heads([key])[key]
            there = set(map(record_path, self._record_names(head)))
            new = {path: data for path, data in files.items() if path not in there}
            if new:
                self._change([self._commit(key, head, new, text, at)], by)

        until_it_wins(add)
        return tuple(names)

    def put_status(
        self, changes: Mapping[BookKey, StatusChange], at: datetime
    ) -> Mapping[BookKey, str]:
        """Write the changed lines of all books in one atomic push, or nothing; answers the heads.

        Raises Conflict when a book is not where `expected` says, InvalidInput when a file to be
        changed cannot be read, Unavailable or Denied from Git.
        """
        commits = []
        for key, change in sorted(changes.items()):
            files = self._changed_shards(key, change)
            if files:
                text = f"Status of {key.namespace}/{key.policy or 'variants without policy'}\n"
                commits.append(self._commit(key, change.expected, files, text, at))
        refs = self._change(commits, self._identity) if commits else {}
        heads = {key: refs.get(self._branch(key), "") for key in changes}
        return {key: head or changes[key].expected for key, head in heads.items()}

    def _changed_shards(self, key: BookKey, change: StatusChange) -> dict[str, bytes]:
        """The new content of each status file that is another than before; empty: to be removed."""
        shards = self._shards(key, change.expected)
        touched: dict[str, dict[str, Mapping[str, Any]]] = {}
        for name, value in change.lines.items():
            path = shard_of(name)
            old = shards.get(path, Shard()).lines
            if old.get(name) == value:
                continue
            lines = touched.setdefault(path, dict(old))
            if value is None:
                del lines[name]
            else:
                lines[name] = value
        files = {path: write_shard(lines) for path, lines in touched.items()}
        return {
            path: data
            for path, data in files.items()
            if (blob_id(data) if data else "") != shards.get(path, Shard()).oid
        }

    def _shards(self, key: BookKey, head: str) -> Mapping[str, Shard]:
        if not head:
            return {}
        unreadable: list[str] = []
        with self._repository.reader() as reader:
            shards = read_shards(reader, head, self._seen(key).shards, unreadable)
        if unreadable:
            raise InvalidInput(
                f"the status on branch {self._branch(key)} cannot be read: {unreadable[0]}",
                reason="RecordsUnreadable",
                where=Where(f"UpstreamPolicy/{key.policy}" if key.policy else ""),
            )
        return shards

    def _record_names(self, head: str) -> frozenset[str]:
        if not head:
            return frozenset()
        with self._repository.reader() as reader:
            tree = reader.paths(head, [RECORDS])[RECORDS].tree
            files = reader.entries(tree, LIMITS) if tree else ()
            return frozenset(name.removesuffix(".json") for name in files)

    def _commit(
        self, key: BookKey, parent: str, files: Mapping[str, bytes], text: str, at: datetime
    ) -> FileCommit:
        put = {path: data for path, data in sorted(files.items()) if data}
        drop = tuple(sorted(files.keys() - put.keys()))
        return FileCommit(self._branch(key), parent, put, drop, text, int(at.timestamp()))

    def _change(self, commits: Sequence[FileCommit], by: Identity) -> Mapping[str, str]:
        expected = {commit.ref: commit.parent for commit in commits}
        written = self._repository.change(commits, expected, by)
        last = {commit.ref: self._last_heads.of(commit.ref) for commit in commits}
        self._last_heads.note(
            {
                ref: replace(before, head=written[ref])
                for ref, before in last.items()
                if not before.head or self._descends(written[ref], before.head)
            }
        )
        return written


def _refuse_invalid(record: Mapping[str, Any], key: BookKey) -> None:
    try:
        check_record(dict(record), key)
    except UnreadableError as error:
        raise InvalidInput(f"the record {error}", reason="InvalidRecord") from error

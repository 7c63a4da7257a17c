"""Reader of what the vendor branch states about publications."""

from collections.abc import Iterator, Mapping

from fanout.plan.commit_statement import (
    PublicationStatement,
    VendorMessage,
    parse_vendor_message,
)
from fanout.ports import ObjectReader
from fanout.values import Value, field

_MAX_COMMITS = 100_000  # of the vendor branch, with statements


class StatementIndex(Value):
    """The newest statement about each path, the used numbers, and the newest commit with either."""

    vendor_head: str = ""
    newest_commit: str = ""
    by_path: Mapping[str, PublicationStatement] = field(default_factory=dict)
    used_numbers: Mapping[str, int] = field(default_factory=dict)  # by path that was left


def list_statements(
    reader: ObjectReader, vendor_commit: str
) -> Iterator[tuple[str, VendorMessage]]:
    """Yield the commits that state something, newest first, from a commit of the vendor branch.

    The branch need not be whole: what the mirror lacks ends the list.
    """
    oid = vendor_commit
    # Bounded: anybody who may push can have pushed this branch.
    for _ in range(_MAX_COMMITS):
        if not oid or not reader.has(oid):
            return
        message = parse_vendor_message(reader.commit(oid).message)
        if message.statements or message.used_numbers:
            yield oid, message
        oid = message.previous


def read_statement_index(
    reader: ObjectReader, vendor_head: str, known: StatementIndex
) -> StatementIndex:
    """Return the newest statements at a head of the vendor branch.

    `known` are those of an earlier head; only what came after it is read.
    """
    if known.vendor_head == vendor_head:
        return known
    newest_commit = ""
    by_path: dict[str, PublicationStatement] = {}
    used_numbers: dict[str, int] = {}
    for oid, message in list_statements(reader, vendor_head):
        newest_commit = newest_commit or oid
        if oid == known.newest_commit:
            by_path = {**known.by_path, **by_path}
            used_numbers = {**known.used_numbers, **used_numbers}
            break
        for statement in message.statements:
            by_path.setdefault(statement.path, statement)
        for path, number in message.used_numbers.items():
            used_numbers.setdefault(path, number)
    return StatementIndex(vendor_head, newest_commit, by_path, used_numbers)

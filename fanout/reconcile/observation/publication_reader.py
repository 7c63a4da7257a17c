"""Reader of what the vendor branch states about publications."""

from collections.abc import Iterator, Mapping, Sequence

from fanout.plan.publication_statement import PublicationStatement, parse_vendor_message
from fanout.ports import ObjectReader
from fanout.values import Value, field

_MAX_COMMITS = 100_000  # of the vendor branch, with statements


class StatementIndex(Value):
    """The newest statement about each path, and the newest commit that has any."""

    vendor_head: str = ""
    newest_commit: str = ""
    by_path: Mapping[str, PublicationStatement] = field(default_factory=dict)


def list_statements(
    reader: ObjectReader, vendor_commit: str
) -> Iterator[tuple[str, Sequence[PublicationStatement]]]:
    """Yield the commits with statements, newest first, from a commit of the vendor branch.

    The branch need not be whole: what the mirror lacks ends the list.
    """
    oid = vendor_commit
    # Bounded: anybody who may push can have pushed this branch.
    for _ in range(_MAX_COMMITS):
        if not oid or not reader.has(oid):
            return
        message = parse_vendor_message(reader.commit(oid).message)
        if message.statements:
            yield oid, message.statements
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
    for oid, statements in list_statements(reader, vendor_head):
        newest_commit = newest_commit or oid
        if oid == known.newest_commit:
            by_path = {**known.by_path, **by_path}
            break
        for statement in statements:
            by_path.setdefault(statement.path, statement)
    return StatementIndex(vendor_head, newest_commit, by_path)

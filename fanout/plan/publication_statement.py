"""Statements of vendor commits about publications.

A vendor commit that moves a rendering from `drafts/` to `published/` repeats what the draft's
commit says of the package, with the tag of the publication and its commit on the target branch
(design-forges, "Git"). History, lost records and path ownership are read from these statements
where a squash, a rebase or a missing tag left no trailers on the branch.
"""

from collections.abc import Iterable, Mapping

from fanout.api.commit_trailers import Trailer
from fanout.plan.commit_statement import (
    SHARED_FIELDS,
    PackageStatement,
    format_package,
    parse_package,
)
from fanout.selection.ref_names import parse_publication_number, tag_ref
from fanout.values import Value

# Of the lines that each statement of a commit has for itself. Readers refuse a commit of 4 MiB.
_MAX_STATEMENT_BYTES = 1 << 20


class PublicationStatement(Value, kw_only=True):
    """Statement about one publication: its number at the path, and what was published."""

    path: str
    number: int
    trailers: PackageStatement
    merge: str = ""  # commit on the target branch; "": made by the same push

    @property
    def tag(self) -> str:
        """Return the full ref name of the publication's tag, which need not exist."""
        return tag_ref(self.path, self.number)


class VendorMessage(Value):
    """Message of a vendor commit.

    `previous` is the newest earlier vendor commit with statements, so that readers need not
    walk the commits between them; "": there is none.
    """

    statements: tuple[PublicationStatement, ...] = ()
    previous: str = ""


def format_vendor_message(
    message: str, statements: Iterable[PublicationStatement], previous: str
) -> str:
    """Return the message of a vendor commit with its statements; see `VendorMessage`."""
    lines: list[str] = []
    shared_lines: dict[Trailer, str] = {}
    for statement in sorted(statements, key=_sort_key):
        # A line holds for all packages that follow, until another one with the same key.
        for key, value in _shared_values(statement).items():
            if shared_lines.get(key) != value:
                lines.append(f"{key}: {value}")
        shared_lines = _shared_values(statement)
        lines += _format_own_lines(statement)
    if previous:
        lines.append(f"{Trailer.PREVIOUS}: {previous}")
    return "\n".join([message, *lines, ""]) if lines else message


def split_statements(
    statements: Iterable[PublicationStatement],
) -> list[list[PublicationStatement]]:
    """Split statements by the commits that state them, none of them too large; at least one."""
    parts: list[list[PublicationStatement]] = [[]]
    size = 0
    for statement in sorted(statements, key=_sort_key):
        added = sum(len(line.encode()) for line in _format_own_lines(statement))
        if size + added > _MAX_STATEMENT_BYTES and parts[-1]:
            parts.append([])
            size = 0
        parts[-1].append(statement)
        size += added
    return parts


def _sort_key(statement: PublicationStatement) -> tuple[str, ...]:
    return (*_shared_values(statement).values(), statement.path)


def _format_own_lines(statement: PublicationStatement) -> tuple[str, str]:
    tag = statement.tag.removeprefix("refs/tags/")
    return format_package(statement.path, statement.trailers), f"{Trailer.TAG}: {tag}"


def _shared_values(statement: PublicationStatement) -> dict[Trailer, str]:
    values = {key: getattr(statement.trailers, name) for key, name in SHARED_FIELDS.items()}
    return {**values, Trailer.MERGE: statement.merge}


def parse_vendor_message(message: str) -> VendorMessage:
    """Parse the message of a vendor commit. Lines that cannot be understood are left out."""
    shared: dict[str, str] = {}
    package: tuple[str, Mapping[str, str]] | None = None
    statements: list[PublicationStatement] = []
    previous = ""
    for line in message.rstrip("\n").rpartition("\n\n")[2].split("\n"):
        key, _, value = line.partition(": ")
        if key in (*SHARED_FIELDS, Trailer.MERGE):
            shared[key] = value
        elif key == Trailer.PACKAGE:
            package = parse_package(value)
        elif key == Trailer.TAG and package is not None:
            path, number = package[0], parse_publication_number(value, package[0])
            if len(shared) > len(SHARED_FIELDS) and number:
                fields = {name: shared[it] for it, name in SHARED_FIELDS.items()}
                statements.append(
                    PublicationStatement(
                        path=path,
                        number=number,
                        trailers=PackageStatement(**fields, **package[1]),
                        merge=shared[Trailer.MERGE],
                    )
                )
        elif key == Trailer.PREVIOUS:
            previous = value
    return VendorMessage(tuple(statements), previous)

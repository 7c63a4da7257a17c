"""Statements of vendor commits about publications.

A vendor commit that moves a rendering from `drafts/` to `published/` repeats what the draft's
commit says of the package, with the tag of the publication and its commit on the target branch
(docs/concepts/drafts-and-git.md). History, lost records and path ownership are read from these
statements where a squash, a rebase or a missing tag left no trailers on the branch.

The vendor commit that follows when a variant leaves a path names the newest publication there, so
that its number is not used again when something comes back to the path without its tag.
"""

from collections.abc import Iterable, Mapping, Sequence

from fanout.api.commit_trailers import Trailer
from fanout.plan.commit_statement import (
    SHARED_FIELDS,
    PackageStatement,
    format_package,
    parse_package,
)
from fanout.selection.ref_names import parse_publication_number, parse_publication_tag, tag_ref
from fanout.values import Value, field

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

    `used_numbers` has the highest number so far of each path that a variant left. `previous` is the
    newest earlier vendor commit with either, so that readers need not walk the commits between
    them; "": there is none.
    """

    statements: tuple[PublicationStatement, ...] = ()
    used_numbers: Mapping[str, int] = field(default_factory=dict)  # by path
    previous: str = ""


def format_vendor_message(subject: str, message: VendorMessage) -> str:
    """Return the text of the message of a vendor commit; `subject` is what is above its lines."""
    lines: list[str] = []
    shared_lines: dict[Trailer, str] = {}
    for statement in sorted(message.statements, key=_sort_key):
        # A line holds for all packages that follow, until another one with the same key.
        for key, value in _shared_values(statement).items():
            if shared_lines.get(key) != value:
                lines.append(f"{key}: {value}")
        shared_lines = _shared_values(statement)
        lines += _format_own_lines(statement)
    lines += [_format_used_line(*it) for it in sorted(message.used_numbers.items())]
    if message.previous:
        lines.append(f"{Trailer.PREVIOUS}: {message.previous}")
    return "\n".join([subject, *lines, ""]) if lines else subject


def split_statements(
    statements: Iterable[PublicationStatement], used_numbers: Mapping[str, int]
) -> list[VendorMessage]:
    """Split what is stated by the commits that state it, none of them too large; at least one."""
    own_lines: list[tuple[PublicationStatement | tuple[str, int], Sequence[str]]] = [
        (it, _format_own_lines(it)) for it in sorted(statements, key=_sort_key)
    ]
    own_lines += [(it, (_format_used_line(*it),)) for it in sorted(used_numbers.items())]
    parts: list[list[PublicationStatement | tuple[str, int]]] = [[]]
    size = 0
    for stated, lines in own_lines:
        added = sum(len(line.encode()) for line in lines)
        if size + added > _MAX_STATEMENT_BYTES and parts[-1]:
            parts.append([])
            size = 0
        parts[-1].append(stated)
        size += added
    return [
        VendorMessage(
            tuple(it for it in part if isinstance(it, PublicationStatement)),
            dict(it for it in part if isinstance(it, tuple)),
        )
        for part in parts
    ]


def _sort_key(statement: PublicationStatement) -> tuple[str, ...]:
    return (*_shared_values(statement).values(), statement.path)


def _format_own_lines(statement: PublicationStatement) -> tuple[str, str]:
    tag = statement.tag.removeprefix("refs/tags/")
    return format_package(statement.path, statement.trailers), f"{Trailer.TAG}: {tag}"


def _format_used_line(path: str, number: int) -> str:
    return f"{Trailer.USED}: {tag_ref(path, number).removeprefix('refs/tags/')}"


def _shared_values(statement: PublicationStatement) -> dict[Trailer, str]:
    values = {key: getattr(statement.trailers, name) for key, name in SHARED_FIELDS.items()}
    return {**values, Trailer.MERGE: statement.merge}


def parse_vendor_message(message: str) -> VendorMessage:
    """Parse the message of a vendor commit. Lines that cannot be understood are left out."""
    shared: dict[str, str] = {}
    package: tuple[str, Mapping[str, str]] | None = None
    statements: list[PublicationStatement] = []
    used_numbers: dict[str, int] = {}
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
        elif key == Trailer.USED:
            path, number = parse_publication_tag(value)
            if number:
                used_numbers[path] = number
        elif key == Trailer.PREVIOUS:
            previous = value
    return VendorMessage(tuple(statements), used_numbers, previous)

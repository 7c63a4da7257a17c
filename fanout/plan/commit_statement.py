"""Statements of fanout's commits about packages: one grammar for all branches.

A branch of fanout has a set of packages that it writes or removes. Each of its commits states, in
the last paragraph of its message, which set it is of and what it does to which packages. The lines
of a set hold for all packages of the commit; each package has a line of its own. What is on a
branch is read back from these lines alone, and their order means nothing.

A commit of the vendor branch that moves a rendering from `drafts/` to `published/` repeats what the
draft's commit says of the package, with the tag of the publication and its commit on the target
branch. History, lost records and path ownership are read from these
statements where a squash, a rebase or a missing tag left no trailers on the branch. The vendor
commit that follows when a variant leaves a path names the newest publication there, so that its
number is not used again when something comes back to the path without its tag.
"""

from collections.abc import Iterable, Mapping, Sequence

from fanout.api.commit_trailers import Trailer
from fanout.plan.commit_text import disarm_references, restore_references
from fanout.selection.ref_names import (
    NO_STAGE,
    drafts_prefix,
    install_of,
    parse_publication_number,
    parse_publication_tag,
    set_name,
    tag_ref,
)
from fanout.values import Value, field

NO_VALUE = "none"  # `onto` of a package that is not on the branch yet; no conflicts
_PREFIX = "Fanout-"


class PackageVersion(Value):
    """Version of a variant's package: the upstream revision in it, and what was made of that."""

    revision: str
    commit: str  # upstream commit
    digest: str  # of the inputs of the rendering
    tree: str  # id of the package's tree, with its downstream edits


class PackageStatement(PackageVersion, kw_only=True):
    """Statement about one package that a commit writes; `tree` is the one that fanout wrote."""

    install: str
    policy: str  # "<namespace>/<name>"; of a variant written by hand "<namespace>/"
    variant: str
    stage: str  # "none": none
    onto: str  # id of the package's tree on the branch that the draft was written for
    conflicts: str = NO_VALUE  # values that both sides changed, see `merge_disputes`
    takes: str = ""  # tips of earlier drafts whose commits by people it contains
    rendered: str = ""  # id of the tree without downstream edits; "": older version


class CommitStatement(Value, kw_only=True):
    """Statement of one commit about the packages of its set.

    All packages that one commit writes have one upstream revision and commit.
    """

    ref: str  # full, of the branch that it is for; "": an earlier version, which did not name it
    policy: str  # "<namespace>/<name>"; of drafts of variants written by hand "<namespace>/"
    stage: str  # "": none
    base: str  # the commit of the target branch that the branch begins on
    # By path; "" for the one package of a commit of an earlier version.
    packages: Mapping[str, PackageStatement] = field(default_factory=dict)
    removed: tuple[str, ...] = ()  # paths of packages that are removed, or leave the set
    restored: tuple[str, ...] = ()  # paths that an earlier commit removed, and that stay after all


# Lines of the whole commit, and the fields that have them.
_OWNER_FIELDS: dict[str, str] = {
    Trailer.INSTALL: "install",
    Trailer.POLICY: "policy",
    Trailer.STAGE: "stage",
}
_SET_FIELDS: dict[str, str] = {**_OWNER_FIELDS, Trailer.SET: "set", Trailer.BASE: "base"}
_SOURCE_FIELDS: dict[str, str] = {Trailer.REVISION: "revision", Trailer.COMMIT: "commit"}
# What packages of one commit have in common.
SHARED_FIELDS = _OWNER_FIELDS | _SOURCE_FIELDS
_PACKAGE_FIELDS = ("variant", "digest", "onto", "tree", "rendered")
_VARIANT_FIELDS: Mapping[str, str] = {Trailer.CONFLICTS: "conflicts", Trailer.TAKES: "takes"}


def state_packages(
    ref: str, base: str, packages: Mapping[str, PackageStatement]
) -> CommitStatement:
    """Return the statement of a commit that writes packages of one policy and stage."""
    first = next(iter(packages.values()))
    stage = "" if first.stage == NO_STAGE else first.stage
    return CommitStatement(ref=ref, policy=first.policy, stage=stage, base=base, packages=packages)


def format_message(subject: str, statement: CommitStatement, body: str = "") -> str:
    """Format a commit's message: subject, `body` for people, statement as last paragraph."""
    lines = [
        f"{Trailer.INSTALL}: {install_of(statement.ref)}",
        f"{Trailer.POLICY}: {statement.policy}",
        f"{Trailer.STAGE}: {statement.stage or NO_STAGE}",
        f"{Trailer.SET}: {set_name(statement.ref)}",
        f"{Trailer.BASE}: {statement.base}",
    ]
    if packages := sorted(statement.packages.items()):
        lines += [f"{key}: {getattr(packages[0][1], it)}" for key, it in _SOURCE_FIELDS.items()]
    for path, package in packages:
        lines.append(format_package(path, package))
        if package.conflicts != NO_VALUE:
            lines.append(f"{Trailer.CONFLICTS}: {package.variant} {package.conflicts}")
        if package.takes:
            lines.append(f"{Trailer.TAKES}: {package.variant} {package.takes}")
    lines += [f"{Trailer.REMOVED}: {path}" for path in sorted(statement.removed)]
    lines += [f"{Trailer.RESTORED}: {path}" for path in sorted(statement.restored)]
    text = body.strip("\n")
    above = f"{subject.strip()}\n\n{text}\n" if text else f"{subject.strip()}\n"
    return disarm_references(f"{above}\n" + "".join([f"{line}\n" for line in lines]))


def format_package(path: str, package: PackageStatement) -> str:
    """Format the line of one package."""
    # The path comes last, because it alone may contain spaces.
    return (
        f"{Trailer.PACKAGE}: {package.variant} {package.digest} {package.onto} {package.tree}"
        f" {package.rendered or package.tree} {path}"
    )


def parse_package(value: str) -> tuple[str, dict[str, str]] | None:
    """Parse the value of a package's line into its path and fields; None if it is malformed."""
    words = value.split(" ", maxsplit=len(_PACKAGE_FIELDS))
    if len(words) <= len(_PACKAGE_FIELDS):
        return None
    *values, path = words
    return path, dict(zip(_PACKAGE_FIELDS, values, strict=True))


def parse_message(message: str) -> CommitStatement | None:
    """Parse the message of a commit; None if it states nothing about packages.

    Lines of others, such as `Signed-off-by`, are left alone. A line of fanout that cannot be
    understood makes it none: a newer version wrote it, or somebody who is not fanout.
    """
    message = restore_references(message)
    set_fields: dict[str, str] = {}
    source: dict[str, str] = {}
    packages: dict[str, dict[str, str]] = {}
    paths: dict[str, list[str]] = {Trailer.REMOVED: [], Trailer.RESTORED: []}
    variant_lines: list[tuple[str, str]] = []
    pairs = split_trailers(message)
    for key, value in pairs:
        if key in _SET_FIELDS:
            set_fields[_SET_FIELDS[key]] = value
        elif key in _SOURCE_FIELDS:
            source[_SOURCE_FIELDS[key]] = value
        elif key == Trailer.VARIANT:
            # A draft of an earlier version, of one variant, named neither its path nor its base.
            fields = {_EARLIER_FIELDS[it]: value for it, value in pairs if it in _EARLIER_FIELDS}
            if fields.keys() < set(_EARLIER_FIELDS.values()) - _EARLIER_OPTIONAL:
                return None
            return state_packages("", "", {"": PackageStatement(**fields)})
        elif key == Trailer.PACKAGE and (package := parse_package(value)) is not None:
            packages[package[0]] = package[1]
        elif key in paths and value:
            paths[key].append(value)
        elif key in _VARIANT_FIELDS:
            variant_lines.append((_VARIANT_FIELDS[key], value))
        elif key.startswith(_PREFIX):
            return None
    by_variant = {package["variant"]: package for package in packages.values()}
    for name, value in variant_lines:
        variant, _, rest = value.partition(" ")
        if variant not in by_variant:
            return None
        by_variant[variant][name] = rest
    name = set_fields.pop("set", "")
    if len(set_fields) < len(_SET_FIELDS) - 1 or (packages and len(source) < len(_SOURCE_FIELDS)):
        return None
    base = set_fields.pop("base")
    shared = set_fields | source
    return CommitStatement(
        ref=f"{drafts_prefix(set_fields['install'])}{name}" if name else "",
        policy=set_fields["policy"],
        stage="" if set_fields["stage"] == NO_STAGE else set_fields["stage"],
        base=base,
        packages={path: PackageStatement(**shared, **it) for path, it in packages.items()},
        removed=tuple(paths[Trailer.REMOVED]),
        restored=tuple(paths[Trailer.RESTORED]),
    )


def split_trailers(message: str) -> list[tuple[str, str]]:
    """Return keys and values of the lines of the last paragraph that have both."""
    pairs = (it.partition(": ") for it in message.rstrip("\n").rpartition("\n\n")[2].split("\n"))
    return [(key, value) for key, colon, value in pairs if colon]


def parse_last_record(message: str) -> str:
    """Parse the name of the record in the message of a publication, or "" without one."""
    for line in reversed(message.rstrip().splitlines()):
        key, colon, value = line.partition(":")
        if colon and key == Trailer.RECORDS.value:
            return value.strip()
        if not line:
            break
    return ""


# The lines of a draft of one variant, as earlier versions wrote them. Drafts and publications of
# those stay readable until the variant's next publication.
_EARLIER_FIELDS: Mapping[str, str] = {
    **SHARED_FIELDS,
    Trailer.VARIANT: "variant",
    Trailer.DIGEST: "digest",
    Trailer.ONTO: "onto",
    Trailer.TREE: "tree",
    **_VARIANT_FIELDS,
    Trailer.RENDERED: "rendered",
}
_EARLIER_OPTIONAL = frozenset({"takes", "rendered"})


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
    shared_lines: dict[str, str] = {}
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


def _shared_values(statement: PublicationStatement) -> dict[str, str]:
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

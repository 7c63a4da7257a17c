"""Trailers of draft commits and messages of publications (design §5, commit trailers)."""

import re
from collections.abc import Sequence
from operator import attrgetter

from fanout.api.commit_trailers import Trailer
from fanout.selection.ref_names import draft_ref
from fanout.values import Value

_TRAILER = re.compile(r"[A-Za-z][A-Za-z0-9-]*: ")
NO_VALUE = "none"  # `Fanout-Onto` of a package that is not on the branch yet


class PackageVersion(Value):
    """Version of a variant's package: the upstream revision in it, and what was made of that."""

    revision: str
    commit: str  # upstream commit
    digest: str  # of the inputs of the rendering
    tree: str  # id of the package's tree, with its downstream edits


class DraftTrailers(PackageVersion, kw_only=True):
    """The trailers of one draft commit; `tree` is the one that fanout wrote.

    The fields are filled in from the table of keys by name.
    """

    install: str
    policy: str  # "<namespace>/<name>"; of a variant written by hand "<namespace>/"
    variant: str
    stage: str
    onto: str  # id of the package's tree on the branch that the draft was written for
    conflicts: str = "none"  # values that both sides changed, see `merge_disputes`
    takes: str = ""  # tips of earlier drafts whose commits by people it contains
    rendered: str = ""  # id of the tree without downstream edits; "": older version

    def ref_at(self, path: str) -> str:
        """Return the full ref of the branch of a draft of this package alone, at its path."""
        return draft_ref(self.install, path, self.policy.partition("/")[2] or self.variant)

    def as_paragraph(self) -> str:
        """Return the last paragraph of the commit message."""
        values = zip(_KEYS, _VALUES(self), strict=True)
        return "".join([f"{key}: {value}\n" for key, value in values if value])


class ChainTrailers(Value, kw_only=True):
    """Trailers of each commit of a draft that is a chain of commits about several packages."""

    install: str
    policy: str  # "<namespace>/<name>"
    stage: str  # "": none
    base: str  # the commit of the target branch that the chain begins on


_KEYS = {
    Trailer.INSTALL.value: "install",
    Trailer.POLICY.value: "policy",
    Trailer.VARIANT.value: "variant",
    Trailer.STAGE.value: "stage",
    Trailer.REVISION.value: "revision",
    Trailer.COMMIT.value: "commit",
    Trailer.DIGEST.value: "digest",
    Trailer.ONTO.value: "onto",
    Trailer.TREE.value: "tree",
    Trailer.CONFLICTS.value: "conflicts",
    Trailer.TAKES.value: "takes",
    Trailer.RENDERED.value: "rendered",
}
_VALUES = attrgetter(*_KEYS.values())
# Older versions wrote drafts without these two, and such drafts must stay
# readable.
_REQUIRED = frozenset(_KEYS.values()) - {"takes", "rendered"}


def parse_trailers(message: str) -> DraftTrailers | None:
    """Parse the trailers of a commit message; None if it is not one of fanout's drafts."""
    values: dict[str, str] = {}
    for line in message.rstrip("\n").rpartition("\n\n")[2].split("\n"):
        key, colon, value = line.partition(":")
        if colon and key in _KEYS:
            values[_KEYS[key]] = value.strip()
    return DraftTrailers(**values) if values.keys() >= _REQUIRED else None


def format_draft_message(subject: str, trailers: DraftTrailers, body: str = "") -> str:
    """Format a draft's commit message: subject, body, trailers as last paragraph."""
    above = f"{subject.strip()}\n\n{body}" if body else f"{subject.strip()}\n"
    return f"{above}\n{trailers.as_paragraph()}"


# Trailers that hold for all packages of a commit, and the fields that have them.
SHARED_FIELDS = {
    Trailer.INSTALL: "install",
    Trailer.POLICY: "policy",
    Trailer.STAGE: "stage",
    Trailer.REVISION: "revision",
    Trailer.COMMIT: "commit",
}
_PACKAGE_FIELDS = ("variant", "digest", "onto", "tree", "rendered")


def format_package(path: str, package: DraftTrailers) -> str:
    """Format the line of one package."""
    # The path comes last, because it alone may contain spaces.
    return (
        f"{Trailer.PACKAGE}: {package.variant} {package.digest} {package.onto} {package.tree}"
        f" {package.rendered or package.tree} {path}"
    )


def parse_package(value: str) -> tuple[str, dict[str, str]] | None:
    """Parse the value of a package's line into its path and trailers; None if it is malformed."""
    words = value.split(" ", maxsplit=len(_PACKAGE_FIELDS))
    if len(words) <= len(_PACKAGE_FIELDS):
        return None
    *values, path = words
    return path, dict(zip(_PACKAGE_FIELDS, values, strict=True))


def with_paragraph(message: str, paragraph: str) -> str:
    """Return the message with one more paragraph, before its trailers if it has some."""
    if not paragraph:
        return message
    head, _, last = message.strip("\n").rpartition("\n\n")
    # Git reads trailers from the last paragraph only, so other text goes above it.
    if head and all(_TRAILER.match(line) for line in last.split("\n")):
        return f"{head}\n\n{paragraph}\n{last}\n"
    text = message.strip("\n")
    return f"{text}\n\n{paragraph}"


def with_trailers(message: str, lines: Sequence[str]) -> str:
    """Return the message with more trailers, in its last paragraph if that has trailers."""
    if not lines:
        return message
    text = message.rstrip()
    head, _, last = text.rpartition("\n\n")
    has_trailers = head and all(_TRAILER.match(line) for line in last.split("\n"))
    gap = "" if has_trailers else "\n"
    return f"{text}\n{gap}" + "".join(f"{line}\n" for line in lines)


def parse_last_record(message: str) -> str:
    """Parse the name of the record in the message of a publication, or "" without one."""
    for line in reversed(message.rstrip().splitlines()):
        key, colon, value = line.partition(":")
        if colon and key == Trailer.RECORDS.value:
            return value.strip()
        if not line:
            break
    return ""

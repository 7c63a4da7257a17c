"""What a draft commit says about itself, written and read. (Design §5: commit trailers.)"""

import re
from operator import attrgetter

from fanout.api.trailers import Trailer
from fanout.values import frozen

_TRAILER = re.compile(r"[A-Za-z][A-Za-z0-9-]*: ")
NONE = "none"  # `Fanout-Onto` of a package that is not on the branch yet


@frozen
class Trailers:
    """The trailers of one draft commit."""

    install: str
    policy: str  # "<namespace>/<name>"; of a variant written by hand "<namespace>/"
    variant: str
    stage: str
    revision: str
    commit: str  # upstream commit
    digest: str
    onto: str  # id of the package's tree on the branch that the draft was written for
    tree: str  # id of the package's tree as fanout wrote it
    conflicts: str = "none"  # values that both sides changed, see `disputes`
    takes: str = ""  # tips of drafts whose commits by people are in this one
    rendered: str = ""  # id of the tree without anybody's edits; "": an older fanout wrote it

    def text(self) -> str:
        """The last paragraph of the commit message."""
        values = zip(_KEYS, _VALUES(self), strict=True)
        return "".join([f"{key}: {value}\n" for key, value in values if value])


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
_ALWAYS = frozenset(_KEYS.values()) - {"takes", "rendered"}


def read_trailers(message: str) -> Trailers | None:
    """The trailers of a commit message, None when it is not one of fanout's drafts."""
    values: dict[str, str] = {}
    for line in message.rstrip("\n").rpartition("\n\n")[2].split("\n"):
        key, colon, value = line.partition(":")
        if colon and key in _KEYS:
            values[_KEYS[key]] = value.strip()
    return Trailers(**values) if values.keys() >= _ALWAYS else None


def draft_message(subject: str, trailers: Trailers, body: str = "") -> str:
    """A subject and body, then the trailers as a paragraph of their own."""
    above = f"{subject.strip()}\n\n{body}" if body else f"{subject.strip()}\n"
    return f"{above}\n{trailers.text()}"


def with_paragraph(message: str, paragraph: str) -> str:
    """The message with one more paragraph, before its trailers if it ends with some."""
    if not paragraph:
        return message
    head, _, last = message.strip("\n").rpartition("\n\n")
    if head and all(_TRAILER.match(line) for line in last.split("\n")):
        return f"{head}\n\n{paragraph}\n{last}\n"
    text = message.strip("\n")
    return f"{text}\n\n{paragraph}"


def with_records(message: str, records: str) -> str:
    """The message of a publication with the last record that its release knew.

    That a commit names one also says that its release was recorded before it was made.
    """
    text = message.rstrip()
    head, _, last = text.rpartition("\n\n")
    among = head and all(_TRAILER.match(line) for line in last.split("\n"))
    gap = "" if among else "\n"
    return f"{text}\n{gap}{Trailer.RECORDS.value}: {records}\n"


def read_records(message: str) -> str:
    """The record that the message of a publication names; "" where it names none."""
    for line in reversed(message.rstrip().splitlines()):
        key, colon, value = line.partition(":")
        if colon and key == Trailer.RECORDS.value:
            return value.strip()
        if not line:
            break
    return ""


def publication_message(policy: str, stage: str, revision: str, variants: list[str]) -> str:
    """The message of a merge: which variants of which stage came into force at which revision."""
    what = variants[0] if len(variants) == 1 else f"{len(variants)} variants"
    of = f" of stage {stage}" if stage else ""
    listed = "".join(f"* {variant}\n" for variant in variants)
    return f"Publish {what}{of} at {revision}\n\n{listed}\n{Trailer.POLICY.value}: {policy}\n"

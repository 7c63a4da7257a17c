"""Who recorded what, and when: the commit that first brought a file says it, nothing in it does.

A record cannot be back-dated by what it says about itself. Instants are as the committers' clocks
had them; which of them count is decided when they are used (`fanout.plan.dates`). (Design §2 "Who
`by` is", §6 "Checks".)
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import UTC, datetime

from fanout.cluster.books import LIMITS, RECORDS
from fanout.package.tree import Entry
from fanout.plan.repository import Commit
from fanout.ports import Reader
from fanout.values import frozen

_TRAILER = "Fanout-Record"
_NAMED = re.compile(rf"^{_TRAILER}: (\S+)$", re.MULTILINE)


@frozen
class Arrival:
    """How a file came: the committer's instant and name, and the content it had.

    Without the content's id only a commit message says that the file came so.
    """

    at: datetime
    by: str
    oid: str = ""


@frozen
class History:
    """All files that ever were in `records`, in the order in which they came."""

    head: str = ""
    tree: str | None = None  # of `records` at the head
    arrivals: Mapping[str, Arrival] = field(default_factory=dict)  # by file name


def message(subject: str, names: Iterable[str]) -> str:
    """The message of a commit that brings these records."""
    lines = "".join(f"{_TRAILER}: {name}\n" for name in dict.fromkeys(names))
    return f"{subject}\n\n{lines}"


def walk(reader: Reader, head: str, known: History, *, trusting: bool = True) -> History:
    """The history at `head`; of what `known` covers nothing is read again.

    Follows first parents: what a person merges into the branch arrives with the merge. Listing the
    directory at each commit would take time with the square of the number of records; so a commit
    that names its records is believed, and whoever reads must hold each against its hash. When that
    fails or a file is in no arrival, walk again without `trusting` and without `known`.
    """
    commits, known = _unseen(reader, head, known)
    tree = known.tree
    arrivals = dict(known.arrivals)
    files: Mapping[str, Entry] | None = None  # of `tree`, if listed
    for commit in reversed(commits):
        before, tree = tree, reader.paths(commit.oid, [RECORDS])[RECORDS].tree
        if tree == before:
            continue
        named = _NAMED.findall(commit.message) if trusting else []
        brought = {f"{name}.json": "" for name in named}
        if named:
            files = None
        else:
            there = listed(reader, before) if files is None else files
            files = listed(reader, tree)
            brought = {name: files[name].oid for name in files.keys() - there.keys()}
        arrival = Arrival(datetime.fromtimestamp(commit.when, UTC), commit.committer)
        for name in sorted(brought.keys() - arrivals.keys()):
            arrivals[name] = Arrival(arrival.at, arrival.by, brought[name])
    return History(head, tree, arrivals)


def listed(reader: Reader, tree: str | None) -> Mapping[str, Entry]:
    """The files below a directory that may not be there."""
    return reader.entries(tree, LIMITS) if tree else {}


def _unseen(reader: Reader, head: str, known: History) -> tuple[list[Commit], History]:
    commits: list[Commit] = []
    oid = head
    while oid and oid != known.head:
        commits.append(reader.commit(oid))
        oid = next(iter(commits[-1].parents), "")
    # The branch was rewritten when the known head is not on it: all is read anew.
    return commits, known if oid else History()

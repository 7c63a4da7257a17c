"""Who recorded what, and when: the commit that first brought a file says it, nothing in it does.

A record cannot be back-dated by what it says about itself, and its instant is never before that of
the record before it. (Design §2 "Who `by` is", §6 "Checks".)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fanout.cluster.books import RECORDS
from fanout.package.tree import Entry
from fanout.plan.repository import Commit
from fanout.ports import Reader


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a file came: its content at that time, the committer's instant and name."""

    oid: str
    at: datetime
    by: str


@dataclass(frozen=True, slots=True)
class History:
    """All files that ever were in `records`, in the order in which they came."""

    head: str = ""
    tree: str | None = None  # of `records` at the head
    entries: Mapping[str, Entry] = field(default_factory=dict)  # the same, listed
    arrivals: Mapping[str, Arrival] = field(default_factory=dict)
    last: int = 0  # no later record is earlier than this


def walk(reader: Reader, head: str, known: History) -> History:
    """The history at `head`; of what `known` covers nothing is read again.

    Follows first parents: what a person merges into the branch arrives with the merge. Commits that
    leave `records` as it was cost two small reads, the others a listing of the directory.
    """
    commits, known = _unseen(reader, head, known)
    tree, entries, last = known.tree, known.entries, known.last
    arrivals = dict(known.arrivals)
    for commit in reversed(commits):
        now = reader.paths(commit.oid, [RECORDS])[RECORDS].tree
        if now == tree:
            continue
        tree, entries = now, reader.entries(now) if now else {}
        last = max(last, commit.when)
        at = datetime.fromtimestamp(last, UTC)
        for name in sorted(entries.keys() - arrivals.keys()):
            arrivals[name] = Arrival(entries[name].oid, at, commit.committer)
    return History(head, tree, entries, arrivals, last)


def _unseen(reader: Reader, head: str, known: History) -> tuple[list[Commit], History]:
    commits: list[Commit] = []
    oid = head
    while oid and oid != known.head:
        commits.append(reader.commit(oid))
        oid = next(iter(commits[-1].parents), "")
    # The branch was rewritten when the known head is not on it: all is read anew.
    return commits, known if oid else History()

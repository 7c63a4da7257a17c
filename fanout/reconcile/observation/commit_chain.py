"""Reader of a chain of commits: a draft on a head of the target branch, with commits of people."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from fanout.plan.observation.repository_state import Commit
from fanout.ports import ObjectReader
from fanout.values import Value

_MAX_EDIT_COMMITS = 64  # commits by people on top of fanout's newest one
_MAX_COMMITS = 4096  # of a chain
_MAX_TARGET_COMMITS = 100_000  # of the target branch above a commit of a draft


class ChainStatement(Protocol):
    """Statement of a commit of fanout, in its trailers."""

    @property
    def ref(self) -> str:
        """Return the full ref of the branch that the commit was written for."""

    @property
    def base(self) -> str:
        """Return the commit of the target branch that the chain begins on."""


Statement = TypeVar("Statement", bound=ChainStatement)


class ChainCommit(Value, Generic[Statement]):
    """One commit of a chain; `stated` is None for a commit that fanout did not write for it."""

    commit: Commit
    stated: Statement | None


def read_chain(
    reader: ObjectReader,
    ref: str,
    tip: str,
    target_head: str,
    parse: Callable[[str], Statement | None],
) -> Sequence[ChainCommit[Statement]] | None:
    """Return the commits of the chain, newest first; None if the branch is not a chain.

    The chain ends above the first commit that the target branch has. `parse` reads what a message
    states; None if it is not one of fanout's. Raises InvalidInput for a commit that cannot be read.
    """
    chain: list[ChainCommit[Statement]] = []
    base, oid = "", tip
    # Bounded: a branch below drafts/ may be pushed by anyone, with any history.
    for _ in range(_MAX_COMMITS):
        if oid == base or (
            oid != tip and is_of_target(reader, oid, tip=tip, target_head=target_head)
        ):
            return chain if base else None
        commit = reader.commit(oid)
        stated = parse(commit.message)
        if stated is not None and stated.ref != ref:
            stated = None
        if stated is not None and base not in ("", stated.base):
            return None
        base = stated.base if stated is not None else base
        chain.append(ChainCommit(commit, stated))
        if not commit.parents or (not base and len(chain) > _MAX_EDIT_COMMITS):
            return None
        oid = commit.parents[0]
    return None


def is_of_target(reader: ObjectReader, commit: str, *, tip: str, target_head: str) -> bool:
    """Return whether a commit below the tip of a draft is one of the target branch.

    A rebase puts commits with the trailers of a draft on the target branch; nothing from there on
    is part of a draft that somebody begins on them. A merge has the draft beside the branch, as
    further parents: its commits are still those of the draft, also below what came later.
    """
    if not reader.contains(target_head, commit) or reader.contains(target_head, tip):
        return False
    oid = target_head
    for _ in range(_MAX_TARGET_COMMITS):
        if oid == commit:
            return True
        parents = reader.commit(oid).parents
        if not parents:
            return False
        oid = parents[0]
    return True  # nothing is written over what might be of others

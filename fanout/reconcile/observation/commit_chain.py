"""Reader of a chain of commits: a draft on a head of the target branch, with commits of people."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from fanout.plan.observation.repository_state import Commit
from fanout.ports import ObjectReader
from fanout.values import frozen

_MAX_EDIT_COMMITS = 64  # commits by people on top of fanout's newest one
_MAX_COMMITS = 4096  # of a chain; 64,000 packages


class ChainStatement(Protocol):
    """Statement of a commit of fanout, in its trailers."""

    @property
    def base(self) -> str:
        """Return the commit of the target branch that the chain begins on."""


Statement = TypeVar("Statement", bound=ChainStatement)


@frozen
class ChainCommit(Generic[Statement]):
    """One commit of a chain; `stated` is None for a commit of a person."""

    commit: Commit
    stated: Statement | None


def read_chain(
    reader: ObjectReader, tip: str, parse: Callable[[str], Statement | None]
) -> Sequence[ChainCommit[Statement]] | None:
    """Return the commits of the chain, newest first; None if the branch is not a chain.

    `parse` reads what a message states; None if it is not one of fanout's. Raises InvalidInput for
    a commit that cannot be read.
    """
    chain: list[ChainCommit[Statement]] = []
    base, oid = "", tip
    # Bounded: a branch below drafts/ may be pushed by anyone, with any history.
    for _ in range(_MAX_COMMITS):
        if oid == base:
            return chain
        commit = reader.commit(oid)
        stated = parse(commit.message)
        if stated is not None and base not in ("", stated.base):
            return None
        base = stated.base if stated is not None else base
        chain.append(ChainCommit(commit, stated))
        if not commit.parents or (not base and len(chain) > _MAX_EDIT_COMMITS):
            return None
        oid = commit.parents[0]
    return None

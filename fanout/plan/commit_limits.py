"""Limits of the commits by which many packages are drafted, published or removed together.

Each commit of a chain has a version of its own of every directory above its packages. In one
directory with all packages these are as long as the chain is, so a chain of any number of commits
would cost the square of that number.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

PACKAGES_PER_COMMIT = 16  # so that a page of a forge shows what a commit says and merges
MAX_COMMITS = 32  # of a chain; with more packages than they take, each commit takes more

Item = TypeVar("Item")


def split_by_commit(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield the items of each commit of a chain, in order; none without items."""
    size = max(PACKAGES_PER_COMMIT, -(-len(items) // MAX_COMMITS))
    for start in range(0, len(items), size):
        yield items[start : start + size]

"""Reads mirrors one after the other: who asks in the order of repositories opens each once."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from fanout.plan.repository import Remote
from fanout.ports import GitStore, Reader

Reading = Callable[[Remote], Reader]
"""The reader of a repository's mirror; the one that was answered before is closed then."""


@contextmanager
def one_by_one(git: GitStore) -> Iterator[Reading]:
    """Opens and closes the readers that are asked for. What it yields raises as `git.reader`."""
    with ExitStack() as opened:
        last: tuple[Remote, Reader] | None = None

        def reading(remote: Remote) -> Reader:
            nonlocal last
            if last is None or last[0] != remote:
                last = None
                opened.close()
                last = remote, opened.enter_context(git.reader(remote))
            return last[1]

        yield reading

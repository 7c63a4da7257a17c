"""Reads mirrors one after the other: who asks in the order of repositories opens each once."""

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from fanout.plan.repository import Remote
from fanout.ports import GitStore, Reader


class Reading:
    """A context manager; the reader that it has answered last is open until its end."""

    def __init__(self, git: GitStore) -> None:
        self._git = git
        self._open = ExitStack()
        self._last: tuple[Remote, Reader] | None = None

    def of(self, remote: Remote) -> Reader:
        """The mirror's reader; the one before must not be used any more.

        Raises as `GitStore.reader`.
        """
        if self._last is None or self._last[0] != remote:
            self._last = None
            self._open.close()
            self._last = remote, self._open.enter_context(self._git.reader(remote))
        return self._last[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, trace)

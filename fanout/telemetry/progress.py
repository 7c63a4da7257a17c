"""How far long work has come: told to whoever wants to show it, by default nobody."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Progress(Protocol):
    """Is told of every task that may take long."""

    def task(self, what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
        """A task of so many steps; the function is called after each, from any thread."""


class Quiet:
    """Shows nothing."""

    @contextmanager
    def task(self, what: str, total: int) -> Iterator[Callable[[], None]]:  # noqa: ARG002
        """Let the steps pass by."""
        yield lambda: None

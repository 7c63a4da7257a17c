"""Progress of long tasks, reported to a display if there is one."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class ProgressReporter(Protocol):
    """Receiver of the progress of long tasks."""

    def task(self, name: str, total: int) -> AbstractContextManager[Callable[[], None]]:
        """Begin a task of `total` steps; the yielded function is called after each step.

        It may be called from any thread.
        """


class NoProgress:
    """Receiver that shows nothing."""

    @contextmanager
    def task(self, name: str, total: int) -> Iterator[Callable[[], None]]:  # noqa: ARG002
        """Yield a function without effect."""
        yield lambda: None

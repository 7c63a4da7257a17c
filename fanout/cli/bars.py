"""Progress bars drawn with rich; loaded only if a terminal shows them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Display

MIN_STEPS = 8  # steps of a task that gets a bar


class Bars:
    """Progress bars on stderr, one per task, removed at the end of the task."""

    def __init__(self, *, colour: bool) -> None:
        self._console = Console(stderr=True, no_color=not colour)

    @contextmanager
    def task(self, name: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar of `total` steps until the task ends. Yields the function that advances it."""
        # A task of few steps is over before its bar can be read.
        if total < MIN_STEPS:
            yield lambda: None
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
        with Display(
            *columns, MofNCompleteColumn(), console=self._console, transient=True
        ) as display:
            task = display.add_task(name, total=total)
            yield lambda: display.advance(task)

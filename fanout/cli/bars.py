"""Progress bars, by the library that draws them; loaded where a terminal shows them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Display

WORTH_A_BAR = 8  # steps; less is over before it is read


class Bars:
    """One bar per task on stderr, gone when the task is."""

    def __init__(self, *, colour: bool) -> None:
        self._console = Console(stderr=True, no_color=not colour)

    @contextmanager
    def task(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar until the task ends."""
        if total < WORTH_A_BAR:
            yield lambda: None
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
        with Display(
            *columns, MofNCompleteColumn(), console=self._console, transient=True
        ) as display:
            task = display.add_task(what, total=total)
            yield lambda: display.advance(task)

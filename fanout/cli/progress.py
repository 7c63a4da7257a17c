"""Progress bars on stderr while something takes long, where a terminal is there to show them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Display

from fanout.cli.settings import Settings
from fanout.cli.terminal import colored
from fanout.telemetry.progress import Progress, Quiet

WORTH_A_BAR = 8  # steps; less is over before it is read


class Bars:
    """One bar per task, gone when the task is."""

    def __init__(self, console: Console) -> None:
        self._console = console

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


def progress_for(settings: Settings) -> Progress:
    """Bars on a terminal; nothing in a pipe or a log."""
    if not sys.stderr.isatty():
        return Quiet()
    return Bars(Console(stderr=True, no_color=not colored(settings.color, sys.stderr)))

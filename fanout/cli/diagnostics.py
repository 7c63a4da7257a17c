"""Diagnostics of a command on stderr: progress bars, and with -v costs and tracebacks."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fanout.cli.lazy_import import load_module
from fanout.cli.settings import Settings
from fanout.cli.terminal import Color, is_colored, print_message
from fanout.telemetry.error_isolation import LOGGER_NAME, TracebackFilter
from fanout.telemetry.metrics import Counters, NoProgress, ProgressReporter
from fanout.telemetry.redaction import Redactor

_MIN_STEPS = 8  # steps of a task that gets a bar
_MIN_SECONDS = 0.0005  # seconds; a phase that took less is not worth a line


class ProgressBars:
    """Progress bars on stderr, one per task, removed at the end of the task."""

    def __init__(self, *, color: bool) -> None:
        """Load the library that draws bars, which is not loaded in a pipe or in CI."""
        self._progress = load_module("progress", "rich")
        self._console = load_module("console", "rich").Console(stderr=True, no_color=not color)

    @contextmanager
    def task(self, name: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar of `total` steps until the task ends. Yields the function that advances it."""
        # A task of few steps is over before its bar can be read.
        if total < _MIN_STEPS:
            yield lambda: None
            return
        rich = self._progress
        columns = (rich.SpinnerColumn(), rich.TextColumn("{task.description}"), rich.BarColumn())
        with rich.Progress(
            *columns, rich.MofNCompleteColumn(), console=self._console, transient=True
        ) as display:
            task = display.add_task(name, total=total)
            yield lambda: display.advance(task)


def build_progress(settings: Settings) -> ProgressReporter:
    """Return progress bars for a terminal, and a silent progress for a pipe or a log."""
    if settings.quiet or not sys.stderr.isatty():
        return NoProgress()
    return ProgressBars(color=is_colored(settings.color, sys.stderr))


def format_costs(counters: Counters) -> Iterator[str]:
    """Yield one line with all counts, then one for each phase that took time (seconds).

    `own` is the processor time of this process and `children` that of processes that ended;
    the other numbers are sums over threads that ran in parallel.
    """
    yield "cost: " + " ".join(f"{name}={number}" for name, number in counters.read().items())
    for phase, spent in counters.times.read().items():
        if spent.clock < _MIN_SECONDS:
            continue
        parts = [f"clock={spent.clock:.3f} own={spent.process:.3f} children={spent.children:.3f}"]
        threads = counters.times.threads(phase).items()
        parts += [f"{activity.replace(' ', '-')}={seconds:.3f}" for activity, seconds in threads]
        yield f"cost of {phase}: {' '.join(parts)}"


class _TracebackHandler(logging.Handler):
    """Logging handler that prints each record on stderr."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor
        self.addFilter(TracebackFilter())

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record with secrets redacted."""
        print_message(self._redactor.redact_text(self.format(record)), Color.NEVER)


@contextmanager
def show_tracebacks(redactor: Redactor, *, enabled: bool) -> Iterator[None]:
    """Show each traceback of an internal error once while open, if `enabled`."""
    if not enabled:
        yield
        return
    logger, handler = logging.getLogger(LOGGER_NAME), _TracebackHandler(redactor)
    level = logger.level
    logger.addHandler(handler)
    # Tracebacks are logged at debug level, so that a running loop does not print them by default.
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)

"""Diagnostics on stderr: progress bars on a terminal; costs and tracebacks with -v."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fanout.cli.lazy_import import load_module
from fanout.cli.settings import Settings
from fanout.cli.terminal import Color, is_colored, print_message
from fanout.telemetry.error_isolation import LOGGER_NAME, TracebackFilter
from fanout.telemetry.metrics import Counters
from fanout.telemetry.progress_reporter import NoProgress, ProgressReporter
from fanout.telemetry.redaction import Redactor


def build_progress(settings: Settings) -> ProgressReporter:
    """Return progress bars for a terminal, and a silent progress for a pipe or a log."""
    if not sys.stderr.isatty():
        return NoProgress()
    # The library that draws bars is loaded here only: in a pipe or in CI nobody sees one.
    bars: ProgressReporter = load_module("cli.bars").Bars(
        colour=is_colored(settings.color, sys.stderr)
    )
    return bars


_MIN_SECONDS = 0.0005  # seconds; a phase that took less is not worth a line


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
    # Tracebacks are logged at debug level, so that a running loop does not print them by
    # default.
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)

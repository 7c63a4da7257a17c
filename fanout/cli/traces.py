"""Tracebacks of internal errors, shown with -v while a command runs."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from fanout.cli.terminal import Color, say
from fanout.telemetry.barrier import LOGGER, TracesOnce
from fanout.telemetry.redact import Redactor


class _Shown(logging.Handler):
    """Prints each record as one text on stderr."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor
        self.addFilter(TracesOnce())

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record, without secrets."""
        say(self._redactor.text(self.format(record)), Color.NEVER)


@contextmanager
def traces_shown(redactor: Redactor, *, shown: bool) -> Iterator[None]:
    """Show each traceback once, if they are to be `shown` at all."""
    if not shown:
        yield
        return
    logger, handler = logging.getLogger(LOGGER), _Shown(redactor)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)

"""Sets up logging once, at the start: for people on a terminal, as JSON everywhere else.

Log lines have a constant message and fields. Loggers of libraries go the same way as ours, so that
redaction sees every line, tracebacks included.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from fanout.telemetry.redact import Redactor

# Chatty at their own levels, or (celpy) loud about what is a user's ordinary mistake.
_LIBRARIES = {"git": logging.WARNING, "apscheduler": logging.WARNING, "celpy": logging.CRITICAL}


def configure(
    redactor: Redactor,
    *,
    level: int = logging.INFO,
    stream: TextIO | None = None,
    colour: bool = True,
) -> None:
    """Send structlog's and the standard library's lines to the stream (stderr), redacted.

    Colours are only ever used on a terminal.
    """
    stream = stream or sys.stderr
    human = stream.isatty()
    before: list[Processor] = [
        # Redaction comes right behind the merge: what was bound before is shown too.
        structlog.contextvars.merge_contextvars,
        _Redaction(redactor),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if human else "iso", utc=not human),
    ]
    renderer = _renderer(human=human, colour=colour)
    structlog.configure(
        processors=[*before, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=before,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name, least in _LIBRARIES.items():
        logging.getLogger(name).setLevel(max(least, level))


def _renderer(*, human: bool, colour: bool) -> Processor:
    if human:
        return structlog.dev.ConsoleRenderer(
            colors=colour,
            # The prettier ones print local variables, secrets among them.
            exception_formatter=structlog.dev.plain_traceback,
        )
    return structlog.processors.JSONRenderer(ensure_ascii=False)


class _Redaction:
    """The processor: turns tracebacks into text, then redacts every field."""

    # ProcessorFormatter hands these through to itself.
    _META = frozenset(("_record", "_from_structlog"))

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        if "exc_info" in event:
            event = structlog.processors.format_exc_info(logger, method, event)
        shown: MutableMapping[str, Any] = {}
        for key, value in event.items():
            shown[key] = value if key in self._META else self._redactor.field(key, value)
        return shown

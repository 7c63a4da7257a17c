"""Logging without secrets, and redaction in logs, messages and output.

Log lines have a constant message and fields. Loggers of libraries use the same
processors, so that redaction sees every line, including tracebacks.
"""

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from fanout.message_commands import MessageCommands
from fanout.telemetry.redaction import Redactor

# Loggers that are verbose, or (celpy) log ordinary mistakes of users as errors.
_LIBRARY_LEVELS = {
    "git": logging.WARNING,
    "apscheduler": logging.WARNING,
    "celpy": logging.CRITICAL,
    "httpx2": logging.WARNING,
    "httpcore2": logging.WARNING,
    "urllib3": logging.WARNING,
}
# ProcessorFormatter hands these through to itself.
_META_FIELDS = frozenset(("_record", "_from_structlog"))
_FIELD_LIMIT = 1 << 14  # characters of a field of a line
_PLAIN_COMMANDS = MessageCommands()


def configure_logging(
    redactor: Redactor,
    *,
    level: int = logging.INFO,
    stream: TextIO | None = None,
    use_color: bool = True,
    commands: MessageCommands = _PLAIN_COMMANDS,
) -> None:
    """Send log lines of structlog and the standard library to `stream`, redacted.

    `stream` defaults to stderr. Colors are used on a terminal only. `commands`: as readers of the
    log can run them.
    """
    stream = stream or sys.stderr
    is_terminal = stream.isatty()

    def complete(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:  # noqa: ARG001 as of the protocol
        # A line with the field `policy` (`NAMESPACE/NAME`) is about objects of that namespace.
        namespace, slash, name = str(event.get("policy", "")).partition("/")
        # A problem of many policies is one line, which names several of them.
        is_of_one = bool(slash) and " " not in name
        reader = commands.for_namespace(namespace) if is_of_one else commands
        return {
            key: reader.complete_text(value) if isinstance(value, str) else value
            for key, value in event.items()
        }

    def redact(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        # Others' servers and files say texts of any length; a collector of logs drops long lines.
        if "exc_info" in event:
            event = structlog.processors.format_exc_info(logger, method, event)
        fields: EventDict = {}
        for key, value in event.items():
            fields[key] = value
            if key not in _META_FIELDS:
                # Cut behind the redaction, which needs all of a text, and as it would be printed.
                fields[key] = shown = redactor.redact_field(key, value)
                text = shown if isinstance(shown, str) else repr(shown)
                if len(text) > _FIELD_LIMIT:
                    fields[key] = f"{text[:_FIELD_LIMIT]}… ({len(text)} characters)"
        return fields

    processors: list[Processor] = [
        # Redaction follows the merge of bound values, which are printed too.
        structlog.contextvars.merge_contextvars,
        complete,
        redact,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(
            fmt="%H:%M:%S" if is_terminal else "iso", utc=not is_terminal
        ),
    ]
    renderer: Processor = structlog.processors.JSONRenderer(ensure_ascii=False)
    if is_terminal:
        # Not the rich formatter: it prints local variables, which may contain secrets.
        plain = structlog.dev.plain_traceback
        renderer = structlog.dev.ConsoleRenderer(colors=use_color, exception_formatter=plain)
    structlog.configure(
        processors=[*processors, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # One write for each line, as the standard library does: lines of threads do not mix.
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=processors,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name, min_level in _LIBRARY_LEVELS.items():
        logging.getLogger(name).setLevel(max(min_level, level))

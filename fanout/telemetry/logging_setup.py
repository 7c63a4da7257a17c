"""Logging without secrets, and redaction in logs, messages and output (design §9).

Log lines have a constant message and fields. Loggers of libraries use the same
processors, so that redaction sees every line, including tracebacks.
"""

import logging
import re
import sys
from base64 import b64encode
from collections.abc import Mapping, MutableMapping
from threading import Lock
from typing import Any, TextIO
from urllib.parse import quote

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from fanout.api.urls import is_secret_parameter

REDACTED = "***"
MIN_SECRET_LENGTH = 4  # characters; redacting a shorter one would replace parts of ordinary words

# The user name of ssh:// is no secret; an https one may be a token.
_USERINFO = re.compile(r"(?i)\b(?!ssh://[^\s/:@]*@)([a-z][a-z0-9+.-]*://)[^\s/?#'\"<>]*@")
_AUTH_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization|private-token|x-gitlab-token|x-api-key|(?:set-)?cookie)"
    r"(['\"]?\s*[:=]\s*['\"]?)((?:basic|bearer|token|digest|negotiate)\s+)?[^\s'\",]+"
)
# A semicolon divides parameters where a name and = follow it, else it is part of the value.
_QUERY_PARAMETER = re.compile(
    r"([?&;]([^\s?&;=#'\"]{1,100})=)[^\s&;#'\"]+(?:;[^\s&;=#'\"]*(?=[\s&;#'\"]|$))*"
)
_SECRET_KEYS = frozenset(
    ("authorization", "proxy-authorization", "private-token", "password", "token")
)


def _redact_parameter(parameter: re.Match[str]) -> str:
    return f"{parameter[1]}{REDACTED}" if is_secret_parameter(parameter[2]) else parameter[0]


class Redactor:
    """Redactor of registered secrets and of patterns that secrets appear in. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def register(self, secret: str, username: str = "") -> None:
        """Redact this text from now on, also as encoded in a URL and in a Basic header.

        Secrets under four characters are ignored.
        """
        if len(secret) < MIN_SECRET_LENGTH:
            return
        basic = b64encode(f"{username}:{secret}".encode()).decode()
        with self._lock:
            self._secrets |= {secret, quote(secret, safe=""), basic}
            # Longest first: one secret may begin with another.
            longest_first = sorted(self._secrets, key=lambda text: (-len(text), text))
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def redact_text(self, text: str) -> str:
        """Redact userinfo in URLs, credentials in headers, and registered secrets."""
        pattern = self._pattern
        if pattern is not None:
            text = pattern.sub(REDACTED, text)
        if "://" in text:
            text = _USERINFO.sub(rf"\1{REDACTED}@", text)
        text = _AUTH_HEADER.sub(rf"\1\2\3{REDACTED}", text)
        return _QUERY_PARAMETER.sub(_redact_parameter, text) if "=" in text else text

    def redact_value(self, value: Any) -> Any:
        """Return a redacted copy of any value.

        Objects other than containers become their text.
        """
        match value:
            case bool() | int() | float() | None:
                return value
            case str():
                return self.redact_text(value)
            case bytes():
                return self.redact_text(value.decode(errors="replace"))
            case Mapping():
                return {
                    self.redact_text(str(key)): self.redact_field(key, item)
                    for key, item in value.items()
                }
            case list() | tuple() | set() | frozenset():
                return [self.redact_value(item) for item in value]
            case _:
                return self.redact_text(str(value))

    def redact_field(self, key: Any, value: Any) -> Any:
        """Return the redacted value of a key; stars if the key names a secret."""
        if isinstance(key, str) and key.lower() in _SECRET_KEYS and value:
            return REDACTED
        return self.redact_value(value)


# Loggers that are verbose, or (celpy) log ordinary mistakes of users as errors.
_LIBRARY_LEVELS = {
    "git": logging.WARNING,
    "apscheduler": logging.WARNING,
    "celpy": logging.CRITICAL,
}


def configure_logging(
    redactor: Redactor,
    *,
    level: int = logging.INFO,
    stream: TextIO | None = None,
    use_color: bool = True,
) -> None:
    """Send log lines of structlog and the standard library to `stream`, redacted.

    `stream` defaults to stderr. Colors are used on a terminal only.
    """
    stream = stream or sys.stderr
    is_terminal = stream.isatty()
    processors: list[Processor] = [
        # Redaction follows the merge of bound values, which are printed too.
        structlog.contextvars.merge_contextvars,
        _RedactionProcessor(redactor),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(
            fmt="%H:%M:%S" if is_terminal else "iso", utc=not is_terminal
        ),
    ]
    renderer = _build_renderer(is_terminal=is_terminal, use_color=use_color)
    structlog.configure(
        processors=[*processors, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
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


def _build_renderer(*, is_terminal: bool, use_color: bool) -> Processor:
    if is_terminal:
        return structlog.dev.ConsoleRenderer(
            colors=use_color,
            # Not the rich formatter: it prints local variables, which may contain secrets.
            exception_formatter=structlog.dev.plain_traceback,
        )
    return structlog.processors.JSONRenderer(ensure_ascii=False)


class _RedactionProcessor:
    """Log processor that turns tracebacks into text and redacts every field."""

    # ProcessorFormatter hands these through to itself.
    _META = frozenset(("_record", "_from_structlog"))

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        if "exc_info" in event:
            event = structlog.processors.format_exc_info(logger, method, event)
        redacted: MutableMapping[str, Any] = {}
        for key, value in event.items():
            redacted[key] = value if key in self._META else self._redactor.redact_field(key, value)
        return redacted

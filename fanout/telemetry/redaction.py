"""Redaction of secrets in text: known secret values, credentials in URLs, auth headers.

Apart from the set-up of logging, which loads structlog: most commands write no log.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from threading import Lock
from typing import Any
from urllib.parse import quote

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


class Redactor:
    """Redactor of registered secrets and of patterns that secrets appear in. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def register(self, secret: str, username: str = "") -> None:
        """Redact this text from now on, also as encoded in a URL and in a Basic header."""
        if len(secret) < MIN_SECRET_LENGTH:
            return
        with self._lock:
            self._secrets |= _secret_forms(secret, username)
            self._compile()

    def forget(self, secret: str, username: str = "") -> None:
        """Redact no more what was registered like this, because it is of no use any more."""
        with self._lock:
            self._secrets -= _secret_forms(secret, username)
            self._compile()

    def _compile(self) -> None:
        # Longest first: one secret may begin with another.
        longest_first = sorted(self._secrets, key=lambda text: (-len(text), text))
        pattern = "|".join(map(re.escape, longest_first))
        self._pattern = re.compile(pattern) if pattern else None

    def redact_text(self, text: str) -> str:
        """Redact userinfo in URLs, credentials in headers, and registered secrets."""
        if (pattern := self._pattern) is not None:
            text = pattern.sub(REDACTED, text)
        if "://" in text:
            text = _USERINFO.sub(rf"\1{REDACTED}@", text)
        text = _AUTH_HEADER.sub(rf"\1\2\3{REDACTED}", text)
        if "=" not in text:
            return text
        return _QUERY_PARAMETER.sub(
            lambda it: f"{it[1]}{REDACTED}" if is_secret_parameter(it[2]) else it[0], text
        )

    def redact_value(self, value: Any) -> Any:
        """Return a redacted copy of any value. Objects other than containers become their text."""
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


def _secret_forms(secret: str, username: str) -> set[str]:
    """Return a secret, also as encoded in a URL and in a Basic header."""
    basic = b64encode(f"{username}:{secret}".encode()).decode()
    return {secret, quote(secret, safe=""), basic}

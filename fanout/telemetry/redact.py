"""Takes secrets out of whatever is about to be shown: nothing of ours may print one (design §9)."""

import re
from base64 import b64encode
from collections.abc import Mapping
from threading import Lock
from typing import Any
from urllib.parse import quote

from fanout.api.secret_parameters import is_secret_parameter

STARS = "***"
SHORTEST = 4  # a shorter "secret" would turn every text into stars

# The user name of ssh:// is no secret; an https one may be a token.
_USERINFO = re.compile(r"(?i)\b(?!ssh://[^\s/:@]*@)([a-z][a-z0-9+.-]*://)[^\s/?#'\"<>]*@")
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization|private-token|x-gitlab-token|x-api-key|(?:set-)?cookie)"
    r"(['\"]?\s*[:=]\s*['\"]?)((?:basic|bearer|token|digest|negotiate)\s+)?[^\s'\",]+"
)
# A semicolon divides parameters where a name and = follow it, else it is part of the value.
_QUERY = re.compile(
    r"([?&;]([^\s?&;=#'\"]{1,100})=)[^\s&;#'\"]+(?:;[^\s&;=#'\"]*(?=[\s&;#'\"]|$))*"
)
_SECRET_KEYS = frozenset(
    ("authorization", "proxy-authorization", "private-token", "password", "token")
)


def _without_secret(parameter: re.Match[str]) -> str:
    return f"{parameter[1]}{STARS}" if is_secret_parameter(parameter[2]) else parameter[0]


class Redactor:
    """Knows what secrets look like, and those that were read in this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def register(self, secret: str, username: str = "") -> None:
        """Never show this text again, nor its forms in a URL and in a Basic header.

        Texts under four characters are not looked for.
        """
        if len(secret) < SHORTEST:
            return
        basic = b64encode(f"{username}:{secret}".encode()).decode()
        with self._lock:
            self._known |= {secret, quote(secret, safe=""), basic}
            # The longest first: one secret may begin with another.
            longest_first = sorted(self._known, key=lambda known: (-len(known), known))
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def text(self, text: str) -> str:
        """The text without userinfo in URLs, credentials in headers, and registered secrets."""
        pattern = self._pattern
        if pattern is not None:
            text = pattern.sub(STARS, text)
        if "://" in text:
            text = _USERINFO.sub(rf"\1{STARS}@", text)
        text = _HEADER.sub(rf"\1\2\3{STARS}", text)
        return _QUERY.sub(_without_secret, text) if "=" in text else text

    def value(self, value: Any) -> Any:
        """The same for any value: containers are copied, other objects become their text."""
        match value:
            case bool() | int() | float() | None:
                return value
            case str():
                return self.text(value)
            case bytes():
                return self.text(value.decode(errors="replace"))
            case Mapping():
                return {self.text(str(key)): self.field(key, item) for key, item in value.items()}
            case list() | tuple() | set() | frozenset():
                return [self.value(item) for item in value]
            case _:
                return self.text(str(value))

    def field(self, key: Any, value: Any) -> Any:
        """The value under this key, stars if the key says that it is a secret."""
        if isinstance(key, str) and key.lower() in _SECRET_KEYS and value:
            return STARS
        return self.value(value)

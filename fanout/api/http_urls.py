"""URLs and headers of HTTP services that checks ask: which are accepted.

Policies may have many authors (design §9). A password in a URL ends in every log, and
clouds serve credentials on addresses of their own (`fanout.api.blocked_addresses`).
"""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, StringConstraints

from fanout.api.blocked_addresses import find_refusal
from fanout.api.field_errors import InvalidValue
from fanout.api.secret_parameters import check_no_secret_parameter

MAX_URL_LENGTH = 2048
_DEFAULT_PORTS = {"http": 80, "https": 443}
HEADER_PATTERN = r"^[A-Za-z0-9][-A-Za-z0-9]{0,63}$"
# Headers with credentials, or that frame the message; a policy's author must not set them.
REFUSED_HEADERS = frozenset(
    {
        "authorization",
        "connection",
        "content-length",
        "cookie",
        "host",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_REMEDY = "write one like https://deploy.example.com/status"
_SECRET_REMEDY = "remove it and name a secret in secretRef"  # noqa: S105 - advice, no secret
_SECRET_HEADER = re.compile(r"(?i)(^|[-_])(api[-_]?key|auth|password|secret|token)([-_]|$)")


def check_http_url(text: str) -> str:
    """Return the URL. Raises InvalidValue if a check may not send requests there."""
    if not text or len(text) > MAX_URL_LENGTH:
        raise InvalidValue(f"an address has 1 to {MAX_URL_LENGTH} characters", _REMEDY)
    if not text.isprintable() or not text.isascii() or " " in text or "\\" in text:
        raise InvalidValue(
            "the address has characters that no address has", "write them as %20 and the like"
        )
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidValue(f"the address cannot be read: {error}", _REMEDY) from error
    if parts.scheme not in ("http", "https"):
        raise InvalidValue("the address does not begin with https:// or http://", _REMEDY)
    if parts.username is not None or parts.password is not None:
        raise InvalidValue("the address carries a user name or a password", _SECRET_REMEDY)
    if not host:
        raise InvalidValue("the address has no host", _REMEDY)
    if parts.fragment:
        raise InvalidValue(
            "the address has a # in it, which no server sees", "remove what follows it"
        )
    # Names are checked again when they are resolved; here only literal addresses can be
    # refused.
    if refusal := find_refusal(host):
        raise InvalidValue(refusal, "name another host")
    check_no_secret_parameter(text)
    return text


def _check_server_url(text: str) -> str:
    if urlsplit(check_http_url(text)).query:
        raise InvalidValue("the address of a server has no ? in it", "remove what follows it")
    return text


def _check_origin(text: str) -> str:
    parts = urlsplit(check_http_url(text))
    if parts.path.strip("/") or parts.query:
        raise InvalidValue("only protocol, host and port are looked at", "remove the path")
    return origin_of_url(text)


def origin_of_url(address: str) -> str:
    """Return protocol, host and port of a URL that `check_http_url` accepts."""
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)}"


def check_header(name: str, value: str) -> None:
    """Raise InvalidValue for a header that a policy may not set."""
    if not re.fullmatch(HEADER_PATTERN[1:-1], name):
        raise InvalidValue(f"{name!r} is no name of a header", "write letters, digits and dashes")
    if name.lower() in REFUSED_HEADERS or _SECRET_HEADER.search(name):
        raise InvalidValue(f"the header {name} is not for a policy to write", _SECRET_REMEDY)
    if not value.isprintable() or not value.isascii():
        raise InvalidValue(
            f"the header {name} has characters that no header has", "write plain ASCII"
        )


HttpUrl = Annotated[str, StringConstraints(min_length=1), AfterValidator(check_http_url)]
ServerUrl = Annotated[str, StringConstraints(min_length=1), AfterValidator(_check_server_url)]
Origin = Annotated[str, StringConstraints(min_length=1), AfterValidator(_check_origin)]

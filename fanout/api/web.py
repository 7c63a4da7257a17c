"""Addresses of HTTP services that checks ask: which ones may be asked, and how they are written.

Policies may be written by many (design §9). A password in an address ends in every log, and clouds
answer with credentials on addresses of their own (`fanout.api.addresses`).
"""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, StringConstraints

from fanout.api.addresses import refusal_of
from fanout.api.faults import BadValue
from fanout.api.secret_parameters import check_no_secret_parameter

LONGEST = 2048
_PORTS = {"http": 80, "https": 443}
HEADER = r"^[A-Za-z0-9][-A-Za-z0-9]{0,63}$"
# What carries credentials, or frames the message: not for a policy's author to write.
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
_SECRET = "remove it and name a secret in secretRef"  # noqa: S105 - advice, no secret
_PASSWORDS = re.compile(r"(?i)(^|[-_])(api[-_]?key|auth|password|secret|token)([-_]|$)")


def check_web_address(text: str) -> str:
    """The address itself. Raises BadValue when a check may not ask there."""
    if not text or len(text) > LONGEST:
        raise BadValue(f"an address has 1 to {LONGEST} characters", _REMEDY)
    if not text.isprintable() or not text.isascii() or " " in text or "\\" in text:
        raise BadValue(
            "the address has characters that no address has", "write them as %20 and the like"
        )
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadValue(f"the address cannot be read: {error}", _REMEDY) from error
    if parts.scheme not in ("http", "https"):
        raise BadValue("the address does not begin with https:// or http://", _REMEDY)
    if parts.username is not None or parts.password is not None:
        raise BadValue("the address carries a user name or a password", _SECRET)
    if not host:
        raise BadValue("the address has no host", _REMEDY)
    if parts.fragment:
        raise BadValue("the address has a # in it, which no server sees", "remove what follows it")
    if refusal := refusal_of(host):
        raise BadValue(refusal, "name another host")
    check_no_secret_parameter(text)
    return text


def _base(text: str) -> str:
    if urlsplit(check_web_address(text)).query:
        raise BadValue("the address of a server has no ? in it", "remove what follows it")
    return text


def _origin(text: str) -> str:
    parts = urlsplit(check_web_address(text))
    if parts.path.strip("/") or parts.query:
        raise BadValue("only protocol, host and port are looked at", "remove the path")
    return origin_of(text)


def origin_of(address: str) -> str:
    """Protocol, host and port of an address that `check_web_address` lets through."""
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or _PORTS.get(parts.scheme, 0)}"


def check_header(name: str, value: str) -> None:
    """Raises BadValue for a header that a policy may not say."""
    if not re.fullmatch(HEADER[1:-1], name):
        raise BadValue(f"{name!r} is no name of a header", "write letters, digits and dashes")
    if name.lower() in REFUSED_HEADERS or _PASSWORDS.search(name):
        raise BadValue(f"the header {name} is not for a policy to write", _SECRET)
    if not value.isprintable() or not value.isascii():
        raise BadValue(f"the header {name} has characters that no header has", "write plain ASCII")


WebAddress = Annotated[str, StringConstraints(min_length=1), AfterValidator(check_web_address)]
ServerAddress = Annotated[str, StringConstraints(min_length=1), AfterValidator(_base)]
Origin = Annotated[str, StringConstraints(min_length=1), AfterValidator(_origin)]

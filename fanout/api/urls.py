"""URLs of Git repositories and HTTP services: accepted forms, addresses, credentials.

URLs end in logs of servers and proxies, in messages, and in the history of a
repository, so none may carry a secret. Git runs some URLs as commands (`ext::`, a
leading dash, a host that is an option). Protocols are allow-listed; leading dashes are
refused (docs/concepts/security.md).

Clouds serve credentials on link-local addresses and on a few others. The operating
system takes `2852039166`, `0xA9FEA9FE` and `169.254.43518` for `169.254.169.254`, and
several ranges of IPv6 carry an IPv4 address that a gateway connects to.

Policies may have many authors, and checks reach what their authors cannot
(docs/concepts/checks.md).
"""

import posixpath
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import pairwise
from typing import Annotated
from urllib.parse import unquote, unquote_plus, urlsplit

from pydantic import AfterValidator, StringConstraints

from fanout.api.field_errors import InvalidValue
from fanout.api.text_fields import schema_keywords

_SECRET_WORDS = frozenset(
    {
        "apikey",
        "auth",
        "authorization",
        "bearer",
        "credential",
        "credentials",
        "jwt",
        "passwd",
        "password",
        "pwd",
        "sas",
        "secret",
        "sig",
        "signature",
        "token",
    }
)
_SECRET_SUFFIXES = ("apikey", "password", "secret", "signature", "token")  # as in accesstoken
# `key` alone is one; sort_key and the like are not.
_KEY_QUALIFIERS = frozenset(
    {"access", "account", "api", "auth", "private", "secret", "subscription"}
)


def _any_case(words: Iterable[str]) -> str:
    return "|".join(it for word in words for it in (word, word.capitalize(), word.upper()))


# The usual spellings of what `check_no_secret_parameter` refuses, and nothing else: percent-encoded
# names and the first words of camelCase are not in it.
_BETWEEN = "[^A-Za-z0-9%=&;#]"
_KEY = _any_case(["key"])
_WORD = (
    f"{_any_case(sorted(_SECRET_WORDS))}|[A-Za-z0-9]*({_any_case(_SECRET_SUFFIXES)})"
    f"|({_any_case(sorted(_KEY_QUALIFIERS))}){_BETWEEN}+({_KEY})"
)
_NAME = f"([^=&;#]*{_BETWEEN})?({_WORD})({_BETWEEN}[^=&;#]*)?|{_BETWEEN}*({_KEY}){_BETWEEN}*"
SECRET_PARAMETER = rf"^https?://[^?#]*\?([^#]*[&;])?({_NAME})([=&;#]|$)"
_SECRET_REMEDY = "remove it from the URL and name a secret in secretRef"  # noqa: S105 - advice, no secret


def is_secret_parameter(name: str) -> bool:
    """Return whether a parameter of this name carries a credential: `X-Amz-Signature`."""
    # Words of camelCase names are compared one by one, so that `accessToken` is found as well.
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unquote_plus(name))
    words = re.findall(r"[a-z0-9]+", spaced.lower())
    if words == ["key"] or any(
        word in _SECRET_WORDS or word.endswith(_SECRET_SUFFIXES) for word in words
    ):
        return True
    return any(
        word in _KEY_QUALIFIERS and following == "key" for word, following in pairwise(words)
    )


def check_no_secret_parameter(url: str) -> None:
    """Raise InvalidValue, with the name only, if the query of a URL carries a credential."""
    for part in re.split("[&;]", urlsplit(url).query):
        name = unquote_plus(part.partition("=")[0])
        if is_secret_parameter(name):
            problem = f"the URL carries a secret in its query parameter {name}"
            raise InvalidValue(problem, _SECRET_REMEDY)


class GitProtocol(StrEnum):
    """Protocol by which Git reaches a repository; a path on this machine is `file`."""

    FILE = "file"
    HTTP = "http"
    HTTPS = "https"
    SSH = "ssh"


_SCP = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>[^/:@]+|\[[0-9A-Fa-f:.]+\]):(?P<path>(?!//).+)")
# Git reads user:password@host:path as host:path.
_SCP_PASSWORD = re.compile(r"[^@/:]+:[^@/]+@[^@/:]+:")
_PORT = "([0-9]{0,4}|[0-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
# Host and port of a URL, and what must not begin with a dash: user, host or path.
GIT_AUTHORITY = (
    r"^(https?|ssh)://([^/?#]*@)?(\[[0-9A-Fa-f:.]+(%[0-9A-Za-z._~-]+)?\]|[^/?#@:\[\]]+)"
    rf"(:{_PORT})?([/?#]|$)"
)
GIT_OPTION = r"^((https?|ssh)://([^/@]*@)?([^/]*/+)?-|([^@/:]+@)?(-[^/:@]*:|[^/:@]+:/?-))"
_GIT_REMEDY = "write a path, or a URL that begins with file://, https://, http:// or ssh://"


def parse_protocol(url: str) -> GitProtocol:
    """Return the protocol that Git would use. Raises InvalidValue for one that is never allowed."""
    # `transport::address` makes Git run git-remote-<transport>; `ext::` runs any command.
    if re.match(r"[A-Za-z0-9+.-]+::", url):
        helper = url.partition("::")[0]
        problem = f"the transport {helper}:: runs programs and is never allowed"
        raise InvalidValue(problem, _GIT_REMEDY)
    scheme, separator, _ = url.partition("://")
    if separator:
        try:
            return GitProtocol(scheme)
        except ValueError:
            raise InvalidValue(f"the protocol {scheme}:// is not allowed", _GIT_REMEDY) from None
    return GitProtocol.SSH if _SCP.fullmatch(url) else GitProtocol.FILE


def check_url(url: str) -> str:
    """Return the URL. Raises InvalidValue if fanout may not connect to it."""
    if url.startswith("-"):
        problem = "the URL begins with a dash: git would take it for an option"
        raise InvalidValue(problem, _GIT_REMEDY)
    if not url.isprintable() or " " in url:
        problem = "the URL has spaces or control characters"
        raise InvalidValue(problem, "write them as %20 and the like")
    if (protocol := parse_protocol(url)) is GitProtocol.FILE:
        if url == "file://" or (url.startswith("file://") and not url.startswith("file:///")):
            raise InvalidValue("a file URL has an absolute path and no host", "write file:///path")
        return url
    if "://" in url:
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError as error:
            raise InvalidValue(f"the URL cannot be read: {error}", _GIT_REMEDY) from error
        user, host, path = parts.username or "", parts.hostname or "", parts.path
        if parts.password is not None:
            raise InvalidValue("the URL carries a password", _SECRET_REMEDY)
    else:
        match = _SCP.fullmatch(url)
        assert match is not None, "a URL without :// is in scp syntax"
        user, host, path = match["user"] or "", match["host"], match["path"]
    # Hosts accept a token as the user name over HTTP, so a user name there may be a secret.
    if user and protocol is not GitProtocol.SSH:
        raise InvalidValue("the URL carries a user name, which may be a token", _SECRET_REMEDY)
    if not host:
        raise InvalidValue("the URL has no host", _GIT_REMEDY)
    if protocol is not GitProtocol.SSH:
        check_no_secret_parameter(url)
    elif not user and _SCP_PASSWORD.match(url):
        raise InvalidValue("the URL carries a password", _SECRET_REMEDY)
    if any(part.startswith("-") for part in (user, host, path.lstrip("/"))):
        problem = "user, host or path begin with a dash: it would be an option"
        raise InvalidValue(problem, _GIT_REMEDY)
    return url


def canonicalize_url(url: str) -> str:
    """Return one spelling for all URLs that certainly mean the same repository.

    `file://`, `.`, `..` and empty segments are removed from paths; hosts are lowercased.
    Only the host knows if `.git` may be left out or if https and ssh reach the same
    repository, so those differ.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme != GitProtocol.FILE:
        host, slash, path = rest.partition("/")
        user, at, name = host.rpartition("@")
        return f"{scheme}://{user}{at}{name.lower()}{slash}{path}".rstrip("/")
    if not separator and _SCP.fullmatch(url):
        return url.rstrip("/")
    path = posixpath.normpath(unquote(rest) if separator else url)
    return f"/{path.lstrip('/')}" if path.startswith("/") else path


GitUrl = Annotated[str, StringConstraints(min_length=1, max_length=2048), AfterValidator(check_url)]

Address = IPv4Address | IPv6Address

_LINK_LOCAL = "a link-local address"
_METADATA = "the address of a cloud's metadata service"
_REFUSED: tuple[tuple[IPv4Network | IPv6Network, str], ...] = tuple(
    (ip_network(network), why)
    for network, why in (
        ("169.254.0.0/16", _LINK_LOCAL),
        ("fe80::/10", _LINK_LOCAL),
        ("fd00:ec2::/32", _METADATA),  # AWS: instances and pods
        ("fd20:ce::254/128", _METADATA),  # Google Cloud
        ("fd00:c1::a9fe:a9fe/128", _METADATA),  # Oracle Cloud
        ("fd00:42::42/128", _METADATA),  # Scaleway
        ("100.100.100.200/32", _METADATA),  # Alibaba Cloud
        ("168.63.129.16/32", _METADATA),  # Azure
        ("192.0.0.192/32", _METADATA),  # Oracle Cloud
    )
)
# Ranges whose last 32 bits are an address of IPv4: compatible, translated (RFC 2765), NAT64 (RFC
# 6052 and 8215). Those that `ipaddress` knows by itself are not listed.
_EMBEDDING_NETWORKS = tuple(
    IPv6Network(network)
    for network in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})  # RFC 5214: bits 64 to 95
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]+|0[0-7]*|[1-9][0-9]*")


def parse_address(host: str) -> Address | None:
    """Return the IP address that a host stands for, or None for a name.

    Brackets, a zone (`%eth0`) and a trailing dot are accepted, and the one to four decimal,
    octal or hexadecimal numbers of inet_aton(3).
    """
    text = host.removeprefix("[").removesuffix("]").removesuffix(".")
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        parts = text.split(".")
    # As inet_aton(3): the last number fills the bytes that are left.
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    bases = (16 if part[:2].lower() == "0x" else 8 if part[0] == "0" else 10 for part in parts)
    *first, last = (int(part, base) for part, base in zip(parts, bases, strict=True))
    if any(byte > 0xFF for byte in first) or last >= 1 << 8 * (4 - len(first)):
        return None
    return IPv4Address(sum(byte << 8 * (3 - at) for at, byte in enumerate(first)) + last)


def find_refusal(host: str) -> str:
    """Return why a host must not be connected to; "" for a name and an allowed address."""
    if (address := parse_address(host)) is None:
        return ""
    for candidate in (address, *_embedded_addresses(address)):
        for network, category in _REFUSED:
            if candidate.version == network.version and candidate in network:
                detail = "" if str(candidate) == host else f"{candidate}, "
                return f"{host} is {detail}{category}"
    return ""


def _embedded_addresses(address: Address) -> Iterator[IPv4Address]:
    """Yield every IPv4 address that an IPv6 address may be translated to."""
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo
    if (
        any(address in network for network in _EMBEDDING_NETWORKS)
        or number >> 32 & 0xFFFFFFFF in _ISATAP
    ):
        yield IPv4Address(number & 0xFFFFFFFF)
    # a prefix of 48 bits is followed by two bytes, a gap, and two
    if address in _EMBEDDING_NETWORKS[-1]:
        yield IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF)


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
_HTTP_REMEDY = "write one like https://deploy.example.com/status"
_HTTP_SECRET_REMEDY = "remove it and name a secret in secretRef"  # noqa: S105 - advice, no secret
SECRET_HEADER = r"(^|[-_])(api[-_]?key|auth|password|secret|token)([-_]|$)"  # noqa: S105 - a pattern


def check_http_url(text: str) -> str:
    """Return the URL. Raises InvalidValue if a check may not send requests there."""
    if not text or len(text) > MAX_URL_LENGTH:
        raise InvalidValue(f"an address has 1 to {MAX_URL_LENGTH} characters", _HTTP_REMEDY)
    if not text.isprintable() or not text.isascii() or " " in text or "\\" in text:
        problem = "the address has spaces or forbidden characters"
        raise InvalidValue(problem, "write them as %20 and the like")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidValue(f"the address cannot be read: {error}", _HTTP_REMEDY) from error
    if parts.scheme not in ("http", "https"):
        raise InvalidValue("the address does not begin with https:// or http://", _HTTP_REMEDY)
    if parts.username is not None or parts.password is not None:
        raise InvalidValue("the address carries a user name or a password", _HTTP_SECRET_REMEDY)
    if not host:
        raise InvalidValue("the address has no host", _HTTP_REMEDY)
    if parts.fragment:
        raise InvalidValue("the address has a fragment (#), which is never sent", "remove it")
    # Names are checked again when they are resolved; here only literal addresses can be refused.
    if refusal := find_refusal(host):
        raise InvalidValue(refusal, "name another host")
    check_no_secret_parameter(text)
    return text


def check_server_url(text: str) -> str:
    """Return the URL of a server. Raises InvalidValue for one that `check_http_url` refuses."""
    if urlsplit(check_http_url(text)).query:
        raise InvalidValue("the address of a server must not have a query (?)", "remove it")
    return text


def check_origin(text: str) -> str:
    """Return protocol, host and port of a URL. Raises InvalidValue if it has more."""
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
    if name.lower() in REFUSED_HEADERS or re.search(SECRET_HEADER, name.lower()):
        raise InvalidValue(f"the header {name} is not for a policy to write", _HTTP_SECRET_REMEDY)
    if not value.isprintable() or not value.isascii():
        problem = f"the header {name} has characters that no header has"
        raise InvalidValue(problem, "write plain ASCII")


_HTTP_PATTERN = (
    r"^[hH][tT][tT][pP][sS]?://"
    r'(\[[0-9A-Fa-f:.]+(%[0-9A-Za-z._~-]+)?\]|[!"$-.0-9;->A-Z^-~]+)'
    rf"(:{_PORT})?"
)
HttpUrl = Annotated[
    str,
    StringConstraints(min_length=1),
    AfterValidator(check_http_url),
    schema_keywords(maxLength=MAX_URL_LENGTH, pattern=rf'{_HTTP_PATTERN}([/?][!"$-\[\]-~]*)?$'),
]
ServerUrl = Annotated[
    str,
    StringConstraints(min_length=1),
    AfterValidator(check_server_url),
    schema_keywords(maxLength=MAX_URL_LENGTH, pattern=rf'{_HTTP_PATTERN}(/[!"$->@-\[\]-~]*)?$'),
]
Origin = Annotated[str, StringConstraints(min_length=1), AfterValidator(check_origin)]

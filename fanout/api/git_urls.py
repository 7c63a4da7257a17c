"""Accepted URLs of Git repositories, and the protocol by which Git reaches them.

Git runs some URLs as commands (`ext::`, a leading dash, a host that is an option), and
a password in a URL ends in every log. Protocols are allow-listed; leading dashes are
refused (design §9).
"""

import posixpath
import re
from enum import StrEnum
from functools import lru_cache
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, StringConstraints

from fanout.api.field_errors import InvalidValue
from fanout.api.secret_parameters import check_no_secret_parameter


class GitProtocol(StrEnum):
    """Protocol by which Git reaches a repository; a path on this machine is `file`."""

    FILE = "file"
    HTTP = "http"
    HTTPS = "https"
    SSH = "ssh"


_SCP = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>[^/:@]+|\[[0-9A-Fa-f:.]+\]):(?P<path>(?!//).+)")
# Git reads user:password@host:path as host:path.
_SCP_PASSWORD = re.compile(r"[^@/:]+:[^@/]+@[^@/:]+:")
_REMEDY = "write a path, or a URL that begins with file://, https://, http:// or ssh://"
_SECRET_REMEDY = "remove it from the URL and name a secret in secretRef"  # noqa: S105 - advice, no secret


def parse_protocol(url: str) -> GitProtocol:
    """Return the protocol that Git would use.

    Raises InvalidValue for one that is never allowed.
    """
    # `transport::address` makes Git run git-remote-<transport>; `ext::` runs any command.
    if re.match(r"[A-Za-z0-9+.-]+::", url):
        helper = url.partition("::")[0]
        raise InvalidValue(f"the transport {helper}:: runs programs and is never allowed", _REMEDY)
    scheme, separator, _ = url.partition("://")
    if separator:
        try:
            return GitProtocol(scheme)
        except ValueError:
            raise InvalidValue(f"the protocol {scheme}:// is not allowed", _REMEDY) from None
    return GitProtocol.SSH if _SCP.fullmatch(url) else GitProtocol.FILE


def check_url(url: str) -> str:
    """Return the URL. Raises InvalidValue if fanout may not connect to it."""
    if url.startswith("-"):
        raise InvalidValue("the URL begins with a dash: git would take it for an option", _REMEDY)
    if not url.isprintable() or " " in url:
        raise InvalidValue(
            "the URL has spaces or control characters", "write them as %20 and the like"
        )
    protocol = parse_protocol(url)
    if protocol is not GitProtocol.FILE:
        _check_authority(url, protocol)
    elif url == "file://" or (url.startswith("file://") and not url.startswith("file:///")):
        raise InvalidValue("a file URL has an absolute path and no host", "write file:///path")
    return url


@lru_cache(maxsize=8192)  # called several times per variant for few repositories
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


def _check_authority(url: str, protocol: GitProtocol) -> None:
    user, host, path, password = _split_url(url)
    if password is not None:
        raise InvalidValue("the URL carries a password", _SECRET_REMEDY)
    # Hosts accept a token as the user name over HTTP, so a user name there may be a secret.
    if user and protocol is not GitProtocol.SSH:
        raise InvalidValue("the URL carries a user name, which may be a token", _SECRET_REMEDY)
    if not host:
        raise InvalidValue("the URL has no host", _REMEDY)
    if protocol is not GitProtocol.SSH:
        check_no_secret_parameter(url)
    elif not user and _SCP_PASSWORD.match(url):
        raise InvalidValue("the URL carries a password", _SECRET_REMEDY)
    if any(part.startswith("-") for part in (user, host, path.lstrip("/"))):
        raise InvalidValue("user, host or path begin with a dash: it would be an option", _REMEDY)


def _split_url(url: str) -> tuple[str, str, str, str | None]:
    """Return user, host, path, and the password or None."""
    if "://" not in url:
        match = _SCP.fullmatch(url)
        assert match is not None, "protocol_of has matched it"
        return match["user"] or "", match["host"], match["path"], None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InvalidValue(f"the URL cannot be read: {error}", _REMEDY) from error
    return parts.username or "", parts.hostname or "", parts.path, parts.password


GitUrl = Annotated[str, StringConstraints(min_length=1, max_length=2048), AfterValidator(check_url)]

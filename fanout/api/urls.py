"""URLs of Git repositories: which ones are let in, and over which protocol they go.

Git reads a URL as a command where it can (``ext::``, a leading dash, a host that is an option), and
a password in a URL ends in every log. (Design §9: protocols are allow-listed, no leading dash.)
"""

import posixpath
import re
from enum import StrEnum
from functools import lru_cache
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, StringConstraints

from fanout.api.faults import BadValue
from fanout.api.secret_parameters import check_no_secret_parameter


class Protocol(StrEnum):
    """How Git reaches a repository; a path on this machine is `file`."""

    FILE = "file"
    HTTP = "http"
    HTTPS = "https"
    SSH = "ssh"


_SCP = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>[^/:@]+|\[[0-9A-Fa-f:.]+\]):(?P<path>(?!//).+)")
# What is meant as user:password@host:path is host:path to Git.
_SCP_PASSWORD = re.compile(r"[^@/:]+:[^@/]+@[^@/:]+:")
_REMEDY = "write a path, or a URL that begins with file://, https://, http:// or ssh://"
_SECRET = "remove it from the URL and name a secret in secretRef"  # noqa: S105 - advice, no secret


def protocol_of(url: str) -> Protocol:
    """The protocol that Git would use. Raises BadValue for one that is never allowed."""
    if re.match(r"[A-Za-z0-9+.-]+::", url):
        helper = url.partition("::")[0]
        raise BadValue(f"the transport {helper}:: runs programs and is never allowed", _REMEDY)
    scheme, separator, _ = url.partition("://")
    if separator:
        try:
            return Protocol(scheme)
        except ValueError:
            raise BadValue(f"the protocol {scheme}:// is not allowed", _REMEDY) from None
    return Protocol.SSH if _SCP.fullmatch(url) else Protocol.FILE


def check_url(url: str) -> str:
    """The URL itself. Raises BadValue when it is no place that fanout may go to."""
    if url.startswith("-"):
        raise BadValue("the URL begins with a dash: git would take it for an option", _REMEDY)
    if not url.isprintable() or " " in url:
        raise BadValue("the URL has spaces or control characters", "write them as %20 and the like")
    protocol = protocol_of(url)
    if protocol is not Protocol.FILE:
        _check_authority(url, protocol)
    elif url == "file://" or (url.startswith("file://") and not url.startswith("file:///")):
        raise BadValue("a file URL has an absolute path and no host", "write file:///path")
    return url


@lru_cache(maxsize=8192)  # asked several times of every variant, about a few repositories
def canonical_url(url: str) -> str:
    """One spelling of those that surely mean one repository: what two of them are compared by.

    A path is a path with and without `file://`, `.`, `..` and slashes that say nothing; a host is
    written in small letters. Whether `.git` may be left out, or https and ssh lead to one place,
    only the host knows.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme != Protocol.FILE:
        host, slash, path = rest.partition("/")
        user, at, name = host.rpartition("@")
        return f"{scheme}://{user}{at}{name.lower()}{slash}{path}".rstrip("/")
    if not separator and _SCP.fullmatch(url):
        return url.rstrip("/")
    path = posixpath.normpath(unquote(rest) if separator else url)
    return f"/{path.lstrip('/')}" if path.startswith("/") else path


def _check_authority(url: str, protocol: Protocol) -> None:
    user, host, path, password = _parts(url)
    if password is not None:
        raise BadValue("the URL carries a password", _SECRET)
    if user and protocol is not Protocol.SSH:
        raise BadValue("the URL carries a user name, which may be a token", _SECRET)
    if not host:
        raise BadValue("the URL has no host", _REMEDY)
    if protocol is not Protocol.SSH:
        check_no_secret_parameter(url)
    elif not user and _SCP_PASSWORD.match(url):
        raise BadValue("the URL carries a password", _SECRET)
    if any(part.startswith("-") for part in (user, host, path.lstrip("/"))):
        raise BadValue("user, host or path begin with a dash: it would be an option", _REMEDY)


def _parts(url: str) -> tuple[str, str, str, str | None]:
    """User, host, path, and the password if there is one."""
    if "://" not in url:
        found = _SCP.fullmatch(url)
        assert found is not None, "protocol_of has matched it"
        return found["user"] or "", found["host"], found["path"], None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise BadValue(f"the URL cannot be read: {error}", _REMEDY) from error
    return parts.username or "", parts.hostname or "", parts.path, parts.password


Url = Annotated[str, StringConstraints(min_length=1, max_length=2048), AfterValidator(check_url)]

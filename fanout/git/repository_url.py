"""Validation of repository URLs: a URL must not become an option or a command of git."""

from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from fanout.api.field_errors import InvalidValue
from fanout.api.urls import GitProtocol, check_url, parse_protocol
from fanout.errors import ErrorLocation, InvalidInput
from fanout.telemetry.redaction import Redactor
from fanout.values import Value


class RepositoryAddress(Value):
    """A validated URL with its protocol and the host that may receive the secret."""

    url: str
    protocol: GitProtocol
    host: str = ""

    @property
    def where(self) -> ErrorLocation:
        """The location for error messages."""
        return ErrorLocation(object=self.url)


def parse_address(url: str, allowed: Collection[str]) -> RepositoryAddress:
    """Validate a URL, even if it was validated before (design §9). Raises InvalidInput.

    A relative path is resolved against the working directory.
    """
    try:
        protocol = parse_protocol(check_url(url)) if url else None
    except InvalidValue as error:
        raise _refusal(url, error.problem, error.remedy) from error
    if protocol is None:
        raise _refusal(url, "the URL is empty", "set spec.url of the Repository")
    if protocol not in allowed:
        remedy = f"use one of {', '.join(sorted(allowed))}, or allow it in the FanoutConfiguration"
        raise _refusal(url, f"the protocol {protocol} is not allowed", remedy)
    if protocol is GitProtocol.FILE and "://" not in url:
        return RepositoryAddress(str(Path(url).absolute()), protocol)
    # With the port, as git names the host in its question to askpass.
    host = urlsplit(url).netloc.rpartition("@")[2] if "://" in url else ""
    return RepositoryAddress(url, protocol, host)


def _refusal(url: str, problem: str, remedy: str) -> InvalidInput:
    # Redacted: the URL may be refused because it contains a password.
    return InvalidInput(
        problem,
        reason="UrlRefused",
        remedy=remedy,
        where=ErrorLocation(object=Redactor().redact_text(url)[:200]),
    )

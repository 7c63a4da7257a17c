"""Where a repository is, judged before git hears of it: what users write must not be a command."""

from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from fanout.api.faults import BadValue
from fanout.api.urls import Protocol, check_url, protocol_of
from fanout.errors import InvalidInput, Where
from fanout.telemetry.redact import Redactor
from fanout.values import frozen


@frozen
class Address:
    """A URL that git may be given, its protocol, and the host that may ask for the secret."""

    url: str
    protocol: Protocol
    host: str = ""

    @property
    def where(self) -> Where:
        """The repository, for sentences."""
        return Where(object=self.url)


def address(url: str, allowed: Collection[str]) -> Address:
    """Judge a URL again at the door, whoever let it in (design §9).

    A relative path is taken from the working directory. Raises InvalidInput.
    """
    try:
        protocol = protocol_of(check_url(url)) if url else None
    except BadValue as error:
        raise _refused(url, error.problem, error.remedy) from error
    if protocol is None:
        raise _refused(url, "the URL is empty", "write spec.url of the Repository")
    if protocol not in allowed:
        raise _refused(
            url,
            f"the protocol {protocol} is not allowed here",
            f"use one of {', '.join(sorted(allowed))}, or allow it in FanoutConfiguration",
        )
    if protocol is Protocol.FILE and "://" not in url:
        return Address(str(Path(url).absolute()), protocol)
    host = urlsplit(url).netloc.rpartition("@")[2] if "://" in url else ""
    return Address(url, protocol, host)


def _refused(url: str, problem: str, remedy: str) -> InvalidInput:
    # What is refused may be refused because of the password in it.
    return InvalidInput(
        problem, reason="UrlRefused", remedy=remedy, where=Where(object=Redactor().text(url)[:200])
    )

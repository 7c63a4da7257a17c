"""Sources of the header Authorization of the calls to one host.

Limits and memos are kept by the identity of a source, not by its header: a token of a GitHub App
ends after an hour, and what was read with it stays true.
"""

from datetime import timedelta
from hashlib import sha256
from typing import Protocol

from fanout.ports import Credentials, authorization_header


class TokenSource(Protocol):
    """Source of the header for one account of one host. Thread-safe."""

    @property
    def identity(self) -> str:
        """Return what tells the accounts of a host apart; there is no secret in it."""

    def authorization(self) -> str:
        """Return the value of the header. Raises Denied, InvalidInput, RateLimited, Unavailable."""

    def renew(self, refused: str, clock_offset: timedelta) -> bool:
        """Drop a header that the host refused; return whether the next one may be accepted.

        `clock_offset` is how far the host's clock is ahead of this machine's.
        """


class StaticToken:
    """Token or password of a secret. Another one is another account, as far as anybody can tell."""

    def __init__(self, secret: Credentials) -> None:
        """Use a secret as it is now. Raises Denied."""
        self._authorization = authorization_header(secret)

    @property
    def identity(self) -> str:
        """Return a digest of the header."""
        return f"header {sha256(self._authorization.encode()).hexdigest()}"

    def authorization(self) -> str:
        """Return the header."""
        return self._authorization

    def renew(self, refused: str, clock_offset: timedelta) -> bool:  # noqa: ARG002 as declared
        """Return False: there is no other header."""
        return False

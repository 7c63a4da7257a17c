"""Calls of the API of a host, and answers to them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from fanout.plan.pull_requests.call_limits import CallKind
from fanout.values import Value


class ForgeCall(Value):
    """One call of the API; the segments of `path` are unquoted."""

    method: str
    path: tuple[str, ...]
    query: tuple[tuple[str, str], ...] = ()
    body: Mapping[str, Any] | None = None
    kind: CallKind = CallKind.READ
    policy: str = ""  # for which it is made
    pool: str = "core"  # that the host counts it in, as GitHub names its pools
    expected: frozenset[int] = frozenset()  # statuses, besides 2xx, that are an answer
    base: str = ""  # address that `path` is relative to; "": that of the API
    is_conditional: bool = False  # a read that asks only for what has changed since the last one

    @property
    def resource(self) -> str:
        """Return method and path, as messages name the call: `GET /repos/ann/edge`."""
        return f"{self.method} /{self.quoted_path}"

    @property
    def address(self) -> str:
        """Return path and query, relative to the API's address."""
        return f"{self.quoted_path}?{urlencode(self.query)}" if self.query else self.quoted_path

    @property
    def quoted_path(self) -> str:
        """Return the path relative to the API's address."""
        return "/".join(quote(segment, safe="") for segment in self.path)


class ForgeResponse(Value):
    """Answer to a call: status, JSON (None: no content), and whether another page follows.

    `instant` is the host's time when it answered. `is_unchanged`: the host states that the last
    answer to a conditional read is still right, and the rest is of that one.
    """

    status: int
    data: Any
    has_next_page: bool = False
    instant: datetime | None = None  # None: the host does not say
    etag: str = ""
    is_unchanged: bool = False

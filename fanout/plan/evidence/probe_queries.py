"""Queries of checks to HTTP services and Prometheus servers, with responses."""

from typing import Any

from fanout.values import Value


class ProbeQuery(Value, kw_only=True):
    """One query; equal queries are sent once."""

    url: str  # of the service; with a query, of the Prometheus server
    query: str = ""  # PromQL; "": a plain HTTP request
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""  # JSON
    secret: str = ""  # the name of the secret with the credentials


class ProbeResponse(Value):
    """A response as plain data, which expressions see as `response` or `result`."""

    value: Any
    note: str = ""  # oddity of the response, reported if the expression fails


class ProbeFailure(Value):
    """Failure of a query, as a sentence that shows no secret."""

    message: str
    goes_on: bool = False  # True: the request is under way, and a later pass may have its answer

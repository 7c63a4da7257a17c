"""Queries of checks to HTTP services and Prometheus servers, with responses."""

from dataclasses import KW_ONLY
from typing import Any

from fanout.values import frozen


@frozen
class ProbeQuery:
    """One query; equal queries are sent once."""

    _: KW_ONLY
    url: str  # of the service; with a query, of the Prometheus server
    query: str = ""  # PromQL; "": a plain HTTP request
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""  # JSON
    secret: str = ""  # the name of the secret with the credentials


@frozen
class ProbeResponse:
    """A response as plain data, which expressions see as `response` or `result`."""

    value: Any
    note: str = ""  # oddity of the response, reported if the expression fails


@frozen
class ProbeFailure:
    """Failure of a query, as a sentence that shows no secret."""

    sentence: str

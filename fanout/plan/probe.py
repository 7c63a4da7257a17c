"""Questions of checks to HTTP services and Prometheus servers, and what came back, as data."""

from typing import Any

from fanout.values import frozen


@frozen
class Probe:
    """One question; equal ones are asked once."""

    url: str  # of the service; with a query, of the Prometheus server
    query: str = ""  # PromQL; "": an HTTP service is asked
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""  # JSON
    secret: str = ""  # the name of the secret with the credentials


@frozen
class Heard:
    """An answer, as plain data for expressions: `response` or `result`."""

    value: Any
    note: str = ""  # what is odd about it, for when an expression makes nothing of it


@frozen
class Unheard:
    """Why there is no answer that anything could be made of; it shows no secret."""

    sentence: str

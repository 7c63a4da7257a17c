"""Questions of checks to HTTP services and Prometheus servers, and what came back, as data."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Probe:
    """One question; equal ones are asked once."""

    url: str  # of the service; with a query, of the Prometheus server
    query: str = ""  # PromQL; "": an HTTP service is asked
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""  # JSON
    secret: str = ""  # the name of the secret with the credentials


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer, as plain data for expressions: `response` or `result`."""

    value: Any
    note: str = ""  # what is odd about it, for when an expression makes nothing of it


@dataclass(frozen=True, slots=True)
class Unheard:
    """Why there is no answer that anything could be made of; it shows no secret."""

    sentence: str

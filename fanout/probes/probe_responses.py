"""Parsing of probe responses: JSON of a service, or a vector of a Prometheus server.

Fail closed: partial results, results that are not numbers and unexpected formats count
as no response (design §3).
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeResponse

HTTP_OK = 200
# Status codes without a statement about the service: it failed, or refused the request.
INCONCLUSIVE_STATUSES = frozenset({401, 403, 407, 408, 425, 429})
FIRST_SERVER_ERROR = 500
_MAX_QUOTE = 200  # characters of a server's message
_MAX_DEPTH = 64


class MalformedResponse(Exception):
    """A response has another format than expected; the text is the reason."""


def parse_service_response(status: int, content: bytes) -> ProbeResponse | ProbeFailure:
    """Parse the response of an HTTP service into `response`.

    It has the status, and the body if it is JSON.
    """
    if status in INCONCLUSIVE_STATUSES or status >= FIRST_SERVER_ERROR:
        return ProbeFailure(
            f"it answered with HTTP status {status}, which says nothing about the check"
        )
    try:
        return ProbeResponse({"status": status, "body": _parse_json(content)})
    except MalformedResponse as error:
        return ProbeResponse({"status": status}, str(error))


def parse_prometheus_response(status: int, content: bytes) -> ProbeResponse | ProbeFailure:
    """Parse the response of Prometheus into a number or a list of {metric, value}.

    (https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries)
    """
    try:
        response = _parse_json(content)
        if not isinstance(response, dict) or response.get("status") not in ("success", "error"):
            raise MalformedResponse("it is no answer of Prometheus")
        if response["status"] == "error":
            return ProbeFailure(f"the query failed: {_shorten(response.get('error'))}")
        if status != HTTP_OK:
            return ProbeFailure(f"it answered with HTTP status {status}")
        if response.get("warnings"):
            return ProbeFailure(f"the answer may be partial: {_shorten(response['warnings'])}")
        return ProbeResponse(_parse_result(response.get("data")))
    except MalformedResponse as error:
        suffix = f" (HTTP status {status})" if status != HTTP_OK else ""
        return ProbeFailure(f"{error}{suffix}")


def _parse_result(data: object) -> Any:
    kind = data.get("resultType") if isinstance(data, Mapping) else None
    value = data.get("result") if isinstance(data, Mapping) else None
    match kind, value:
        case "scalar", [_, number]:
            return _parse_number(number, "the scalar")
        case "vector", []:
            raise MalformedResponse(
                "no series matches the query; write it so that it always yields one, with"
                " `or vector(0)` for example"
            )
        case "vector", list():
            return [_parse_sample(item) for item in value]
        case "matrix" | "string", _:
            raise MalformedResponse(
                f"the query yields a {kind}, and an instant vector or scalar is needed"
            )
    raise MalformedResponse("it is no answer of Prometheus")


def _parse_sample(item: object) -> Mapping[str, Any]:
    match item:
        case {"metric": dict() as metric, "value": [_, value]}:
            return {
                "metric": metric,
                "value": _parse_number(value, f"the series {_format_series(metric)}"),
            }
        case {"metric": dict(), "histogram": _}:
            raise MalformedResponse("a series is a native histogram; ask for a quantile of it")
    raise MalformedResponse("it is no answer of Prometheus")


def _parse_number(text: object, subject: str) -> float:
    try:
        value = float(text) if isinstance(text, str) else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise MalformedResponse(
            f"{subject} is {_shorten(text)}, which is no number to compare with"
        )
    return value


def _format_series(metric: Mapping[str, Any]) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in sorted(metric.items()))
    return _shorten("{" + labels + "}")


def _parse_json(content: bytes) -> Any:
    """Parse JSON into plain data. Raises MalformedResponse."""
    try:
        value = json.loads(content.decode(), parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise MalformedResponse("its body is no JSON") from error
    if _measure_depth(value) > _MAX_DEPTH:
        raise MalformedResponse("its body is nested too deeply")
    return value


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(text)


def _measure_depth(value: object) -> int:
    """Measure the nesting depth of a value, up to just above the limit."""
    # Level by level instead of recursively: a server could exhaust the stack.
    layer, depth = [value], 0
    while layer and depth <= _MAX_DEPTH:
        inner: list[object] = []
        for item in layer:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        layer, depth = inner, depth + 1
    return depth


def _shorten(value: object) -> str:
    """Return a server's message on one line, shortened for a message of fanout."""
    text = value if isinstance(value, str) else json.dumps(value)
    line = " ".join(text.split())
    return line if len(line) <= _MAX_QUOTE else f"{line[: _MAX_QUOTE - 3]}..."

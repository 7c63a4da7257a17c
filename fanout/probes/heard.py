"""What an answer of bytes says: JSON of a service, or a vector of a Prometheus server.

Fail closed: what is partial, not a number or not what was asked for is no answer. (Design §3.)
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from fanout.plan.probe import Heard, Unheard

OK = 200
# The service could not answer, or does not want to answer us: that says nothing about what it runs.
SILENT = frozenset({401, 403, 407, 408, 425, 429})
SERVER_ERROR = 500
_LONGEST = 200  # characters of a server's own words
_DEEPEST = 64


class Misread(Exception):
    """The answer is not what it should be; the text says how."""


def of_service(status: int, content: bytes) -> Heard | Unheard:
    """The answer of an HTTP service as `response`: its status, and its body where that is JSON."""
    if status in SILENT or status >= SERVER_ERROR:
        return Unheard(f"it answered with HTTP status {status}, which says nothing about the check")
    try:
        return Heard({"status": status, "body": _json(content)})
    except Misread as error:
        return Heard({"status": status}, str(error))


def of_prometheus(status: int, content: bytes) -> Heard | Unheard:
    """The answer of a Prometheus server as `result`: a number, or a list of {metric, value}.

    (https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries)
    """
    try:
        answer = _json(content)
        if not isinstance(answer, dict) or answer.get("status") not in ("success", "error"):
            raise Misread("it is no answer of Prometheus")
        if answer["status"] == "error":
            return Unheard(f"the query failed: {_words(answer.get('error'))}")
        if status != OK:
            return Unheard(f"it answered with HTTP status {status}")
        if answer.get("warnings"):
            return Unheard(f"the answer may be partial: {_words(answer['warnings'])}")
        return Heard(_result(answer.get("data")))
    except Misread as error:
        said = f" (HTTP status {status})" if status != OK else ""
        return Unheard(f"{error}{said}")


def _result(data: object) -> Any:
    kind = data.get("resultType") if isinstance(data, Mapping) else None
    value = data.get("result") if isinstance(data, Mapping) else None
    match kind, value:
        case "scalar", [_, number]:
            return _number(number, "the scalar")
        case "vector", []:
            raise Misread(
                "no series matches the query; write it so that it always yields one, with"
                " `or vector(0)` for example"
            )
        case "vector", list():
            return [_sample(item) for item in value]
        case "matrix" | "string", _:
            raise Misread(f"the query yields a {kind}, and an instant vector or scalar is needed")
    raise Misread("it is no answer of Prometheus")


def _sample(item: object) -> Mapping[str, Any]:
    match item:
        case {"metric": dict() as metric, "value": [_, value]}:
            return {"metric": metric, "value": _number(value, f"the series {_series(metric)}")}
        case {"metric": dict(), "histogram": _}:
            raise Misread("a series is a native histogram; ask for a quantile of it")
    raise Misread("it is no answer of Prometheus")


def _number(text: object, what: str) -> float:
    try:
        value = float(text) if isinstance(text, str) else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Misread(f"{what} is {_words(text)}, which is no number to compare with")
    return value


def _series(metric: Mapping[str, Any]) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in sorted(metric.items()))
    return _words("{" + labels + "}")


def _json(content: bytes) -> Any:
    """Plain data. Raises Misread."""
    try:
        value = json.loads(content.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Misread("its body is no JSON") from error
    if _depth(value) > _DEEPEST:
        raise Misread("its body is nested too deeply")
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)


def _depth(value: object) -> int:
    """How deeply the value is nested; no deeper than it matters."""
    layer, depth = [value], 0
    while layer and depth <= _DEEPEST:
        inner: list[object] = []
        for item in layer:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        layer, depth = inner, depth + 1
    return depth


def _words(value: object) -> str:
    """A server's own words on one line, short enough for a sentence."""
    text = value if isinstance(value, str) else json.dumps(value)
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."

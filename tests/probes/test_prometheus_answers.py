"""What an answer of a Prometheus server is taken for."""

import json

import pytest

from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeResponse
from fanout.probes import parse_prometheus_response


def vector(*values):
    samples = [
        {"metric": {"instance": f"i{number}"}, "value": [1700000000.5, value]}
        for number, value in enumerate(values)
    ]
    return success("vector", samples)


def success(kind, result, **more):
    return {"status": "success", "data": {"resultType": kind, "result": result}, **more}


USABLE = [
    ("a scalar is a number", success("scalar", [1700000000, "0.25"]), 0.25),
    ("a vector is a list", vector("1"), [{"metric": {"instance": "i0"}, "value": 1.0}]),
    ("several series are all there", vector("1", "2e3"),
     [{"metric": {"instance": "i0"}, "value": 1.0},
      {"metric": {"instance": "i1"}, "value": 2000.0}]),
    ("a hint is no warning", success("scalar", [0, "1"], infos=["might not be a counter"]), 1.0),
]  # fmt: skip

UNUSABLE = [
    ("no series is no answer", 200, vector(),
     ("no series matches the query; write it so that it always yields one, with `or vector(0)` for"
     " example")),
    ("what is divided by nothing is no number", 200, vector("NaN"),
     "the series {instance=i0} is NaN, which is no number to compare with"),
    ("one bad series spoils the answer", 200, vector("1", "+Inf"),
     "the series {instance=i1} is +Inf, which is no number to compare with"),
    ("a value is text", 200, success("scalar", [0, 1]),
     "the scalar is 1, which is no number to compare with"),
    ("a range is not asked for", 200, success("matrix", []),
     "the query yields a matrix, and an instant vector or scalar is needed"),
    ("text is no number", 200, success("string", [0, "yes"]),
     "the query yields a string, and an instant vector or scalar is needed"),
    ("a histogram is no number", 200,
     success("vector", [{"metric": {}, "histogram": [0, {}]}]),
     "a series is a native histogram; ask for a quantile of it"),
    ("a warning means that something is missing", 200,
     success("scalar", [0, "1"], warnings=["store-1: timeout"]),
     'the answer may be partial: ["store-1: timeout"]'),
    ("a bad query is told in the server's words", 400,
     {"status": "error", "errorType": "bad_data", "error": "unknown\n function"},
     "the query failed: unknown function"),
    ("a long message is cut", 422, {"status": "error", "error": "x" * 500},
     f"the query failed: {'x' * 197}..."),
    ("something else", 200, {"ok": True}, "the response is not from Prometheus"),
    ("a list", 200, [1], "the response is not from Prometheus"),
    ("half an answer", 200, {"status": "success"}, "the response is not from Prometheus"),
    ("a sample without a value", 200, success("vector", [{"metric": {}}]),
     "the response is not from Prometheus"),
    ("a page of a proxy", 502, "<html>", "its body is not JSON (HTTP status 502)"),
    ("success with a strange status", 203, vector("1"), "it answered with HTTP status 203"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "value"), [r[1:] for r in USABLE], ids=[r[0] for r in USABLE])
def test_a_response_is_read(answer, value):
    assert parse_prometheus_response(200, json.dumps(answer).encode()) == ProbeResponse(value)


@pytest.mark.parametrize(
    ("status", "answer", "problem"), [r[1:] for r in UNUSABLE], ids=[r[0] for r in UNUSABLE]
)
def test_an_unusable_response_is_a_failure(status, answer, problem):
    text = answer if isinstance(answer, str) else json.dumps(answer)
    assert parse_prometheus_response(status, text.encode()) == ProbeFailure(problem)

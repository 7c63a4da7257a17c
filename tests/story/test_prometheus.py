"""A real Prometheus server is asked: by the room that asks, and by whole commands."""

import json
from urllib.parse import quote

import pytest
from fleet import POLICY, Fleet
from prometheus_server import prometheus
from service import Page, Service, service

from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
from fanout.probes import HttpProbes

METRICS = """\
# TYPE requests counter
requests_total{code="200"} 400
requests_total{code="500"} 0
# TYPE latency gauge
latency 0.25
# TYPE deployed gauge
deployed{revision="v1"} 1
"""
RATE = 'sum(requests_total{code="500", site="%s"}) / sum(requests_total{site="%s"})'


@pytest.fixture(scope="module")
def site() -> Service:
    with service() as made:
        made.pages["/metrics"] = Page(METRICS, headers={"Content-Type": "text/plain"})
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory, site):
    root = tmp_path_factory.mktemp("prometheus")
    ready = quote('sum(requests_total{site="ams"}) + sum(latency{site="ber"})')
    with prometheus(root, site.url.removeprefix("http://"), ready) as url:
        yield url


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def ask(server: str, query: str) -> ProbeResponse | ProbeFailure:
    def secret(name: str) -> None:
        raise AssertionError(name)

    [answer] = HttpProbes(secret, {}).ask([ProbeQuery(url=server, query=query)])
    return answer


def test_a_vector_has_labels_and_values(server):
    answer = ask(server, 'requests_total{site="ams", code="200"}')
    [series] = answer.value
    assert series["value"] == 400.0
    assert (series["metric"]["site"], series["metric"]["code"]) == ("ams", "200")


USABLE = [
    ("a scalar", "scalar(sum(latency{site='ams'}))", 0.25),
    ("a number", "1 / 4", 0.25),
    ("two series", "max by (site) (latency)",
     [{"metric": {"site": "ams"}, "value": 0.25}, {"metric": {"site": "ber"}, "value": 0.25}]),
    ("nothing, but for `or vector(0)`", "sum(nothing) or vector(0)",
     [{"metric": {}, "value": 0.0}]),
]  # fmt: skip
UNUSABLE = [
    ("no series", "nothing", "no series matches the query"),
    ("divided by nothing", "sum(requests_total{code='500'}) / sum(requests_total{code='500'})",
     "the series {} is NaN, which is no number to compare with"),
    ("more than all", "1 / 0", "the scalar is +Inf, which is no number to compare with"),
    ("a range", "latency[5m]", "the query yields a matrix, and an instant vector or scalar"),
    ("a text", "'yes'", "the query yields a string, and an instant vector or scalar"),
    ("no query", "sum(", "the query failed: "),
    ("no function", "nonsense(latency)", 'unknown function with name "nonsense"'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "value"), [row[1:] for row in USABLE], ids=[r[0] for r in USABLE]
)
def test_a_response_is_read(server, query, value):
    answer = ask(server, query)
    assert isinstance(answer, ProbeResponse), answer
    assert answer.value == value


@pytest.mark.parametrize(
    ("query", "problem"), [r[1:] for r in UNUSABLE], ids=[r[0] for r in UNUSABLE]
)
def test_an_unusable_response_is_a_failure(server, query, problem):
    answer = ask(server, query)
    assert isinstance(answer, ProbeFailure)
    assert answer.message.startswith(f"{server}: ")
    assert problem in answer.message


def company(root, server: str, **asked: str) -> Fleet:
    fleet = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    check = {"name": "rate", "settle": "5m", "freshFor": "10m"}
    check["prometheus"] = {"address": server, **asked}
    stage = json.dumps({"name": "dev", "verification": [check]})
    fleet.write(
        "policy.yaml",
        POLICY.replace("{name: dev, verification: [{name: e2e, report: {}}]}", stage),
    )
    fleet.sweep()
    fleet.later(minutes=1).sweep()
    fleet.later(minutes=5).sweep()
    return fleet


def stands(fleet: Fleet) -> tuple[str, str]:
    [item] = fleet.run("get", "variants", "--stage", "dev", "-o", "json").items
    return item["status"]["state"], item["status"]["checks"][0]["message"]


def test_a_rate_of_errors_lets_a_revision_go_on(tmp_path, server):
    text = "'" + RATE.replace("%s", "' + target.metadata.name + '") + "'"
    fleet = company(tmp_path, server, queryExpr=text, cel="result.all(s, s.value < 0.05)")
    state, words = stands(fleet)
    assert (state, words) == (
        "Ready",
        f"check rate passed: the query to {server}: result.all(s, s.value < 0.05) is true",
    )


def test_a_revision_that_is_slow_fails(tmp_path, server):
    fleet = company(tmp_path, server, query="max(latency)", cel="result[0].value < 0.2")
    assert stands(fleet)[0] == "Failed"


def test_a_query_with_several_series_is_not_guessed(tmp_path, server):
    fleet = company(tmp_path, server, query="latency", cel="result[0].value < 1.0")
    state, words = stands(fleet)
    assert state == "Verifying"
    assert "the query yields 2 series" in words


def test_a_series_says_which_revision_it_is_of(tmp_path, server):
    asked = {"query": "max by (revision) (deployed)", "cel": "result.all(s, s.value == 1)"}
    fleet = company(tmp_path, server, **asked, observedRevision="result[0].metric.revision")
    assert stands(fleet)[0] == "Ready"
    fleet.release("v2")
    fleet.later(minutes=1).sweep()
    fleet.later(minutes=1).sweep()
    fleet.later(minutes=5).sweep()
    assert stands(fleet) == ("Verifying", "check rate reports on v1, not on v2")

"""Checks as people write them: what each way of asking needs, and what it is not to have."""

import copy
from pathlib import Path

import pytest
import yaml

from fanout.api.validators.object_references import cross_check
from fanout.api.validators.object_validation import validate_object

EXAMPLE = yaml.safe_load((Path(__file__).parent / "examples" / "upstream-policy.yaml").read_text())
OBJECT = "apiVersion: v1, kind: ConfigMap, name: state, cel: object.data.ok == 'yes'"
ASKED = "settle: 1m, freshFor: 10m"
QUERY = "address: 'https://prometheus.example.com', query: up, cel: 'result.all(s, s.value > 0)'"
URL = "url: 'https://deploy.example.com/state', cel: response.body.ok"

RIGHT = [
    ("an object that says what it has seen",
     f"object: {{{OBJECT}, observedRevision: object.data.commit}}, freshFor: 1h"),
    ("an object that is asked some time after publication", f"object: {{{OBJECT}}}, {ASKED}"),
    ("an object by a name that an expression yields",
     f"object: {{{OBJECT.replace('name: state', 'nameExpr: target.metadata.name')}}}, {ASKED}"),
    ("a query", f"prometheus: {{{QUERY}}}, {ASKED}"),
    ("a query with a secret", f"prometheus: {{{QUERY}, secretRef: {{name: prom}}}}, {ASKED}"),
    ("a secret to where an expression says, which an administrator bounds",
     f"http: {{{URL.replace('url:', 'urlExpr:')}, secretRef: {{name: token}}}}, {ASKED}"),
    ("an HTTP service", f"http: {{{URL}}}, {ASKED}, timeout: 1h"),
    ("an HTTP service that is sent a body",
     f"http: {{{URL}, method: POST, body: {{app: web}}, headers: {{Accept: text/json}}}}, {ASKED}"),
    ("an HTTP service on this machine",
     f"http: {{{URL.replace('https://deploy.example.com', 'http://127.0.0.1:8080')}}}, {ASKED}"),
    ("a report that is waited for", "report: {}, timeout: 1h, freshFor: 24h"),
    ("a commit's status", "commitStatus: {context: ci/deploy}, timeout: 1h"),
]  # fmt: skip

WRONG = [
    ("an object needs a name", f"object: {{{OBJECT.replace('name: state, ', '')}}}, {ASKED}",
     "object: name or nameExpr is missing; add it"),
    ("an object has one name", f"object: {{{OBJECT}, nameExpr: target.metadata.name}}, {ASKED}",
     "object: name and nameExpr exclude each other; keep one of them"),
    ("an object's answer may be about what was there before", f"object: {{{OBJECT}}}, freshFor: 1h",
     ("settle: check type object needs observedRevision or settle: the result may be about"
     " the previous revision; set one of them; settle is the delay"
     " of the first query after publication")),
    ("settling for no time is not settling", f"object: {{{OBJECT}}}, freshFor: 1h, settle: 0s",
     ("settle: check type object needs observedRevision or settle: the result may be about"
     " the previous revision; set one of them; settle is the delay"
     " of the first query after publication")),
    ("an answer does not count for ever", f"http: {{{URL}}}, settle: 1m",
     ("freshFor: check type http needs freshFor: results are momentary; set how long a"
     " result is valid, like 10m")),
    ("a Secret is not read",
     "object: {apiVersion: v1, kind: Secret, name: x, cel: 'true'}, " + ASKED,
     "object.kind: a check cannot read a Secret; use another object"),
    ("a Secret is not read in another version either",
     "object: {apiVersion: v2, kind: Secret, name: x, cel: 'true'}, " + ASKED,
     "object.kind: a check cannot read a Secret; use another object"),
    ("what has passed is said by an expression",
     f"object: {{{OBJECT.partition(', cel')[0]}}}, {ASKED}", "object.cel: is missing; add it"),
    ("a query needs a server", "prometheus: {query: up, cel: 'true'}, " + ASKED,
     "prometheus: address or addressExpr is missing; add it"),
    ("a query is not empty", f"prometheus: {{{QUERY.replace('query: up, ', '')}}}, {ASKED}",
     "prometheus: query or queryExpr is missing; add it"),
    ("a server has no query in its address",
     f"prometheus: {{{QUERY.replace('.com', '.com/?x=1')}}}, {ASKED}",
     "prometheus.address: the address of a server must not have a query (?); remove it"),
    ("an address is one of the web", f"http: {{{URL.replace('https:', 'file:')}}}, {ASKED}",
     ("http.url: the address does not begin with https:// or http://; write one like"
     " https://deploy.example.com/status")),
    ("an address carries no password",
     f"http: {{{URL.replace('//', '//ann:pass@')}}}, {ASKED}",
     ("http.url: the address carries a user name or a password; remove it and name a secret in"
     " secretRef")),
    ("an address is not where clouds keep credentials",
     f"http: {{{URL.replace('deploy.example.com', '169.254.169.254')}}}, {ASKED}",
     "http.url: 169.254.169.254 is a link-local address; name another host"),
    ("nor where they keep them, written as a number",
     f"http: {{{URL.replace('deploy.example.com', '0xA9FEA9FE')}}}, {ASKED}",
     "http.url: 0xa9fea9fe is 169.254.169.254, a link-local address; name another host"),
    ("an address carries no token",
     f"http: {{{URL.replace('/state', '/state?a=1&access_token=abc')}}}, {ASKED}",
     ("http.url: the URL carries a secret in its query parameter access_token; remove it from the"
      " URL and name a secret in secretRef")),
    ("a header carries no credentials",
     f"http: {{{URL}, headers: {{Authorization: Bearer abc}}}}, {ASKED}",
     ("http.headers: the header Authorization is not for a policy to write; remove it and name a"
     " secret in secretRef")),
    ("a header is one line", f'http: {{{URL}, headers: {{X-Team: "a\\r\\nHost: b"}}}}, {ASKED}',
     "http.headers: the header X-Team has characters that no header has; write plain ASCII"),
    ("a question by GET has no body", f"http: {{{URL}, body: {{a: 1}}}}, {ASKED}",
     "http.body: only a POST has a body; add method: POST"),
    ("a service is asked, not changed", f"http: {{{URL}, method: DELETE}}, {ASKED}",
     "http.method: unsupported value DELETE; use GET or POST"),
    ("nobody waits before a report", "report: {}, settle: 5m",
     "settle: settle has no effect for a report; remove it"),
]  # fmt: skip


def with_check(check, group="verification"):
    data = copy.deepcopy(EXAMPLE)
    data["spec"]["stages"][0][group] = [yaml.safe_load(f"{{name: health, {check}}}")]
    return data


def faults_of(check, group="verification"):
    model, faults = validate_object(with_check(check, group))
    assert (model is None) == bool(faults)
    prefix = f"spec.stages[0].{group}[0]."
    return [f"{it.field.removeprefix(prefix)}: {it.problem}; {it.remedy}" for it in faults]


@pytest.mark.parametrize("group", ["verification", "requires"])
@pytest.mark.parametrize("check", [row[1] for row in RIGHT], ids=[row[0] for row in RIGHT])
def test_a_check_may_be(check, group):
    assert faults_of(check, group) == []


@pytest.mark.parametrize(
    ("check", "problem"), [row[1:] for row in WRONG], ids=[r[0] for r in WRONG]
)
def test_a_check_is_not(check, problem):
    assert faults_of(check) == [problem]


def test_an_approval_says_itself_for_how_long_it_counts():
    problems = faults_of("approval: {from: [sre]}, freshFor: 1h", "requires")
    assert problems == ["freshFor: freshFor has no effect for an approval; use expires"]


def test_an_approval_of_published_variants_is_refused():
    [problem] = faults_of("approval: {from: [sre]}")
    assert problem.endswith("; move it to requires")


def repository(name, forge="none"):
    spec = {"url": f"/srv/{name}.git"}
    if forge != "none":  # what other forges need is not there yet
        spec["forge"] = {"type": forge}
    data = {"apiVersion": "fanout.dev/v1alpha1", "kind": "Repository"}
    model, faults = validate_object(
        data | {"metadata": {"name": name, "namespace": "platform"}, "spec": spec}
    )
    assert model is not None, faults
    return model


@pytest.mark.parametrize(
    ("downstream", "problem"),
    [
        ({"repository": "edge-eu"}, "Repository edge-eu"),
        ({"repositoryExpr": "target.spec.repository"}, "Repository blueprints and 2 more"),
    ],
    ids=["that is named", "that an expression chooses"],
)
def test_the_status_of_a_commit_needs_a_forge(downstream, problem):
    data = copy.deepcopy(EXAMPLE)
    data["spec"]["targets"][0]["template"]["downstream"] = downstream
    check = {"name": "ci", "commitStatus": {"context": "ci/deploy"}}
    data["spec"]["stages"][1]["verification"] = [check]
    policy, faults = validate_object(data)
    assert not faults
    objects = [policy, *map(repository, ("blueprints", "edge-eu", "edge-us"))]
    faults = [it for _, it in cross_check(objects) if "status" in it.problem]
    [fault] = [it for it in faults if it.severity == "error"]
    assert fault.field == "spec.stages[1].verification[0].commitStatus"
    assert fault.problem == f"commit statuses need a forge; without one: {problem}"


def test_a_status_that_anybody_may_set_is_warned_about():
    def warnings(**by):
        data = copy.deepcopy(EXAMPLE)
        check = {"name": "ci", "commitStatus": {"context": "ci/deploy", **by}}
        data["spec"]["stages"][1]["requires"] = [check]
        policy, faults = validate_object(data)
        assert not faults
        repositories = (repository(it, "gitea") for it in ("blueprints", "edge-eu", "edge-us"))
        findings = [it for _, it in cross_check([policy, *repositories])]
        return [it.field for it in findings if it.problem.startswith("without by, a status")]

    assert warnings() == ["spec.stages[1].requires[0].commitStatus.by"]
    assert warnings(by=["ci-bot"]) == []


def test_no_check_waits_for_the_status_of_fanout():
    assert faults_of("commitStatus: {context: fanout/eu}") == [
        "commitStatus.context: fanout/eu is a status that fanout sets itself; use another context"
    ]

"""Checks that machines answer, by whole commands: what is there changes between two sweeps."""

import json
from pathlib import Path
from string import Template

import pytest
import yaml
from companies import company as built_once
from fleet import POLICY, Fleet
from service import Page, Service, service

from fanout.plan import plan_wording

FIXTURES = Path(__file__).parents[2] / "fixtures" / "checks"
SITES = {"ams": ("dev", "edge"), "ber": ("prod", "edge")}
NOBODY = "a" * 40


def company(root: Path, check: dict, where: str = "verification") -> Fleet:
    """A company whose stage dev asks this check; v1 is published there."""
    fleet = Fleet.build(root, SITES)
    old = "{name: dev, verification: [{name: e2e, report: {}}]}"
    assert old in POLICY
    stage = json.dumps({"name": "dev", where: [check]})
    fleet.write("policy.yaml", POLICY.replace(old, stage))
    if "object" in check:
        config = root / "fanout.yaml"
        config.write_text(
            "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\n"
            "checks: {namespaces: [flux-system, argocd]}\n"
        )
        fleet.options = ("--config", str(config))
    fleet.sweep()
    fleet.later(minutes=1).sweep()
    return fleet


def asked(name: str) -> dict:
    return yaml.safe_load((FIXTURES / f"{name}-check.yaml").read_text())


@built_once
def fleet(root: Path) -> Fleet:
    """A company whose check asks Flux."""
    return company(root, asked("flux"))


def declare(fleet: Fleet, name: str, **fields: str) -> None:
    """The object is as the fixture says, with these words in it."""
    text = (FIXTURES / f"{name}.yaml").read_text()
    fleet.write(f"{name}.yaml", Template(text).substitute(fields))


def stands(fleet: Fleet, site: str = "ams") -> tuple[str, str]:
    """State of the variant, and what its check says."""
    for item in fleet.run("get", "variants", "-o", "json").items:
        if item["spec"]["downstream"]["package"] == f"sites/{site}":
            status = item["status"]
            words = [check["message"] for check in status["checks"]]
            return status["state"], "; ".join(words)
    raise AssertionError(site)


def swept(fleet: Fleet, **time: float) -> tuple[str, str]:
    fleet.later(**time or {"minutes": 1}).sweep()
    return stands(fleet)


def head(fleet: Fleet, at: str = "main") -> str:
    return fleet.repos["edge"].git("rev-parse", at)


APPLIED = {"busy": "False", "ready": "True", "reason": "ReconciliationSucceeded", "message": "ok"}
ILL = {**APPLIED, "ready": "False", "reason": "HealthCheckFailed", "message": "health check failed"}


def test_flux_has_applied_the_commit_or_it_is_waited_for(fleet: Fleet):
    assert stands(fleet) == ("Verifying", "check health: there is no Kustomization flux-system/ams")

    before = head(fleet, "main~1")
    declare(fleet, "flux", seen=f"main@sha1:{before}", **APPLIED)
    assert swept(fleet) == (
        "Verifying",
        f"check health reports on {before}, not on v1",
    )
    declare(fleet, "flux", seen=f"main@sha1:{head(fleet)}", **APPLIED)
    state, words = swept(fleet)
    assert state == "Ready"
    assert words.startswith("check health passed: Kustomization flux-system/ams: ")


def test_an_object_of_another_namespace_is_not_read_unless_an_administrator_names_it(fleet: Fleet):
    with_configuration, fleet.options = fleet.options, ()
    sentences = set()
    for seen in ("", f"main@sha1:{head(fleet)}"):
        if seen:
            declare(fleet, "flux", seen=seen, **APPLIED)
        sentences.add(swept(fleet))
        assert "Kustomization" not in fleet.run("explain", "monitoring-ams").out
    [(state, words)] = sentences  # the same whether the object is there or not
    assert state == "Verifying"
    assert plan_wording.describe_unreadable_namespace("flux-system", "default") in words
    fleet.options = with_configuration
    assert swept(fleet)[0] == "Ready"


def test_flux_may_have_applied_a_later_commit_that_left_the_package_alone(fleet: Fleet):
    later = fleet.repos["edge"].commit("main", {"README.md": "of somebody else\n"})
    declare(fleet, "flux", seen=f"main/{later}", **APPLIED)  # as older versions of Flux write it
    assert swept(fleet)[0] == "Ready"


def test_flux_applied_a_change_of_the_package(fleet: Fleet):
    later = fleet.repos["edge"].commit("main", {"sites/ams/notes.txt": "by hand\n"})
    declare(fleet, "flux", seen=f"main@sha1:{later}", **APPLIED)
    assert swept(fleet) == ("Verifying", f"check health reports on {later}, not on v1")


@pytest.mark.parametrize("seen", [NOBODY, "main@sha1:" + NOBODY, "v9", "x" * 500])
def test_an_applied_revision_that_was_not_published_does_not_count(fleet: Fleet, seen):
    declare(fleet, "flux", seen=seen, **APPLIED)
    state, words = swept(fleet)
    assert state == "Verifying"
    assert "reports on" in words


def test_a_tree_or_a_file_is_no_commit(fleet: Fleet):
    for what in ("main^{tree}", "main:README.md"):
        declare(fleet, "flux", seen=head(fleet, what), **APPLIED)
        assert swept(fleet)[0] == "Verifying"


def test_only_a_failure_withdraws(fleet: Fleet):
    applied = f"main@sha1:{head(fleet)}"
    declare(fleet, "flux", seen=applied, **APPLIED)
    assert swept(fleet)[0] == "Ready"
    fleet.remove("flux.yaml")
    assert swept(fleet, hours=2)[0] == "Ready"  # it is missing, and longer than freshFor
    declare(fleet, "flux", seen=applied, **ILL)
    state, words = swept(fleet)
    assert state == "Failed"
    assert words.endswith("health check failed")
    fleet.remove("flux.yaml")
    assert swept(fleet)[0] == "Failed"
    declare(fleet, "flux", seen=applied, **APPLIED)
    assert swept(fleet)[0] == "Ready"


def test_an_answer_is_recorded_once(fleet: Fleet):
    declare(fleet, "flux", seen=f"main@sha1:{head(fleet)}", **APPLIED)
    plan = fleet.later(minutes=1).plan()
    assert "that check health of monitoring-ams-047978a1d8 has passed" in plan.out
    fleet.sweep()
    records = fleet.records().refs()
    for _ in range(2):
        assert fleet.later(minutes=1).sweep().out == "nothing to do\n"
    assert fleet.records().refs() == records


def test_the_record_survives_where_the_disk_is_lost(fleet: Fleet):
    declare(fleet, "flux", seen=f"main@sha1:{head(fleet)}", **APPLIED)
    assert swept(fleet)[0] == "Ready"
    fleet.remove("flux.yaml")
    (fleet.root / fleet.state / "mirrors").rename(fleet.root / "lost")
    assert swept(fleet)[0] == "Ready"


def test_a_new_revision_is_verified_anew(fleet: Fleet):
    first = f"main@sha1:{head(fleet)}"
    declare(fleet, "flux", seen=first, **APPLIED)
    assert swept(fleet)[0] == "Ready"
    fleet.release("v2")
    fleet.later(minutes=1).sweep()
    assert swept(fleet) == (
        "Verifying",
        f"check health reports on {first.rpartition(':')[2]}, not on v2",
    )
    declare(fleet, "flux", seen=f"main@sha1:{head(fleet)}", **APPLIED)
    assert swept(fleet)[0] == "Ready"


def test_a_revision_that_is_never_applied_fails_at_the_timeout(fleet: Fleet):
    state, words = swept(fleet, hours=2)
    assert state == "Failed"
    assert "no answer within 1h (timeout)" in words


def test_argo_is_synced_and_healthy_or_it_is_waited_for(tmp_path):
    fleet = company(tmp_path, asked("argo"))
    before, now = head(fleet, "main~1"), head(fleet)
    declare(fleet, "argo", seen=before, sync="Synced", health="Healthy")
    assert swept(fleet) == ("Verifying", f"check health reports on {before}, not on v1")
    declare(fleet, "argo", seen=now, sync="Synced", health="Progressing")
    state, words = swept(fleet)
    assert state == "Verifying"
    assert words.endswith("is neither true nor false")
    declare(fleet, "argo", seen=now, sync="Synced", health="Healthy")
    assert swept(fleet)[0] == "Ready"
    declare(fleet, "argo", seen=now, sync="Synced", health="Degraded")
    assert swept(fleet)[0] == "Failed"


# ---- services ----------------------------------------------------------------------------------


def http(server: Service, **fields: object) -> dict:
    asked = {"url": f"{server.url}/state", "cel": "response.body.ok", **fields}
    return {"name": "health", "http": asked, "settle": "5m", "freshFor": "10m"}


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with service() as made:
        yield made


def test_a_service_is_asked_when_it_has_settled(tmp_path, server):
    fleet = company(tmp_path, http(server))
    server.pages["/state"] = Page('{"ok": true}')
    state, words = stands(fleet)
    assert (state, words) == ("Verifying", "check health starts 5m after publication (settle)")
    assert server.asked == []
    assert swept(fleet, minutes=5)[0] == "Ready"


ODD = [
    ("it fails", Page("{}", 500),
     "HTTP status 500, so the check has no result"),
    ("it says neither", Page('{"ok": "yes"}'), "response.body.ok is neither true nor false"),
    ("it says something else", Page('{"state": "fine"}'), "response.body.ok: "),
    ("it says no JSON", Page("fine"), "; its body is not JSON"),
    ("it sends us away", Page("", 302, {"Location": "http://localhost/"}), "which is not followed"),
    ("it says too much", Page(b"x" * (1 << 20) + b"x"), "the response has more than 1048576 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("page", "problem"), [row[1:] for row in ODD], ids=[row[0] for row in ODD])
def test_a_service_that_says_nothing_useful_holds(tmp_path, server, page, problem):
    fleet = company(tmp_path, http(server))
    server.pages["/state"] = page
    state, words = swept(fleet, minutes=5)
    assert state == "Verifying"
    assert f"{server.url}/state" in words
    assert problem in words


def test_costs_of_probes_are_printed_with_v(tmp_path, server):
    fleet = company(tmp_path, http(server))
    server.pages["/state"] = Page('{"ok": true}')
    fleet.later(minutes=5)
    for verb in (("get", "variants"), ("explain", "monitoring"), ("sweep",)):
        assert "1 probe took " in fleet.run(*verb, "-v").err
        assert "probe" not in fleet.run(*verb).err


def test_a_service_says_which_revision_it_has_seen(tmp_path, server):
    check = http(server, observedRevision="response.body.revision")
    fleet = company(tmp_path, check)
    server.pages["/state"] = Page('{"ok": true, "revision": "v0"}')
    assert swept(fleet, minutes=5)[1] == "check health reports on v0, not on v1"
    server.pages["/state"] = Page('{"ok": true, "revision": "v1"}')
    assert swept(fleet)[0] == "Ready"
    server.pages["/state"] = Page('{"ok": true}')
    assert swept(fleet)[0] == "Ready"


def test_a_question_may_be_about_the_target(tmp_path, server):
    url = f"'{server.url}/' + target.metadata.name + '?' + upstream.revision + variant.stage"
    asked = {"urlExpr": url, "cel": "response.status == 204"}
    fleet = company(tmp_path, http(server) | {"http": asked})
    server.pages["/ams?v1dev"] = Page("", 204)
    assert swept(fleet, minutes=5)[0] == "Ready"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("target.spec.nothing", "target.spec.nothing: "),
        ("1 + 1", "1 + 1 yields no text"),
        ("'ftp://x/'", "the address does not begin with https:// or http://"),
        ("'http://169.254.169.254/'", "is a link-local address"),
    ],
    ids=["is not there", "is no text", "is no address", "is not to be asked"],
)
def test_an_address_that_cannot_be_asked_holds(tmp_path, expression, problem):
    check = {"name": "health", "settle": "1s", "freshFor": "10m"}
    fleet = company(tmp_path, check | {"http": {"urlExpr": expression, "cel": "true"}})
    state, words = swept(fleet)
    assert state == "Verifying"
    assert problem in words


def test_a_secret_goes_where_an_administrator_says(tmp_path, server, monkeypatch):
    monkeypatch.setenv("FANOUT_SECRET_STATE", "tok-123")
    fleet = company(tmp_path, http(server, secretRef={"name": "state"}))
    server.pages["/state"] = Page('{"ok": true}')
    state, words = swept(fleet, minutes=5)
    assert state == "Verifying"
    assert "checks may not send the secret state there" in words
    assert server.asked == []
    lent = json.dumps([{"name": "state", "addresses": [server.url]}])
    config = tmp_path / "fanout.yaml"
    config.write_text(
        f"apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\ncheckSecrets: {lent}\n"
    )
    fleet.later(minutes=1).sweep("--config", str(config))
    assert stands(fleet)[0] == "Ready"
    assert server.asked[-1].headers["authorization"] == "Bearer tok-123"
    matches = [fleet.records().git("grep", "-c", "tok-123", ref, check=False)
             for ref in fleet.records().refs()]  # fmt: skip
    assert not any(matches)


def test_a_draft_is_asked_about_before_it_is_published(tmp_path, server):
    check = http(server, observedRevision="response.body.revision")
    fleet = company(tmp_path, check | {"settle": "0s"}, "requires")
    assert fleet.repos["edge"].tags() == []
    assert stands(fleet)[0] == "Released"
    draft = head(fleet, "drafts/default/sites/ams/monitoring")
    server.pages["/state"] = Page(json.dumps({"ok": True, "revision": draft}))
    assert swept(fleet)[0] == "Ready"
    assert fleet.repos["edge"].tags() == ["sites/ams/v1"]


def test_a_draft_that_a_machine_refuses_has_failed(tmp_path, server):
    fleet = company(tmp_path, http(server) | {"settle": "1s"}, "requires")
    server.pages["/state"] = Page('{"ok": false}')
    assert swept(fleet)[0] == "Failed"
    assert fleet.repos["edge"].tags() == []


def test_equal_questions_of_many_variants_are_asked_once(tmp_path, server):
    fleet = Fleet.build(tmp_path, {f"s{n}": ("dev", "edge") for n in range(5)})
    stage = json.dumps({"name": "dev", "verification": [http(server)]})
    fleet.write(
        "policy.yaml",
        POLICY.replace("{name: dev, verification: [{name: e2e, report: {}}]}", stage),
    )
    fleet.sweep()
    fleet.later(minutes=1).sweep()
    server.pages["/state"] = Page('{"ok": true}')
    fleet.later(minutes=5).sweep()
    assert len(server.asked) == 1


def test_each_pass_begins_with_somebody_else(tmp_path, server):
    sites = [f"s{n}" for n in range(7)]
    fleet = Fleet.build(tmp_path, dict.fromkeys(sites, ("dev", "edge")))
    url = f"'{server.url}/' + target.metadata.name"
    check = http(server) | {"http": {"urlExpr": url, "cel": "response.status == 200"}}
    stage = json.dumps({"name": "dev", "verification": [check]})
    fleet.write(
        "policy.yaml",
        POLICY.replace("{name: dev, verification: [{name: e2e, report: {}}]}", stage),
    )
    fleet.sweep()
    fleet.later(minutes=1).sweep()
    fleet.later(minutes=5)
    first = set()
    for _ in range(4):
        server.asked.clear()
        fleet.later(seconds=1).sweep()
        assert {it.path for it in server.asked} == {f"/{name}" for name in sites}
        first.add(server.asked[0].path)
    assert len(first) > 1


def test_a_status_of_a_commit_that_nobody_keeps_holds(tmp_path):
    fleet = company(tmp_path, {"name": "ci", "commitStatus": {"context": "ci/deploy"}})
    state, words = stands(fleet)
    assert state == "Verifying"
    assert words == (
        "check ci: Repository edge has no forge, so statuses of commits cannot be read; let the"
        " pipeline run `fanout report` instead"
    )
    [error] = [it for it in fleet.run("validate", "-o", "json").json if it["severity"] == "error"]
    assert error["field"] == "spec.stages[0].verification[0].commitStatus"


# ---- what validate says --------------------------------------------------------------------------


CODE = [
    ("an answer is not there yet when it is asked for",
     {"http": {"urlExpr": "response.url", "cel": "true"}}, "http.urlExpr",
     "response.url: response is not a variable here; there are target, upstream and variant"),
    ("an object is no response",
     {"http": {"url": "https://x.example.com/", "cel": "object.ok"}}, "http.cel",
     "object.ok: object is not a variable here; there are response, target, upstream and variant"),
    ("a variant has fields of its own",
     {"http": {"url": "https://x.example.com/", "cel": "variant.revision == 'v1'"}}, "http.cel",
     "variant.revision == 'v1': variant has no field revision"),
    ("an expression is one",
     {"prometheus": {"address": "https://p.example.com/", "query": "up", "cel": "result ==",
                     "observedRevision": "'v1'"}}, "prometheus.cel", "result ==: "),
    ("what is sent is no expression",
     {"http": {"url": "https://x.example.com/", "cel": "true", "method": "POST",
               "body": {"cel": "=", "nameExpr": "="}, "headers": {"X-Expr": "="}}}, "", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "field", "problem"), [row[1:] for row in CODE], ids=[row[0] for row in CODE]
)
def test_validate_reads_the_expressions_of_checks(tmp_path, check, field, problem):
    fleet = Fleet.build(tmp_path, SITES)
    whole = {"name": "health", "settle": "1m", "freshFor": "10m", **check}
    stage = json.dumps({"name": "dev", "verification": [whole]})
    fleet.write(
        "policy.yaml",
        POLICY.replace("{name: dev, verification: [{name: e2e, report: {}}]}", stage),
    )
    matches = fleet.run("validate", "-o", "json")
    errors = [it for it in matches.json if it["severity"] == "error"]
    if not problem:
        assert errors == []
        return
    [error] = errors
    assert error["field"] == f"spec.stages[0].verification[0].{field}"
    assert f"{error['problem']}; {error['remedy']}".startswith(problem)

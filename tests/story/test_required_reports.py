"""Reports that a stage requires before publication: they are about drafts."""

import json

import pytest
from fleet import POLICY, Fleet

DRAFT = "drafts/default/sites/ams/monitoring"
CI = ("report", "monitoring", "--stage", "dev", "--check", "ci")


@pytest.fixture
def fleet(tmp_path) -> Fleet:
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    machine = {"name": "machine", "settle": "1s", "freshFor": "1h"}
    machine["http"] = {"url": "http://127.0.0.1:1/", "cel": "true"}
    stage = {
        "name": "dev",
        "requires": [{"name": "ci", "report": {}}],
        "verification": [machine],
    }
    old = "{name: dev, verification: [{name: e2e, report: {}}]}"
    fleet.write("policy.yaml", POLICY.replace(old, json.dumps(stage)))
    fleet.sweep()
    fleet.later(minutes=1).sweep()
    return fleet


def draft(fleet: Fleet) -> str:
    return fleet.repos["edge"].git("rev-parse", DRAFT)


def state(fleet: Fleet) -> str:
    [item] = fleet.run("get", "variants", "--stage", "dev", "-o", "json").items
    return item["status"]["state"]


def test_a_draft_is_released_and_waits_for_its_report(fleet):
    assert state(fleet) == "Released"
    assert fleet.repos["edge"].tags() == []
    assert "nobody has reported check ci" in fleet.run("explain", "monitoring/dev").out


@pytest.mark.parametrize("length", [7, 40])
def test_a_report_on_the_draft_s_commit_lets_it_go(fleet, length):
    said = fleet.run(*CI, "--status", "passed", "--commit", draft(fleet)[:length])
    assert said.code == 0, said.err
    fleet.later(minutes=1).sweep()
    assert fleet.repos["edge"].tags() == ["sites/ams/v1"]


def test_a_report_on_the_revision_lets_it_go(fleet):
    assert fleet.later(seconds=1).run(*CI, "--status", "passed", "--revision", "v1").code == 0
    fleet.later(minutes=1).sweep()
    assert fleet.repos["edge"].tags() == ["sites/ams/v1"]


def test_a_draft_that_failed_is_not_published(fleet):
    fleet.run(*CI, "--status", "failed", "--commit", draft(fleet))
    fleet.later(minutes=1).sweep()
    assert (state(fleet), fleet.repos["edge"].tags()) == ("Failed", [])
    fleet.run(*CI, "--status", "passed", "--commit", draft(fleet))
    fleet.later(minutes=1).sweep()
    assert fleet.repos["edge"].tags() == ["sites/ams/v1"]


def test_what_was_said_of_a_draft_is_not_said_of_the_next(fleet):
    before = draft(fleet)
    fleet.repos["edge"].commit(DRAFT, {"sites/ams/notes.txt": "by hand\n"})
    fleet.later(minutes=1).sweep()
    refused = fleet.run(*CI, "--status", "passed", "--commit", before)
    assert refused.code != 0
    assert "no variant of stage dev is as it is drafted" in refused.err


REFUSED = [
    ("a revision that is not drafted", ("--check", "ci", "--revision", "v9"),
     "v9 is not drafted in stage dev of default/monitoring; drafted there: v1"),
    ("a machine's check", ("--check", "machine", "--revision", "v1"),
     "check machine is answered by a machine (http); name a check that is reported; it has: ci"),
    ("a check that is not there", ("--check", "e2e", "--revision", "v1"),
     "stage dev of default/monitoring has no check e2e; it has: ci"),
    ("a commit of nobody", ("--check", "ci", "--commit", "b" * 40),
     "no variant of stage dev is as it is drafted"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "told"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_nobody_reports(fleet, args, told):
    refused = fleet.run("report", "monitoring", "--stage", "dev", "--status", "passed", *args)
    assert refused.code != 0
    assert told in refused.err

"""`fanout status`: the whole fleet on one screen, and as a documented view."""

from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, POLICY, Fleet

ANN = ("--by", "Ann <ann@x.org>")


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    made.settle()
    return made


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")


def rows(output: str) -> list[list[str]]:
    """Return the cells of the table of stages."""
    lines = output[output.index("POLICY ") :].splitlines()
    return [line.split() for line in lines[1:] if "   " in line]


def test_a_line_per_stage_says_what_it_waits_for(fleet: Fleet):
    result = fleet.run("status")
    assert result.code == 0
    assert result.out.startswith("Fleet: 1 policy, 0 of 2 variants ready\n\nPOLICY ")
    assert rows(result.out) == [
        ["monitoring", "dev", "v1", "0/2", "Pending", "VerificationPending"],
        ["monitoring", "prod", "v1", "0/0", "Pending", "NoTargets", "+1"],
    ]
    fleet.report("dev", "v1")
    fleet.settle()
    assert rows(fleet.run("status").out)[0][1:5] == ["dev", "v1", "2/2", "Passed"]


def test_a_pipe_gets_no_empty_line_at_the_end(fleet: Fleet, monkeypatch):
    monkeypatch.delenv("COLUMNS")
    assert fleet.run("status").out.splitlines()[-1].startswith("monitoring   prod ")


def test_conflicts_that_need_a_person_come_first_with_the_command_that_decides(fleet: Fleet):
    path = "sites/ams/deployment.yaml"
    text = PACKAGE["deployment.yaml"]
    edge = fleet.repos["edge"]
    edge.commit("main", {path: text.replace("replicas: 1", "replicas: 7")})
    fleet.release("v2", {"deployment.yaml": text.replace("replicas: 1", "replicas: 3")})
    fleet.sweep("--drafts-only")
    result = fleet.run("status")
    assert result.code == 3
    view = fleet.run("status", "-o", "json").json["status"]
    [conflict] = view["conflicts"]
    section = result.out.partition("Needs a person:\n")[2].splitlines()
    assert section[0].split()[:2] == ["monitoring/dev", "MergeConflict"]
    assert f"(keys: {conflict['key']})" in " ".join(" ".join(section[:2]).split())
    assert "    fanout resolve monitoring --variant ams --reason WHY" in section
    [urgent] = view["needsPerson"]
    assert (urgent["policy"], urgent["reason"]) == ("monitoring", "MergeConflict")


def test_no_approval_is_urgent_after_an_earlier_stage_failed(fleet: Fleet):
    approval = "{name: signed, approval: {atLeast: 1, from: [sre]}}"
    fleet.write("policy.yaml", POLICY.replace(", soak: 1h}", f"}}, requires: [{approval}]"))
    fleet.site("cph", "prod", "edge")
    fleet.settle()

    def urgent() -> list[tuple[str, str]]:
        view = fleet.run("status", "-o", "json").json["status"]
        return [(it.get("stage", ""), it["reason"]) for it in view["needsPerson"]]

    assert urgent() == []
    fleet.report("dev", "v1", "failed")
    fleet.settle()
    assert urgent() == [("dev", "VerificationFailed")]
    blockers = fleet.run("explain", "monitoring/prod", "-o", "json").json["status"]["blockers"]
    assert {it["reason"] for it in blockers} == {"AfterFailed", "ApprovalMissing"}
    assert not any(it["needsPerson"] for it in blockers)


@pytest.mark.parametrize("soak", ["", ", soak: 1h"])
def test_approvers_are_asked_when_nothing_else_is_before_them(fleet: Fleet, soak: str):
    approval = "{name: signed, approval: {atLeast: 1, from: [sre]}}"
    stage = f"after: {{stages: [dev]{soak}}}, requires: [{approval}]"
    fleet.write("policy.yaml", POLICY.replace("after: {stages: [dev], soak: 1h}", stage))
    fleet.site("cph", "prod", "edge")
    fleet.settle()

    def is_asked() -> bool:
        view = fleet.run("status", "-o", "json").json["status"]
        asked = [it for it in view["needsPerson"] if it["reason"] == "ApprovalMissing"]
        assert "ApprovalMissing" in fleet.run("explain", "monitoring/prod").out
        return bool(asked)

    assert not is_asked()
    fleet.later(minutes=1).report("dev", "v1")
    fleet.settle()
    if soak:
        assert not is_asked()
        fleet.later(minutes=61).settle()
    assert is_asked()


def test_the_view_is_as_the_schema_says(fleet: Fleet):
    schema = fleet.run("schema", "FleetStatusView", files=False).json
    view = fleet.run("status", "-o", "json").json
    assert view["kind"] == "FleetStatusView"
    assert view["status"].keys() <= schema["$defs"]["FleetStatusStatus"]["properties"].keys()
    fields = schema["$defs"]["FleetStageView"]["properties"].keys()
    assert all(stage.keys() <= fields for stage in view["status"]["stages"])
    assert [it["stage"] for it in view["status"]["stages"]] == ["dev", "prod"]


def test_a_stopped_policy_and_failed_targets_have_lines_of_their_own(fleet: Fleet):
    fleet.site("x1", "dev", "nosuch")
    result = fleet.run("status")
    assert result.code == 3
    assert ["monitoring", "-", "-", "0/1", "Failed", "UnknownRepository"] in rows(result.out)
    fleet.repos["blueprints"].path.rename(fleet.root / "away")
    result = fleet.run("status")
    assert result.code == 3
    assert rows(result.out)[0][4] == "Stopped"


def test_the_status_of_another_namespace_is_empty(fleet: Fleet):
    assert fleet.run("status", "-n", "nope").code == 1


def test_status_changes_nothing(fleet: Fleet):
    before = fleet.refs()
    fleet.run("status")
    assert fleet.refs() == before


@pytest.mark.parametrize("verb", ["status", "explain"])
def test_a_selector_chooses_policies_by_their_labels(fleet: Fleet, verb: str):
    fleet.policy("logging", ("{name: logging}", "{name: logging, labels: {team: edge}}"))
    for selector in ("team=edge", "fanout.dev/policy=logging"):
        chosen = fleet.run(verb, "-l", selector)
        assert chosen.out.startswith("Fleet: 1 policy, 0 of 2 variants ready\n")
        assert "monitoring" not in chosen.out
    assert fleet.run(verb, "-l", "team=").out.startswith("Fleet: 0 policies")
    wrong = fleet.run(verb, "-l", "team in (")
    assert (wrong.code, wrong.out) == (1, "")


def test_a_name_and_a_selector_exclude_each_other(fleet: Fleet):
    refused = fleet.run("explain", "monitoring", "-l", "team=edge")
    assert (refused.code, refused.out) == (1, "")

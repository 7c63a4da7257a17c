"""One word for one state: `status`, `graph`, `explain` and `get stages` name it alike."""

import re
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet

from fanout.api.gate_vocabulary import StageState, VariantState
from fanout.cli.verbs.graph import STATE_COLORS
from fanout.reconcile.pass_results import STOPPED

ANN = ("--by", "Ann <ann@x.org>", "--reason", "WHY")
SITES = {
    "ams": ("dev", "edge"),
    "ber": ("dev", "edge"),
    "cph": ("staging", "core"),
    "dub": ("prod", "edge"),
}
STAGES = """\
  stages:
  - {name: dev, rollout: {maxInFlight: 1, maxFailures: 0}, verification: [{name: e2e, report: {}}]}
  - {name: staging, after: {stages: [dev]}, suspend: true}
  - {name: prod, after: {stages: [staging]}}
"""
HAND_WRITTEN = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: lone}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {tag: v1}}
  downstream: {repository: core, package: lone}
"""


@company
def fleet(root: Path) -> Fleet:
    """Return a policy whose first stage has a variant that waits for its verification."""
    made = Fleet.build(root, SITES)
    made.write("policy.yaml", POLICY.partition("  stages:\n")[0] + STAGES)
    made.settle()
    return made


def words(fleet: Fleet, policy: str = "monitoring") -> dict[str, str]:
    """Return the word for each stage, which is the same in all output."""
    stages = [it for it in fleet.run("get", "stages", "-o", "json").views if it["policy"] == policy]
    state_by_stage = {it["stage"]: it["state"] for it in stages}
    status = fleet.run("status", "-o", "json").json["status"]["stages"]
    assert state_by_stage == {it["stage"]: it["state"] for it in status if it.get("stage")}
    graph = fleet.run("graph", policy, "-o", "mermaid").out
    assert state_by_stage == dict(re.findall(r'\["(\S+)[^"]*?<br/>(\w+)<br/>', graph))
    for stage, word in state_by_stage.items():
        explained = fleet.run("explain", f"{policy}/{stage}", "-o", "json").json
        assert explained["status"]["state"] == word
        assert f"Stage {policy}/{stage}: {word}" in fleet.run("explain", f"{policy}/{stage}").out
    heads, *rows = fleet.run("get", "stages", "-o", "wide").out.splitlines()
    for row in rows:
        stage, word = row.split()[1], row[heads.index("STATE") :].split()[0]
        assert word == state_by_stage.get(stage, word)
    return state_by_stage


def test_a_stage_is_pending_or_suspended(fleet: Fleet):
    assert words(fleet) == {"dev": "Pending", "staging": "Suspended", "prod": "Pending"}


def test_a_stage_has_passed(fleet: Fleet):
    for _ in range(2):
        fleet.report("dev", "v1")
        fleet.settle()
    assert words(fleet)["dev"] == "Passed"


def test_a_stage_is_halted_by_failures_and_fails_with_its_last_variant(fleet: Fleet):
    fleet.report("dev", "v1", "failed", "--variant", "ams")
    assert fleet.sweep().code == 3
    assert words(fleet)["dev"] == "Halted"


def test_all_stages_of_a_suspended_policy_are_suspended(fleet: Fleet):
    fleet.run("suspend", "monitoring", *ANN)
    assert set(words(fleet).values()) == {"Suspended"}
    assert of_policy(fleet) == {"Suspended"}


def test_a_suspended_variant_does_not_suspend_its_stage(fleet: Fleet):
    fleet.run("suspend", "monitoring", "--variant", "ber", *ANN)
    assert words(fleet)["dev"] == "Pending"


def of_policy(fleet: Fleet) -> set[str]:
    """Return the words for the policy as a whole: of `explain`, and of its line in `status`."""
    stages = fleet.run("status", "-o", "json").json["status"]["stages"]
    explained = fleet.run("explain", "monitoring", "-o", "json").json["status"]["state"]
    return {explained, *(it["state"] for it in stages if not it.get("stage"))}


def test_a_policy_with_a_failed_target_has_failed(fleet: Fleet):
    fleet.site("x1", "dev", "nosuch")
    assert of_policy(fleet) == {"Failed"}


def test_a_stopped_policy_and_all_its_stages_are_stopped(fleet: Fleet):
    fleet.repos["blueprints"].path.rename(fleet.root / "away")
    assert of_policy(fleet) == {"Stopped"}
    stages = fleet.run("get", "stages", "-o", "json").views
    assert {it["state"] for it in stages} == {"Stopped"}
    assert fleet.run("graph", "monitoring").out.count("Stopped") == 3
    for stage in ("dev", "staging", "prod"):
        explained = fleet.run("explain", f"monitoring/{stage}", "-o", "json").json
        assert explained["status"]["state"] == "Stopped"


def test_a_variant_written_by_hand_has_its_own_word(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {})
    fleet.write("policy.yaml", HAND_WRITTEN)
    for _ in range(3):
        [view] = fleet.run("get", "stages", "-o", "json").views
        [variant] = fleet.run("get", "variants", "-o", "json").views
        [stage] = fleet.run("status", "-o", "json").json["status"]["stages"]
        explained = fleet.run("explain", "lone", "-o", "json").json["status"]
        states = {it["state"] for it in (view, variant, stage, explained)}
        assert len(states) == 1, states
        for language in ("text", "mermaid", "dot", "svg"):
            drawn = fleet.run("graph", "lone", "-o", language)
            assert drawn.code == 0, drawn.err
            assert view["state"] in drawn.out
        fleet.sweep()
    assert states == {"Drafted"}


@pytest.mark.parametrize("options", [(), ("-o", "json")], ids=["table", "json"])
def test_a_plan_has_the_stages_in_their_order(tmp_path: Path, options: tuple[str, ...]):
    fleet = Fleet.build(tmp_path, {"ams": ("test", "edge"), "ber": ("prod", "edge")})
    fleet.write(
        "policy.yaml", POLICY.replace("name: dev,", "name: test,").replace("[dev]", "[test]")
    )
    planned = fleet.run("plan", *options)
    if options:
        stages = [it["stage"] for it in planned.json["actions"]]
    else:
        stages = [it.split()[2] for it in planned.out.splitlines() if it.startswith("WriteDraft")]
    assert stages == ["test", "prod"]


def test_every_state_has_a_color():
    assert {*StageState, *VariantState, STOPPED} == STATE_COLORS.keys()

"""A policy that leaves the files is missed, aloud, as long as anything of it is there."""

from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet

ANN = ("--reason", "closed", "--by", "Ann <ann@example.com>")
AWAY = (
    "policy default/monitoring is not declared but has 1 published variant; declare it again, or,"
    " to remove it, declare it with targets that match nothing and run"
    " `fanout remove monitoring --all-gone --reason WHY`"
)


@company
def fleet(root: Path) -> Fleet:
    """One site, published, and a second policy; the file of the first is away."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.policy("second")
    made.settle()
    made.remove("policy.yaml")
    return made


VERBS = [
    ("a sweep", ("sweep",), 0),
    ("a plan", ("plan",), 0),
    ("the list of policies", ("get", "policies"), 0),
    ("a sweep of its namespace", ("sweep", "-n", "default"), 0),
]


@pytest.mark.parametrize(("_", "line", "code"), VERBS, ids=[row[0] for row in VERBS])
def test_an_undeclared_policy_is_reported_once(fleet: Fleet, _, line, code):
    result = fleet.run(*line)
    assert result.code == code
    assert result.err.replace(" -n default`", "`").count(AWAY) == 1


def test_an_undeclared_policy_is_a_warning_in_json_too(fleet: Fleet):
    [warning] = fleet.sweep("-o", "json").json["warnings"]
    assert warning == AWAY


def test_an_undeclared_policy_is_not_reported_for_another_policy(fleet: Fleet):
    assert fleet.sweep("second").err == ""


def test_a_policy_that_has_a_fault_is_declared(fleet: Fleet):
    fleet.write("policy.yaml", POLICY.replace("stages:", "steps:"))
    assert AWAY not in fleet.sweep().err


SOLO = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: solo}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {tag: v1}}
  downstream: {repository: edge, package: solo/monitoring}
"""


def test_a_variant_written_by_hand_is_missed_until_it_is_removed(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.write("solo.yaml", SOLO)
    fleet.settle()
    fleet.run("promote", "solo", *ANN)
    assert fleet.sweep().err == ""
    fleet.write("solo.yaml", SOLO.replace("upstream:", "up:"))
    assert "fanout remove solo" not in fleet.sweep().err
    fleet.remove("solo.yaml")
    for line in (("sweep",), ("plan",), ("get", "policies")):
        result = fleet.run(*line)
        assert (result.code, result.err.count("PackageVariant default/solo")) == (0, 1)
        assert result.err.count("fanout remove solo --reason WHY") == 1
    assert fleet.sweep("monitoring").err == ""
    assert fleet.run("remove", "solo", *ANN).code == 0
    assert fleet.sweep().err == ""


def test_a_policy_that_only_had_drafts_is_missed_too(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.policy("second")
    fleet.sweep("--drafts-only")
    fleet.remove("policy.yaml")
    drafts = AWAY.replace("1 published variant", "drafts")
    assert drafts in fleet.sweep().err


def test_the_advised_steps_remove_an_undeclared_policy(fleet: Fleet):
    edge = fleet.repos["edge"]
    [name] = [
        line.partition("/")[2]
        for line in fleet.records().git("grep", "-ho", "variant/monitoring-[a-z0-9-]*",
            "fanout/default/default/monitoring").splitlines()
    ]  # fmt: skip
    refused = fleet.run("remove", "monitoring", name, *ANN)
    assert refused.code == 1
    assert "policy default/monitoring has records but is not declared" in refused.err
    assert "sites/ams/Kptfile" in edge.files()
    none = "kind: Cluster, matchLabels: {none: at-all}}"
    fleet.write("policy.yaml", POLICY.replace("kind: Cluster}", none))
    assert fleet.run("remove", "monitoring", name, *ANN).code == 0
    fleet.remove("policy.yaml")
    assert "sites/ams/Kptfile" not in edge.files()
    assert fleet.sweep().err == ""

"""`suspend --all` and `resume --all`: a recorded decision for each policy that it changes."""

import re
from pathlib import Path

import pytest
from companies import company
from fleet import Fleet, Result

WHY = ("--reason", "incident 42", "--by", "Ann <ann@example.com>")
BY_HAND = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: agent}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1"}}
  downstream: {repository: edge, package: agent}
"""


@company
def fleet(root: Path) -> Fleet:
    """Two policies for one site, and a variant that is written by hand."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.policy("logging")
    made.write("agent.yaml", BY_HAND)
    made.settle()
    return made


def decisions(fleet: Fleet) -> list[str]:
    items = fleet.run("get", "decisions", "-o", "json").items
    return [f"{it['spec']['action']} {it['spec'].get('policy', '')}".strip() for it in items]


def counts(result: Result) -> list[int]:
    """How many were suspended or resumed, had nothing to do, and failed."""
    return [int(it) for it in re.findall(r": (\d+)", result.err.splitlines()[-1])]


def test_all_policies_are_suspended_once_and_resumed(fleet: Fleet):
    result = fleet.run("suspend", "--all", *WHY)
    assert result.code == 0, result.err
    assert [line.split(" recorded for ")[1] for line in result.out.splitlines()] == [
        "default/logging",
        "default/monitoring",
        "default/agent",
    ]
    assert counts(result) == [3, 0, 0]
    fleet.release("v2")
    fleet.settle()
    assert set(fleet.published().values()) <= {"v1", ""}
    again = fleet.run("suspend", "--all", *WHY)
    assert (again.code, again.out) == (0, "")
    assert "default/logging" in again.err
    assert "ann@example.com" in again.err
    resumed = fleet.run("resume", "--all", *WHY)
    assert (resumed.code, len(resumed.out.splitlines())) == (0, 3)
    assert counts(resumed) == [3, 0, 0]
    assert sorted(decisions(fleet)) == [
        "Resume", "Resume logging", "Resume monitoring",
        "Suspend", "Suspend logging", "Suspend monitoring",
    ]  # fmt: skip
    fleet.settle()
    assert fleet.published()["sites/ams"] == "v2"


def test_suspend_all_records_no_decision_for_a_suspended_policy(fleet: Fleet):
    assert fleet.run("suspend", "logging", *WHY).code == 0
    result = fleet.run("suspend", "--all", *WHY)
    assert len(result.out.splitlines()) == 2
    assert counts(result) == [2, 1, 0]


def test_the_policies_of_another_namespace_are_left_alone(fleet: Fleet):
    fleet.write(
        "elsewhere.yaml", BY_HAND.replace("name: agent", "name: other, namespace: elsewhere")
    )
    result = fleet.run("suspend", "--all", "-n", "elsewhere", *WHY)
    assert (result.code, result.out) == (3, ""), "it has no repository that it may use"
    assert "elsewhere/other" in result.err
    assert decisions(fleet) == []
    assert len(fleet.run("suspend", "--all", "-n", "default", *WHY).out.splitlines()) == 3


USAGE = [
    (("--all", "monitoring"), ["--all", "monitoring"]),
    (("--all", "--stage", "dev"), ["--all", "--stage"]),
    ((), ["policy"]),
]


@pytest.mark.parametrize("verb", ["suspend", "resume"])
@pytest.mark.parametrize(("line", "data"), USAGE)
def test_naming_a_policy_and_all_policies_is_refused(
    fleet: Fleet, verb: str, line, data: list[str]
):
    result = fleet.run(verb, *line, *WHY)
    assert result.code == 1
    assert [word for word in data if word not in result.err] == [], result.err
    assert decisions(fleet) == []


def test_a_policy_whose_records_are_lost_keeps_no_other_from_being_suspended(fleet: Fleet):
    head = "refs/heads/fanout/default/default/logging"
    fleet.records().git("update-ref", "-d", head)
    result = fleet.run("suspend", "--all", *WHY)
    assert result.code == 3, result.err
    assert "default/monitoring" in result.out
    assert "default/logging" not in result.out
    assert "default/logging" in result.err


def test_a_resumed_policy_may_still_be_suspended_by_its_spec(fleet: Fleet):
    for verb in ("suspend", "resume"):
        assert fleet.run(verb, "logging", *WHY).code == 0
    (policy,) = (fleet.root / "policies").glob("*logging*")
    policy.write_text(policy.read_text().replace("spec:\n", "spec:\n  suspend: true\n", 1))
    result = fleet.run("resume", "logging", *WHY)
    assert (result.code, result.out) == (4, "")
    assert "nothing to do: the policy is already resumed by ann@example.com" in result.err
    assert "; the policy is suspended by its spec: set suspend to false there" in result.err
    result = fleet.run("resume", "--all", *WHY)
    assert counts(result) == [0, 3, 0]


def test_a_change_that_comes_during_a_suspension_is_shown(fleet: Fleet):
    def readiness() -> tuple[str, str]:
        [view] = fleet.run("get", "policies", "logging", "-o", "json").views
        [ready] = [it for it in view["conditions"] if it["type"] == "Ready"]
        return ready["status"], ready["reason"]

    def states() -> set[str]:
        views = fleet.run("get", "variants", "--policy", "logging", "-o", "json").views
        return {it["state"] for it in views}

    check = ("{name: dev, verification: [{name: e2e, report: {}}]}", "{name: dev}")
    fleet.policy("logging", check)
    fleet.settle()
    assert fleet.run("suspend", "logging", *WHY).code == 0
    assert (readiness()[0], states()) == ("True", {"Ready"})
    fleet.site("ams", "dev", "edge", retention="30d")
    assert (readiness(), states()) == (("False", "Suspended"), {"Suspended"})
    result = fleet.run("explain", "logging")
    assert "the policy is suspended by ann@example.com" in result.out
    variant = fleet.run("explain", "logging/ams")
    assert "its inputs have changed; the change is rolled out after the suspension" in variant.out
    fleet.settle()
    edge = fleet.repos["edge"]
    assert "7d" in edge.file("main", "logging/ams/settings.yaml")
    assert fleet.run("resume", "logging", *WHY).code == 0
    fleet.settle()
    assert (readiness()[0], states()) == ("True", {"Ready"})
    assert "30d" in edge.file("main", "logging/ams/settings.yaml")


def test_the_author_of_a_wider_suspension_is_named(fleet: Fleet):
    assert fleet.run("suspend", "logging", *WHY).code == 0
    assert fleet.run("suspend", "logging", "--stage", "dev", *WHY).code == 0
    result = fleet.run("resume", "logging", "--stage", "dev", *WHY)
    assert result.code == 4
    assert "still suspended: the policy is suspended by ann@example.com in 2" in result.err
    assert "run `fanout resume logging" in result.err

"""History of pull requests on a real Gitea: squashed, merged past open gates, rolled back."""

from pathlib import Path

import pytest
from fleet import POLICY, PROMOTION
from forge_fleet import ForgeFleet
from gitea_server import Gitea

pytestmark = pytest.mark.forge
SIGNED = "  - {name: dev, requires: [{name: ok, approval: {from: [sre]}}]}\n"
UNTIL_STAGES = POLICY[: POLICY.index("  - {name: dev,")]
ANN = "ann <ann@example.com>"
BOB = ("--by", "Bob <bob@example.com>")


@pytest.fixture
def fleet(gitea: Gitea, tmp_path: Path) -> ForgeFleet:
    made = ForgeFleet.on(gitea, tmp_path, {"a": ("dev", "edge"), "b": ("dev", "edge")})
    made.write("promotion.yaml", PROMOTION + "  merge: Manual\n")
    return made


def sweep(fleet: ForgeFleet) -> None:
    swept = fleet.later(minutes=1).sweep()
    assert swept.code == 0, swept.err


def merge(fleet: ForgeFleet, by: str, style: str) -> None:
    """A person merges the open request, also one that fanout marks as a draft."""
    request = next(it for it in fleet.requests("edge") if it["state"] == "open")
    fleet.retitle("edge", request["number"], "go", by=by)
    fleet.merge("edge", request["number"], by, style)
    sweep(fleet)


def test_the_history_has_who_merged_what_and_by_which_decision(fleet: ForgeFleet):
    sweep(fleet)
    merge(fleet, "ann", "squash")
    fleet.write("policy.yaml", UNTIL_STAGES + SIGNED)
    fleet.release("v2")
    sweep(fleet)
    merge(fleet, "bob", "merge")
    line = ("monitoring", "--stage", "dev", "--reason", "bad", "--yes", *BOB)
    # No effect yet: the request of the rollback waits for a person.
    assert fleet.later(minutes=1).run("rollback", *line).code == 4
    sweep(fleet)
    merge(fleet, "ann", "squash")
    items = fleet.run("history", "monitoring/dev/a", "-o", "json").items
    decisions = fleet.run("get", "decisions", "-o", "json").items
    admissions = [it["status"]["admission"] for it in items]
    assert [(it["type"], it["by"], it["decision"], it["reason"]) for it in admissions] == [
        ("Merged", ANN, decisions[0]["metadata"]["name"], "bad"),
        ("OutOfBand", "bob <bob@example.com>", "", ""),
        ("Merged", ANN, "", ""),
    ]
    assert [(it["spec"]["revision"], it["status"]["state"]) for it in items] == [
        ("v1", "InForce"), ("v2", "Replaced"), ("v1", "Replaced"),
    ]  # fmt: skip
    stretches = fleet.run("history", "monitoring", "-o", "json").items
    assert [it["message"] for one in stretches for it in one["status"]["admissions"]] == [
        "Bob, rollback: bad (merged on the forge by ann)",
        "out of band: merged by bob",
        "merged on the forge by ann",
    ]


def test_reviews_that_let_a_merge_by_a_person_through_are_its_approvals(fleet: ForgeFleet):
    fleet.write("policy.yaml", UNTIL_STAGES + SIGNED)
    ann = f"ann@example.com, {fleet.gitea.host}/ann,"
    promotion = PROMOTION.replace("ann@example.com,", ann) + "  merge: Manual\n"
    fleet.write("promotion.yaml", promotion)
    sweep(fleet)
    request = next(it for it in fleet.requests("edge") if it["state"] == "open")
    fleet.review("edge", request["number"], "ann")  # no pass sees it before the merge
    merge(fleet, "bob", "squash")
    [item] = fleet.run("history", "monitoring/dev/a", "-o", "json").items
    assert item["status"]["admission"]["type"] == "Merged"
    [approval] = item["status"]["approvals"]
    assert approval["by"].endswith("/ann")

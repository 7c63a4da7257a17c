"""Branches of pull requests that people set to something else, on a real Gitea."""

from pathlib import Path

import pytest
from fleet import POLICY, PROMOTION
from forge_fleet import ForgeFleet
from gitea_server import Gitea

pytestmark = pytest.mark.forge
PROD = "drafts/default/_stages/default.monitoring/prod"
STAGES = """\
  - {name: dev}
  - {name: prod, after: {stages: [dev]}, requires: [{name: ok, approval: {from: [sre]}}]}
"""


def sweep(fleet: ForgeFleet, passes: int = 1, code: int = 0) -> None:
    for _ in range(passes):
        fleet.await_checks()
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == code, swept.out + swept.err


def open_request(fleet: ForgeFleet) -> dict[str, object]:
    [request] = [it for it in fleet.requests("edge") if it["state"] == "open"]
    return request


def approve(fleet: ForgeFleet, revision: str) -> None:
    approved = fleet.later(minutes=1).run(
        "approve", "monitoring", "--stage", "prod", "--revision", revision,
        "--by", "Ann <ann@example.com>",
    )  # fmt: skip
    assert approved.code == 0, approved.err


def promote(fleet: ForgeFleet, style: str) -> None:
    """Have fanout merge in this style."""
    fleet.write("promotion.yaml", f"{PROMOTION}  pullRequest: {{mergeStyle: {style}}}\n")


@pytest.mark.parametrize("style", ["Rebase", "Merge"])
def test_a_commit_pushed_with_force_stays_and_its_request_says_so(
    gitea: Gitea, tmp_path: Path, style: str
):
    fleet = ForgeFleet.on(gitea, tmp_path, {"a": ("dev", "edge"), "b": ("prod", "edge")})
    fleet.write("policy.yaml", POLICY[: POLICY.index("  - {name: dev,")] + STAGES)
    promote(fleet, "Rebase")
    sweep(fleet, 5)
    approve(fleet, "v1")
    sweep(fleet, 3)
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}
    promote(fleet, style)
    fleet.release("v2")
    sweep(fleet, 5)
    assert fleet.published() == {"sites/a": "v2", "sites/b": "v1"}
    request, edge = open_request(fleet), fleet.repos["edge"]
    assert request["head"] == PROD
    edge.commit("mine", {"notes.md": "mine\n"}, by="ann")  # on the head of main
    commit = edge.refs()["refs/heads/mine"]
    edge.push(f"+{commit}:refs/heads/{PROD}", by="ann")
    edge.push(":refs/heads/mine", by="ann")
    for _ in range(3):
        sweep(fleet, code=3)
        assert edge.refs()[f"refs/heads/{PROD}"] == commit
    reason, _ = fleet.condition("sites/b")
    assert reason == "PathTaken"
    held = open_request(fleet)
    assert (held["number"], held["commit"]) == (request["number"], commit)
    assert f"`{PROD}`" in held["body"]
    assert "`PathTaken`" in held["body"]
    assert fleet.statuses("edge", commit)["fanout", fleet.bot] == "pending"
    # Nobody else waits for it, and it is no conflict of theirs.
    fleet.release("v3")
    sweep(fleet, 4, code=3)
    assert fleet.published() == {"sites/a": "v3", "sites/b": "v1"}
    assert edge.refs()[f"refs/heads/{PROD}"] == commit
    # Moved away, as the message says, the branch is written anew.
    edge.push(f"{commit}:refs/heads/mine", f":refs/heads/{PROD}", by="ann")
    sweep(fleet, 2)
    assert "replicas: 3" in edge.file(PROD, "sites/b/deployment.yaml")

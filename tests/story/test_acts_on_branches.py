"""Acts of people on the branch of a draft: it is carried on or held, and no commit is lost.

Each act is played on the branch of one variant and on that of a stage, with plain Git. What is
checked is what Git shows: whether the commits of people are reachable, and what the branch has.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from branch_acts import ACTS, AMS, Clone
from companies import company
from fleet import POLICY, Fleet

BRANCHES = {
    "Variant": "drafts/default/sites/ams/monitoring",
    "Stage": "drafts/default/_stages/default.monitoring/dev",
}
SIGNED = """\
  stages:
  - name: dev
    requires: [{name: ok, approval: {from: [sre], atLeast: 1}}]
"""


def build(root: Path, draft: str) -> Fleet:
    fleet = Fleet.build(root, {"ams": ("dev", "edge"), "osl": ("dev", "edge")})
    text = POLICY[: POLICY.index("  stages:")] + SIGNED
    fleet.write("policy.yaml", text.replace("spec:\n", f"spec:\n  draftPer: {draft}\n", 1))
    assert fleet.sweep().code == 0
    return fleet


@company
def fleets_of_variants(root: Path) -> Fleet:
    return build(root, "Variant")


@company
def fleets_of_stages(root: Path) -> Fleet:
    return build(root, "Stage")


@pytest.fixture(params=list(BRANCHES))
def played(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Fleet, Clone]:
    """A fleet with a draft that waits for an approval, and a clone at its branch."""
    name = {"Variant": "fleets_of_variants", "Stage": "fleets_of_stages"}[request.param]
    fleet: Fleet = request.getfixturevalue(name)
    origin = fleet.repos["edge"].path
    return fleet, Clone.of(origin, tmp_path / "clone", BRANCHES[request.param])


def find_lost(fleet: Fleet, commits: list[str]) -> list[str]:
    edge = fleet.repos["edge"]
    return [it for it in commits if not edge.git("for-each-ref", "--contains", it, "refs/heads")]


@pytest.mark.parametrize("act", ACTS, ids=lambda it: it.__name__)
def test_no_commit_of_a_person_is_lost(played: tuple[Fleet, Clone], act: Callable[[Clone], None]):
    fleet, clone = played
    edge, branch = fleet.repos["edge"], clone.branch
    act(clone)
    clone.git("push", "--quiet", "--force", "origin", branch)
    theirs = clone.list_own()
    assert theirs
    head, reason = edge.refs()[f"refs/heads/{branch}"], ACTS[act]
    for event in (None, "v2", None):
        if event is not None:
            fleet.release(event)
        fleet.later(minutes=1).sweep()
        assert find_lost(fleet, theirs) == []
        if reason:
            assert edge.refs()[f"refs/heads/{branch}"] == head
            assert fleet.condition(AMS)[0] == reason
    if not reason:
        assert "v2" in edge.git("log", "-1", "--format=%B", branch), fleet.condition(AMS)
    edge.fsck()

"""Acts of people on the branch of a draft: it is carried on or held, and no commit is lost.

Each act is played on the branch of one variant and on that of a stage, with plain Git. What is
checked is what Git shows: whether the commits of people are reachable, and what the branch has.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from branch_acts import ACTS, AMS, Clone
from companies import company
from diagonal import IS_FULL
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


ROWS = [(act, draft) for act in ACTS for draft in BRANCHES]
# All rows in `make soak-story`, else each act on one kind of branch, in turn.
PLAYED = [row for number, row in enumerate(ROWS) if IS_FULL or number % 4 in (0, 3)]


def find_lost(fleet: Fleet, commits: list[str]) -> list[str]:
    edge = fleet.repos["edge"]
    return [it for it in commits if not edge.git("for-each-ref", "--contains", it, "refs/heads")]


@pytest.mark.diagonal
@pytest.mark.parametrize(
    ("act", "draft"), PLAYED, ids=[f"{act.__name__}-{draft}" for act, draft in PLAYED]
)
def test_no_commit_of_a_person_is_lost(
    request: pytest.FixtureRequest, tmp_path: Path, act: Callable[[Clone], None], draft: str
):
    """The draft waits for an approval."""
    name = {"Variant": "fleets_of_variants", "Stage": "fleets_of_stages"}[draft]
    fleet: Fleet = request.getfixturevalue(name)
    edge, branch = fleet.repos["edge"], BRANCHES[draft]
    clone = Clone.of(edge.path, tmp_path / "clone", branch)
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

"""Acts of people on the branch of a pull request, in each style of merging, on a real Gitea.

The commits of people are on the branch or on the target branch afterwards, with their content, and
nothing is merged that has not been approved as it is.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from branch_acts import ACTS, AMS, Clone
from diagonal import IS_FULL
from fleet import POLICY, PROMOTION
from forge_fleet import ForgeFleet
from gitea_server import Gitea

pytestmark = [pytest.mark.forge, pytest.mark.diagonal]
DEV = "drafts/default/_stages/default.monitoring/dev"
STAGES = "  - {name: dev, requires: [{name: ok, approval: {from: [sre]}}]}\n"
STYLES = ("Merge", "Squash", "Rebase")
ROWS = [(act, style) for act in ACTS for style in STYLES]
# All rows in `make soak-story`, else some of them, in each style.
PLAYED = [row for number, row in enumerate(ROWS) if IS_FULL or number % 10 == 0]


def sweep(fleet: ForgeFleet, passes: int = 1) -> None:
    for _ in range(passes):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code in (0, 3), swept.err


@pytest.fixture
def fleet(gitea: Gitea, tmp_path: Path) -> ForgeFleet:
    """Two packages of a stage, in a pull request that waits for an approval."""
    fleet = ForgeFleet.on(gitea, tmp_path, {"ams": ("dev", "edge"), "osl": ("dev", "edge")})
    fleet.write("policy.yaml", POLICY[: POLICY.index("  - {name: dev,")] + STAGES)
    return fleet


@pytest.mark.parametrize(
    ("act", "style"), PLAYED, ids=[f"{act.__name__}-{style}" for act, style in PLAYED]
)
def test_commits_of_people_on_a_request_branch_are_kept(
    fleet: ForgeFleet, tmp_path: Path, act: Callable[[Clone], None], style: str
):
    approvers = f"subjects: [ann@example.com, bob@example.com {fleet.gitea.host}/bob]"
    promotion = PROMOTION.replace("subjects: [ann@example.com, bob@example.com]", approvers)
    fleet.write("promotion.yaml", f"{promotion}  pullRequest: {{mergeStyle: {style}}}\n")
    sweep(fleet, 2)
    edge, reason = fleet.repos["edge"], ACTS[act]
    clone = Clone.of(edge.path, tmp_path / "clone", DEV)
    clone.git("remote", "set-url", "--push", "origin", fleet.gitea.push_url(
        "edge", owner=fleet.owner, by="ann"
    ))  # fmt: skip
    act(clone)
    clone.git("push", "--quiet", "--force", "origin", DEV)
    theirs, head = clone.list_own(), edge.refs()[f"refs/heads/{DEV}"]
    assert theirs
    sweep(fleet, 2)
    request = fleet.only_request("edge")
    assert (request["state"], request["draft"]) == ("open", True)
    for commit in theirs:
        assert edge.git("for-each-ref", "--contains", commit, "refs/heads")
    if reason:
        assert edge.refs()[f"refs/heads/{DEV}"] == head
        assert fleet.condition(AMS)[0] == reason
    before = {path: edge.file(DEV, path) for path in edge.files(DEV)}
    fleet.review("edge", request["number"], "bob")
    sweep(fleet, 3)
    request = fleet.only_request("edge")
    assert request["state"] == ("open" if reason else "merged")
    branch = DEV if reason else "main"
    assert {path: edge.file(branch, path) for path in before} == before

"""Statuses of commits on a real Gitea as answers to checks."""

import pytest
from fleet import POLICY, PROMOTION
from forge_fleet import ForgeFleet
from gitea_server import Gitea

pytestmark = pytest.mark.forge

HEAD = "drafts/default/_stages/default.monitoring/dev"
STAGES = """\
  - name: dev
    requires: [{name: ci, commitStatus: {context: ci/test, by: [bob]}}]
    verification: [{name: deployed, commitStatus: {context: ci/deploy, by: [bob]}}]
"""


@pytest.fixture
def fleet(gitea: Gitea, tmp_path) -> ForgeFleet:
    """Two sites of dev in one pull request, which a pipeline tests and deploys."""
    made = ForgeFleet.on(
        gitea, tmp_path / "fleet", {"ams": ("dev", "edge"), "ber": ("dev", "edge")}
    )
    made.write("policy.yaml", POLICY[: POLICY.index("  - {name: dev,")] + STAGES)
    return made


def sweep(fleet: ForgeFleet, passes: int = 1) -> None:
    for _ in range(passes):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code in (0, 3), swept.err


def read_sentence(fleet: ForgeFleet, site: str = "ams") -> str:
    return fleet.condition(f"sites/{site}")[1]


def is_ready(fleet: ForgeFleet, site: str) -> bool:
    status: str = fleet.variants()[f"sites/{site}"]["conditions"][0]["status"]
    return status == "True"


def head(fleet: ForgeFleet, branch: str) -> str:
    return fleet.repos["edge"].refs()[f"refs/heads/{branch}"]


def missing(check: str, context: str, *commits: str, ignored: str = "") -> str:
    sentence = f"there is no status {context} by bob at {' or '.join(it[:12] for it in commits)}"
    return f"check {check}: {sentence}{f'; that of {ignored} is ignored' if ignored else ''}"


def test_statuses_before_and_after_the_merge(fleet):
    sweep(fleet, 2)
    draft, host = head(fleet, HEAD), fleet.gitea.host
    assert read_sentence(fleet) == missing("ci", "ci/test", draft)
    fleet.status("edge", draft, "ci/test", by="ann")
    assert read_sentence(fleet) == missing("ci", "ci/test", draft, ignored=f"{host}/ann")
    fleet.status("edge", draft, "ci/test", "pending", by="bob")
    sentence = f"status ci/test at {draft[:12]} is pending, by {host}/bob"
    assert read_sentence(fleet) == f"check ci: {sentence}"
    assert fleet.only_request("edge")["draft"]
    fleet.status("edge", draft, "ci/test", by="bob")
    sweep(fleet, 2)
    assert fleet.published() == {"sites/ams": "v1", "sites/ber": "v1"}
    merge = head(fleet, "main")
    assert read_sentence(fleet) == missing("deployed", "ci/deploy", merge)
    later = fleet.repos["edge"].commit("main", {"README.md": "# of all\n"})
    assert read_sentence(fleet) == missing("deployed", "ci/deploy", merge, later)
    fleet.status("edge", later, "ci/deploy", by="bob")
    sweep(fleet)
    assert is_ready(fleet, "ams")
    assert is_ready(fleet, "ber")


def test_a_failure_after_the_merge(fleet):
    sweep(fleet, 2)
    fleet.status("edge", head(fleet, HEAD), "ci/test", by="bob")
    sweep(fleet, 2)
    merge = head(fleet, "main")
    fleet.status("edge", merge, "ci/deploy", "failure", by="bob")
    sentence = f"status ci/deploy at {merge[:12]} is failure, by {fleet.gitea.host}/bob"
    assert read_sentence(fleet) == f"check deployed failed: {sentence}"


def test_a_head_with_another_package_answers_nothing(fleet):
    sweep(fleet, 2)
    fleet.status("edge", head(fleet, HEAD), "ci/test", by="bob")
    sweep(fleet, 2)
    edited = fleet.repos["edge"].commit("main", {"sites/ams/notes.txt": "by hand\n"})
    fleet.status("edge", edited, "ci/deploy", by="bob")
    sweep(fleet)
    assert read_sentence(fleet).startswith("check deployed: ")
    assert "ci/deploy" in read_sentence(fleet)
    assert is_ready(fleet, "ber")


def test_a_push_asks_again_for_what_it_changed(fleet):
    """Although the answer about the content before is on record."""
    fleet.write("promotion.yaml", PROMOTION + "  merge: Manual\n")
    sweep(fleet, 2)
    fleet.status("edge", head(fleet, HEAD), "ci/test", by="bob")
    sweep(fleet)
    assert fleet.condition("sites/ams")[0] == "MergeAwaited"
    pushed = fleet.repos["edge"].commit(HEAD, {"sites/ams/notes.txt": "by ann\n"}, by="ann")
    sweep(fleet)
    assert read_sentence(fleet) == missing("ci", "ci/test", pushed)
    assert fleet.condition("sites/ber")[0] == "StageDraftPending"
    fleet.status("edge", pushed, "ci/test", by="bob")
    sweep(fleet)
    assert {fleet.condition(f"sites/{it}")[0] for it in ("ams", "ber")} == {"MergeAwaited"}

"""What people do on the Gitea of a `ForgeFleet` is what its other helpers show."""

import pytest
from forge_fleet import ForgeFleet
from gitea_server import Gitea

pytestmark = pytest.mark.forge


@pytest.fixture
def forge_fleet(gitea: Gitea, tmp_path) -> ForgeFleet:
    return ForgeFleet.on(
        gitea, tmp_path / "fleet", {"ams": ("dev", "edge"), "ber": ("dev", "edge")}
    )


def test_a_request_lives_on_the_server(forge_fleet):
    fleet = forge_fleet
    path = fleet.path("edge")
    commit = fleet.repos["edge"].commit("change", {"a.txt": "a\n"}, by="ann")
    opening = {"head": "change", "base": "main", "title": "WIP: Change"}
    number = fleet.gitea.post(f"{path}/pulls", opening, by=fleet.bot)["number"]
    seen = fleet.only_request("edge")
    assert (seen["head"], seen["base"], seen["commit"]) == ("change", "main", commit)
    assert (seen["title"], seen["draft"], seen["state"]) == ("Change", True, "open")
    assert seen["author"] == fleet.bot
    fleet.retitle("edge", number, "Change")
    fleet.label("edge", number, "fanout/hold")
    assert fleet.only_request("edge")["labels"] == ["fanout/hold"]
    fleet.unlabel("edge", number, "fanout/hold")
    fleet.close("edge", number)
    assert fleet.only_request("edge")["state"] == "closed"
    fleet.reopen("edge", number)
    fleet.dismiss("edge", number, fleet.review("edge", number, "bob"))
    fleet.status("edge", commit, "ci", "failure", by="bob")
    fleet.status("edge", commit, "ci", by="bob")
    assert fleet.statuses("edge", commit) == {("ci", "bob"): "success"}
    fleet.merge("edge", number, "bob", "squash")
    seen = fleet.only_request("edge")
    assert (seen["state"], seen["merged_by"]) == ("merged", "bob")
    assert fleet.repos["edge"].refs("refs/heads/main") == {"refs/heads/main": seen["merge_commit"]}
    fleet.delete_branch("edge", "change")
    fleet.protect("edge", enable_push=False)
    fleet.protect("edge", required_approvals=1)
    fleet.rename_branch("edge", "main", "trunk")
    assert set(fleet.repos["edge"].refs("refs/heads/")) == {"refs/heads/trunk"}
    assert fleet.calls() == [f"POST {path}/pulls 201"]
    assert fleet.calls() == []


def test_fanout_reaches_the_repositories_with_its_secret(forge_fleet):
    swept = forge_fleet.sweep()
    assert swept.code == 0, swept.err
    assert forge_fleet.gitea.tokens[forge_fleet.bot] not in swept.out + swept.err
    assert set(forge_fleet.states()) == {"sites/ams", "sites/ber"}

"""Variants that change places in a repository with a forge do so in one pull request."""

import pytest
from forge_fleet import ForgeFleet
from gitea_server import Gitea
from moving import AMS, POLICY, place

pytestmark = pytest.mark.forge

BER = "sites/ber"


@pytest.fixture
def fleet(gitea: Gitea, tmp_path) -> ForgeFleet:
    """Two sites in one repository, published by a request."""
    fleet = ForgeFleet.on(gitea, tmp_path / "fleet", {"ams": ("dev", "edge")})
    fleet.write("policy.yaml", POLICY)
    place(fleet, "ams", AMS)
    place(fleet, "ber", BER)
    sweep(fleet, 2)
    assert fleet.published() == {AMS: "v1", BER: "v1"}
    return fleet


def sweep(fleet: ForgeFleet, times: int) -> None:
    for _ in range(times):
        assert fleet.later(minutes=1).sweep().code in (0, 3)


def change_places(fleet: ForgeFleet) -> None:
    place(fleet, "ams", BER)
    place(fleet, "ber", AMS)


def owners(fleet: ForgeFleet) -> dict[str, str]:
    """The site that has the published package at each path."""
    return {
        item["status"]["published"].get("package", item["spec"]["downstream"]["package"]): item[
            "metadata"
        ]["name"].split("-")[1]
        for item in fleet.run("get", "variants", "-o", "json").items
    }


def test_both_are_in_the_request_of_their_stage(fleet: ForgeFleet):
    change_places(fleet)
    sweep(fleet, 3)
    assert [it["state"] for it in fleet.requests("edge")] == ["merged", "merged"]
    assert owners(fleet) == {AMS: "ber", BER: "ams"}
    assert fleet.repos["edge"].drafts() == []


def test_two_requests_move_neither(fleet: ForgeFleet):
    fleet.write("policy.yaml", POLICY.replace("spec:\n", "spec:\n  draftPer: Variant\n", 1))
    change_places(fleet)
    sweep(fleet, 3)
    assert owners(fleet) == {AMS: "ams", BER: "ber"}
    reason, sentence = fleet.condition(AMS)
    assert (reason, "third path first" in sentence) == ("PathTaken", True), sentence


def test_the_old_place_is_removed_by_a_request_of_its_own(fleet: ForgeFleet):
    place(fleet, "ams", "eu/ams")
    sweep(fleet, 4)
    assert [it["state"] for it in fleet.requests("edge")] == ["merged"] * 3
    published, removed = (it["head"] for it in fleet.requests("edge")[1:])
    assert (published.split("/")[2], removed.split("/")[2]) == ("_stages", "_removals")
    assert {it.rpartition("/")[0] for it in fleet.repos["edge"].files()} == {"", "eu/ams", BER}
    assert fleet.repos["edge"].drafts() == []
    assert fleet.later(minutes=1).sweep().out == "nothing to do\n"

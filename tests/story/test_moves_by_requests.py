"""Variants that change places in a repository with a forge do so in one pull request."""

import pytest
from fleet import PROMOTION
from forge_fleet import ForgeFleet
from gitea_server import Gitea
from moving import AMS, NEW, POLICY, packages, place

pytestmark = pytest.mark.forge

BER = "sites/ber"


@pytest.fixture
def fleet(gitea: Gitea, tmp_path) -> ForgeFleet:
    """Two sites in one repository, published by a request half an hour before now."""
    fleet = ForgeFleet.on(gitea, tmp_path / "fleet", {"ams": ("dev", "edge")})
    fleet.later(minutes=-30)
    fleet.write("policy.yaml", POLICY)
    place(fleet, "ams", AMS)
    place(fleet, "ber", BER)
    sweep(fleet, 2)
    assert fleet.published() == {AMS: "v1", BER: "v1"}
    return fleet.later(minutes=30)


def sweep(fleet: ForgeFleet, times: int) -> None:
    for _ in range(times):
        assert fleet.later(minutes=1).sweep().code in (0, 3)


def change_places(fleet: ForgeFleet) -> None:
    place(fleet, "ams", BER)
    place(fleet, "ber", AMS)


def move(fleet: ForgeFleet) -> None:
    place(fleet, "ams", NEW)


MOVES = pytest.mark.parametrize("begin", [move, change_places])


def owners(fleet: ForgeFleet) -> dict[str, str]:
    """The site that has the published package at each path."""
    return {
        item["status"]["published"].get("package", item["spec"]["downstream"]["package"]): item[
            "metadata"
        ]["name"].split("-")[1]
        for item in fleet.run("get", "variants", "-o", "json").items
    }


def test_exchanged_variants_are_in_the_request_of_their_stage(fleet: ForgeFleet):
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
    place(fleet, "ams", NEW)
    sweep(fleet, 4)
    assert [it["state"] for it in fleet.requests("edge")] == ["merged"] * 3
    published, removed = (it["head"] for it in fleet.requests("edge")[1:])
    assert (published.split("/")[2], removed.split("/")[2]) == ("_stages", "_removals")
    assert {it.rpartition("/")[0] for it in fleet.repos["edge"].files()} == {"", NEW, BER}
    assert fleet.repos["edge"].drafts() == []
    assert fleet.later(minutes=1).sweep().out == "nothing to do\n"


@MOVES
def test_a_closed_move_waits_until_somebody_asks_for_it_again(fleet: ForgeFleet, begin):
    fleet.write("promotion.yaml", PROMOTION + "  merge: Manual\n")
    begin(fleet)
    sweep(fleet, 2)
    fleet.close("edge", 2)
    sweep(fleet, 2)
    fleet.ask_again()
    assert [it["state"] for it in fleet.requests("edge")] == ["merged", "closed", "open"]
    assert (packages(fleet), owners(fleet)[BER]) == ({AMS, BER}, "ber")
    fleet.merge("edge", 3)
    sweep(fleet, 2)
    assert (NEW in packages(fleet), owners(fleet)[BER]) == (
        (True, "ber") if begin is move else (False, "ams")
    )


def test_an_old_place_whose_removal_is_closed_stays_until_somebody_asks_for_it_again(
    fleet: ForgeFleet,
):
    move(fleet)
    sweep(fleet, 2)
    fleet.write("promotion.yaml", PROMOTION + "  merge: Manual\n")
    sweep(fleet, 2)
    fleet.close("edge", 3)
    sweep(fleet, 2)
    fleet.ask_again()
    assert [it["state"] for it in fleet.requests("edge")] == ["merged", "merged", "closed", "open"]
    assert packages(fleet) == {AMS, BER, NEW}
    fleet.merge("edge", 4)
    sweep(fleet, 2)
    assert packages(fleet) == {BER, NEW}
    assert fleet.later(minutes=1).sweep().out == "nothing to do\n"


@MOVES
def test_requested_changes_hold_a_move_and_the_removal_of_its_old_place(fleet: ForgeFleet, begin):
    rule = "[{name: dev, requires: [{name: ok, approval: {from: [sre]}}]}]"
    fleet.write("policy.yaml", POLICY.replace("[{name: dev}]", rule))
    bob = "bob@example.com"
    approvers = PROMOTION.replace(bob, f"{bob} {fleet.gitea.host}/bob")
    fleet.write("promotion.yaml", approvers)
    begin(fleet)
    sweep(fleet, 2)
    for number in (2, 3) if begin is move else (2,):
        before = packages(fleet), owners(fleet)
        fleet.review("edge", number, "bob", "REQUEST_CHANGES")
        sweep(fleet, 2)
        [refused] = fleet.blockers("ChangesRequested")
        who = f"{fleet.gitea.host}/bob (approve, or dismiss the review)"
        assert who in (refused["who"] or refused["message"])
        assert (packages(fleet), owners(fleet)) == before
        fleet.review("edge", number, "bob")
        sweep(fleet, 2)
    assert {it["state"] for it in fleet.requests("edge")} == {"merged"}
    assert packages(fleet) == ({BER, NEW} if begin is move else {AMS, BER})
    assert owners(fleet)[BER] == ("ber" if begin is move else "ams")

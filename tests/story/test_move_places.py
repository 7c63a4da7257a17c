"""Who is where a variant is to go: it waits, changes places or is held; nobody is overwritten."""

from pathlib import Path

import pytest
from companies import company
from fleet import Fleet
from moving import (
    AMS,
    ANN,
    NEW,
    POLICY,
    edit,
    is_edited,
    packages,
    place,
    reasons,
    two_sites,
    verified,
)


@company
def fleet(root: Path) -> Fleet:
    return two_sites(root)


def test_two_sites_change_places(fleet: Fleet):
    edit(fleet)
    place(fleet, "ams", "sites/ber")
    place(fleet, "ber", AMS)
    fleet.later(minutes=1).sweep()
    edge = fleet.repos["edge"]
    head = edge.refs()["refs/heads/main"]
    assert packages(fleet) == {AMS, "sites/ber"}
    fleet.sweep()
    assert is_edited(fleet, "sites/ber")
    assert not edge.git("ls-tree", "main", f"{AMS}/notes.txt")
    assert "name: ber\n" in edge.file("main", "sites/ber/Kptfile")
    assert edge.git("rev-list", "--first-parent", "--count", f"{head}..main") == "1"
    fleet.settle()
    assert fleet.sweep().out == "nothing to do\n"
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert is_edited(fleet, "sites/ber")
    assert packages(fleet) == {AMS, "sites/ber"}
    edge.fsck()


def test_three_sites_go_round(fleet: Fleet):
    place(fleet, "cph", "sites/cph")
    fleet.later(minutes=1).settle()
    edit(fleet)
    for site, path in (("ams", "sites/ber"), ("ber", "sites/cph"), ("cph", AMS)):
        place(fleet, site, path)
    fleet.later(minutes=1).settle()
    assert is_edited(fleet, "sites/ber")
    assert packages(fleet) == {AMS, "sites/ber", "sites/cph"}
    assert set(fleet.published().values()) == {"v1"}


def test_variants_that_exchange_paths_go_together_or_not_at_all(fleet: Fleet):
    place(fleet, "ams", "sites/ber")
    place(fleet, "ber", AMS)
    fleet.later(minutes=1).sweep("--drafts-only")
    fleet.run("suspend", "monitoring", "--variant", AMS, *ANN)
    head = fleet.repos["edge"].refs()["refs/heads/main"]
    fleet.settle()
    assert fleet.repos["edge"].refs()["refs/heads/main"] == head
    assert "PathTaken" in reasons(fleet, "sites/ber")
    assert fleet.condition(AMS)[0] == "Suspended"
    fleet.later(minutes=1).run("resume", "monitoring", "--variant", AMS, *ANN)
    fleet.settle()
    assert fleet.repos["edge"].refs()["refs/heads/main"] != head


def test_a_chain_moves_one_after_the_other(fleet: Fleet):
    verified(fleet)
    edit(fleet)
    place(fleet, "ams", "sites/ber")
    place(fleet, "ber", "sites/cph")
    fleet.later(minutes=1).sweep()
    assert "PathTaken" in reasons(fleet, "sites/ber")
    while fleet.sweep("-o", "json").json["outcomes"]:
        pass
    assert packages(fleet) == {AMS, "sites/ber", "sites/cph"}
    assert "PathTaken" in reasons(fleet, "sites/ber")
    fleet.later(minutes=1).report("dev", "v1")
    fleet.later(minutes=1).settle()
    assert packages(fleet) == {AMS, "sites/ber", "sites/cph"}
    assert is_edited(fleet, "sites/ber")
    fleet.later(minutes=1).report("dev", "v1")
    fleet.settle()
    assert packages(fleet) == {"sites/ber", "sites/cph"}


def test_a_newcomer_waits_until_the_place_is_left(fleet: Fleet):
    verified(fleet)
    edit(fleet)
    place(fleet, "ams", NEW)
    place(fleet, "cph", AMS)
    fleet.later(minutes=1)
    while fleet.sweep("-o", "json").json["outcomes"]:
        pass
    assert "PathTaken" in reasons(fleet, AMS)
    assert is_edited(fleet, AMS)
    fleet.later(minutes=1).report("dev", "v1")
    fleet.settle()
    assert is_edited(fleet, NEW)
    assert not fleet.repos["edge"].git("ls-tree", "main", f"{AMS}/notes.txt")
    assert fleet.published()[AMS] == "v1"


def test_a_foreign_package_at_the_new_path_stays(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", {f"{NEW}/notes.txt": "mine\n"})
    place(fleet, "ams", NEW)
    assert fleet.later(minutes=1).sweep().code == 3
    location = f"edge:{NEW}"
    sentence = (
        f"{location} holds a package that is not this variant's; choose another path or remove it"
    )
    assert fleet.condition(NEW) == ("PathTaken", sentence)
    assert edge.file("main", f"{NEW}/notes.txt") == "mine\n"
    assert AMS in packages(fleet)
    edge.commit("main", {f"{NEW}/notes.txt": None})
    fleet.later(minutes=1).settle()
    assert fleet.published()[NEW] == "v1"


def test_a_variant_that_is_there_keeps_its_place(fleet: Fleet):
    place(fleet, "ams", "sites/ber")
    assert fleet.later(minutes=1).sweep().code == 3
    states = {name: item["holds"] for name, item in fleet.targets().items()}
    assert [hold["reason"] for hold in states["ams"]] == ["PathCollision"]
    assert states["ber"] == []
    assert packages(fleet) == {AMS, "sites/ber"}
    assert "name: ber\n" in fleet.repos["edge"].file("main", "sites/ber/Kptfile")


NESTED = [("inside the old path", "sites/ams/inner"), ("around the old path", "sites")]


@pytest.mark.parametrize(("_", "path"), NESTED, ids=[row[0] for row in NESTED])
def test_a_place_inside_or_around_the_old_one_is_held(tmp_path: Path, _, path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.write("policy.yaml", POLICY)
    place(fleet, "ams", AMS)
    fleet.settle()
    place(fleet, "ams", path)
    assert fleet.later(minutes=1).sweep().code == 3
    nested = f"edge:{path} and the present path {AMS} are nested; move it to a third path first"
    assert fleet.condition(path) == ("PathChanged", nested)
    assert packages(fleet) == {AMS}


def test_a_repository_at_a_new_address_is_the_same_repository(fleet: Fleet):
    edit(fleet)
    old = fleet.repos["edge"].path
    new = old.with_name("elsewhere.git")
    old.rename(new)
    fleet.repos["edge"].path = new
    file = fleet.root / "policies" / "repository-edge.yaml"
    file.write_text(file.read_text().replace(str(old), str(new)))
    before = fleet.repos["edge"].refs()
    fleet.later(minutes=1).settle()
    assert fleet.repos["edge"].refs() == before
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert is_edited(fleet, AMS)
    assert fleet.published() == {AMS: "v2", "sites/ber": "v2"}


def test_an_old_repository_that_nobody_declares_holds_the_move(fleet: Fleet):
    for site in ("ams", "ber"):
        place(fleet, site, f"sites/{site}", "core")
    declared = (fleet.root / "policies" / "repository-edge.yaml").read_text()
    fleet.remove("repository-edge.yaml")
    assert fleet.later(minutes=1).sweep().code == 3
    reason, sentence = fleet.condition(AMS)
    assert (reason, "declare the Repository" in sentence) == ("PathChanged", True)
    fleet.write("repository-edge.yaml", declared)
    fleet.later(minutes=1).settle()
    assert packages(fleet, "core") == {AMS, "sites/ber"}
    assert packages(fleet) == set()


@pytest.mark.parametrize("draft_per", ["Variant", "Stage"])
def test_two_sites_change_places_where_one_may_be_in_flight(fleet: Fleet, draft_per):
    limited = POLICY.replace(
        "[{name: dev}]",
        "[{name: dev, rollout: {maxInFlight: 1}, verification: [{name: e2e, report: {}}]}]",
    ).replace("spec:\n", f"spec:\n  draftPer: {draft_per}\n", 1)
    fleet.write("policy.yaml", limited)
    fleet.later(minutes=1).report("dev", "v1")
    fleet.later(minutes=1).settle()
    edit(fleet)
    place(fleet, "ams", "sites/ber")
    place(fleet, "ber", AMS)
    fleet.later(minutes=1).settle()
    assert is_edited(fleet, "sites/ber")
    assert not fleet.repos["edge"].git("ls-tree", "main", f"{AMS}/notes.txt")

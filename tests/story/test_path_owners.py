"""Who has a path keeps it, though its policy is not declared, or its records are lost."""

import shutil
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet

AMS, BER = "sites/ams", "sites/ber"
OTHER = {
    "Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: other}\n",
    "other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n",
}


def another(fleet: Fleet) -> None:
    """A policy of another package that wants the same paths."""
    blueprints = fleet.repos["blueprints"]
    files: dict[str, str | None] = {f"other/{path}": text for path, text in OTHER.items()}
    commit = blueprints.commit("main", files, "other v1")
    blueprints.git("update-ref", "refs/tags/other/v1", commit)
    text = POLICY.replace("package: monitoring", "package: other")
    fleet.write("other.yaml", text.replace("{name: monitoring}", "{name: other}"))


@company
def fleet(root: Path) -> Fleet:
    """One site, published; the policy's file is away, and another wants its path and one more."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.settle()
    made.remove("policy.yaml")
    made.site("ber", "dev", "edge")
    another(made)
    return made


def of_ams(fleet: Fleet) -> tuple[str, list[str]]:
    """The package of the site on the branch, and what refs there are for it."""
    edge = fleet.repos["edge"]
    return edge.git("rev-parse", f"main:{AMS}"), [ref for ref in edge.refs() if AMS in ref]


def adopting(fleet: Fleet) -> None:
    file = fleet.root / "policies" / "other.yaml"
    text = file.read_text().replace("  stages:\n", "  adoptionPolicy: AdoptExisting\n  stages:\n")
    file.write_text(text)


@pytest.mark.parametrize("adopts", [False, True], ids=["AdoptNone", "AdoptExisting"])
def test_the_package_of_a_policy_whose_file_is_away_is_not_overwritten(fleet: Fleet, adopts):
    if adopts:
        adopting(fleet)
    before = of_ams(fleet)
    for _ in range(3):
        assert fleet.later(minutes=1).sweep().code == 3
    assert of_ams(fleet) == before
    reason, sentence = fleet.condition(AMS)
    assert reason == "PathTaken"
    assert "default/monitoring" in sentence


def test_the_policy_has_its_path_when_its_file_is_back(fleet: Fleet):
    fleet.later(minutes=1).sweep()
    fleet.write("policy.yaml", POLICY)
    fleet.remove("other.yaml")
    fleet.remove("site-ber.yaml")
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v2"}


@pytest.mark.parametrize("adopts", [False, True], ids=["AdoptNone", "AdoptExisting"])
def test_a_path_is_not_overwritten_when_the_records_are_lost_too(fleet: Fleet, adopts):
    if adopts:
        adopting(fleet)
    before = of_ams(fleet)
    shutil.rmtree(fleet.records().path)
    for _ in range(3):
        assert fleet.later(minutes=1).sweep("--new-records").code == 3
    assert of_ams(fleet) == before
    reason, sentence = fleet.condition(AMS)
    assert reason == "PathTaken"
    assert "default/monitoring" in sentence


def test_a_path_that_its_owner_released_can_be_adopted(fleet: Fleet):
    """The owner let it go with deletionPolicy: Orphan."""
    orphan = POLICY.replace("  stages:\n", "  deletionPolicy: Orphan\n  stages:\n")
    other = (fleet.root / "policies" / "other.yaml").read_text()
    fleet.remove("other.yaml")
    fleet.write("policy.yaml", orphan)
    fleet.remove("site-ber.yaml")
    [variant] = fleet.run("get", "variants", "-o", "json").items
    site = (fleet.root / "policies" / "site-ams.yaml").read_text()
    fleet.remove("site-ams.yaml")
    by = ("--reason", "closed", "--by", "Ann <ann@example.com>")
    assert fleet.run("remove", "monitoring", variant["metadata"]["name"], *by).code == 0
    fleet.remove("policy.yaml")
    fleet.write("site-ams.yaml", site)
    text = other.replace("package: other", "package: monitoring")
    fleet.write("other.yaml", text)
    fleet.later(minutes=1).sweep()
    assert fleet.condition(AMS)[0] == "PathTaken"
    adopting(fleet)
    fleet.later(minutes=1).sweep()
    assert fleet.condition(AMS)[0] != "PathTaken"


def test_a_path_emptied_by_a_person_is_free_without_a_record(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", {it: None for it in edge.files() if it.startswith(AMS)})
    shutil.rmtree(fleet.records().path)
    fleet.later(minutes=1).sweep("--new-records")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v1", BER: "v1"}
    assert f"{AMS}/other.yaml" in edge.files()


@company
def whole(root: Path) -> Fleet:
    """Two sites, published; the policy is there."""
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    made.settle()
    return made


def test_a_package_removed_by_a_person_stays_removed_when_the_records_are_lost(whole: Fleet):
    edge = whole.repos["edge"]
    before = edge.refs()["refs/heads/main"]
    edge.commit("main", {it: None for it in edge.files() if it.startswith(AMS)})
    assert whole.condition(AMS)[0] == "EditedDownstream"
    shutil.rmtree(whole.records().path)
    whole.later(minutes=1).sweep("--new-records")
    whole.later(minutes=1).sweep()
    reason, sentence = whole.condition(AMS)
    assert reason == "EditedDownstream"
    assert "published/sites/ams" in sentence
    assert edge.drafts() == []
    edge.git("update-ref", "refs/heads/main", before)
    whole.later(minutes=1).settle()
    assert whole.published() == {AMS: "v1", BER: "v1"}


def test_a_package_is_written_anew_when_its_rendering_is_removed_too(whole: Fleet):
    edge = whole.repos["edge"]
    for branch, top in (("main", AMS), ("fanout/default/rendered", f"published/{AMS}")):
        edge.commit(branch, {it: None for it in edge.files(branch) if it.startswith(top)})
    shutil.rmtree(whole.records().path)
    whole.later(minutes=1).sweep("--new-records")
    whole.later(minutes=1).settle()
    assert whole.published() == {AMS: "v1", BER: "v1"}
    assert f"{AMS}/Kptfile" in edge.files()

"""A draft that a person edits and merges by hand is published, though its branch lacks the edit."""

from collections.abc import Callable
from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, Fleet, Repo

AMS, DRAFT = "sites/ams", "drafts/default/sites/ams/monitoring"
NOTES = "sites/ams/notes.txt"
KPTFILE = "sites/ams/Kptfile"


@company
def fleet(root: Path) -> Fleet:
    """A draft that is the first one of its variant."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.sweep("--drafts-only")
    return made


@pytest.fixture
def later(tmp_path: Path) -> Fleet:
    """A draft of a variant that is published."""
    made = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    made.settle()
    made.release("v2")
    made.later(minutes=1).sweep("--drafts-only")
    return made


def with_edit(repo: Repo, start: str) -> str:
    """Return a commit with an edit of the draft, on top of `start`, that is on no branch."""
    files = {it: repo.file(DRAFT, it) for it in repo.files(DRAFT) if it.startswith(AMS)}
    repo.git("update-ref", "refs/heads/mine", start)
    commit = repo.commit("mine", {**files, NOTES: "mine\n"}, "my edit")
    repo.git("update-ref", "-d", "refs/heads/mine")
    return commit


def merge(repo: Repo) -> None:
    edited = with_edit(repo, DRAFT)
    made = repo.git("commit-tree", f"{edited}^{{tree}}", "-p", "main", "-p", edited, "-m", "merge")
    repo.git("update-ref", "refs/heads/main", made.strip())


def fast_forward(repo: Repo) -> None:
    repo.git("update-ref", "refs/heads/main", with_edit(repo, DRAFT))


def squash(repo: Repo) -> None:
    repo.git("update-ref", "refs/heads/main", with_edit(repo, "main"))


WAYS = [merge, fast_forward, squash]


def check_published(fleet: Fleet, revision: str) -> None:
    edge = fleet.repos["edge"]
    fleet.sweep()
    status = fleet.variants()[AMS]
    assert status["published"]["revision"] == revision
    assert {"OutOfBand", "Edited"} <= {it["type"] for it in status["conditions"]}
    assert edge.file("main", NOTES) == "mine\n"
    fleet.release("v5", {"deployment.yaml": PACKAGE["deployment.yaml"] + "# v5\n"})
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v5"}, fleet.condition(AMS)
    assert edge.file("main", NOTES) == "mine\n"
    assert "# v5" in edge.file("main", "sites/ams/deployment.yaml")
    assert edge.drafts() == []


@pytest.mark.parametrize("way", WAYS)
def test_the_first_draft_of_a_variant(fleet: Fleet, way: Callable[[Repo], None]):
    way(fleet.repos["edge"])
    check_published(fleet, "v1")


@pytest.mark.parametrize("way", WAYS)
def test_a_later_draft(later: Fleet, way: Callable[[Repo], None]):
    way(later.repos["edge"])
    check_published(later, "v2")


@pytest.mark.parametrize("way", [merge, fast_forward])
def test_the_first_draft_whose_branch_was_removed_with_the_merge(fleet: Fleet, way):
    edge = fleet.repos["edge"]
    way(edge)
    edge.git("update-ref", "-d", f"refs/heads/{DRAFT}")
    check_published(fleet, "v1")


def test_what_others_pushed_to_the_branch_meanwhile_is_kept(fleet: Fleet):
    edge = fleet.repos["edge"]
    squash(edge)
    edge.commit(DRAFT, {"sites/ams/theirs.txt": "theirs\n"})
    fleet.sweep()
    assert fleet.variants()[AMS]["published"]["revision"] == "v1"
    assert edge.drafts() == ["sites/ams/monitoring"]
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert edge.file("main", "sites/ams/theirs.txt") == "theirs\n"
    assert edge.file("main", NOTES) == "mine\n"


def test_a_package_that_others_wrote_is_not_the_draft(fleet: Fleet):
    edge = fleet.repos["edge"]
    theirs = edge.file(DRAFT, KPTFILE) + "# theirs\n"
    edge.commit("main", {KPTFILE: theirs, NOTES: "theirs\n"})
    fleet.sweep()
    reason, sentence = fleet.condition(AMS)
    assert reason == "PathTaken"
    assert f"if it is, merge branch {DRAFT} with a merge commit" in sentence
    assert "remove it" not in sentence


def test_an_edit_of_a_package_that_a_draft_adopts_is_no_merge(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    edge = fleet.repos["edge"]
    edge.commit("main", {f"{AMS}/{path}": text for path, text in PACKAGE.items()})
    fleet.policy("policy.yaml", ("spec:\n", "spec:\n  adoptionPolicy: AdoptExisting\n"))
    fleet.sweep("--drafts-only")
    edge.commit("main", {NOTES: "mine\n"})
    fleet.later(minutes=1).sweep("--drafts-only")
    assert not fleet.variants()[AMS].get("published")


def test_a_part_of_a_later_draft_is_no_merge(later: Fleet):
    edge = later.repos["edge"]
    edge.commit("main", {KPTFILE: edge.file(DRAFT, KPTFILE), NOTES: "mine\n"})
    later.sweep()
    assert later.condition(AMS)[0] == "EditedDownstream"
    assert later.published() == {AMS: "v1"}

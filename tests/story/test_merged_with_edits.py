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


@company
def later(root: Path) -> Fleet:
    """A draft of a variant that is published."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
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


def squash_with(repo: Repo, *edits: tuple[str, str]) -> None:
    """Put the draft on `main` in one commit, with other text in some of its files."""
    files = {it: repo.file(DRAFT, it) for it in repo.files(DRAFT) if it.startswith(AMS)}
    repo.commit("main", {**files, **{path: files.get(path, "") + text for path, text in edits}})


EDITED_KPTFILE = (KPTFILE, "# mine\n")


@pytest.mark.parametrize(
    "edits",
    [
        [EDITED_KPTFILE],
        [EDITED_KPTFILE, (NOTES, "mine\n")],
        [EDITED_KPTFILE, (f"{AMS}/deployment.yaml", "# mine\n")],
    ],
    ids=["alone", "with a file", "with another edit"],
)
def test_a_later_draft_that_is_squashed_with_an_edit_of_its_kptfile(later: Fleet, edits):
    edge = later.repos["edge"]
    squash_with(edge, *edits)
    check_squashed(later, "v2")
    for path, text in edits:
        assert text in edge.file("main", path)


@pytest.mark.parametrize("draft_per", ["Variant", "Stage"])
def test_a_first_draft_that_is_squashed_with_an_edit_of_its_kptfile(tmp_path: Path, draft_per):
    made = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    policy = (made.root / "policies/policy.yaml").read_text()
    requires = "requires: [{name: ok, approval: {from: [sre]}}], verification"
    policy = policy.replace("verification", requires, 1)
    made.write("policy.yaml", policy.replace("spec:\n", f"spec:\n  draftPer: {draft_per}\n", 1))
    made.settle()
    edge = made.repos["edge"]
    [branch] = edge.drafts()
    files = {it: edge.file(f"drafts/default/{branch}", it)
             for it in edge.files(f"drafts/default/{branch}") if it.startswith(AMS)}  # fmt: skip
    edge.commit("main", {**files, KPTFILE: files[KPTFILE] + "# mine\n"})
    made.later(minutes=1).sweep()
    assert made.published() == {AMS: "v1"}, made.condition(AMS)
    assert edge.file("main", KPTFILE).endswith("# mine\n")


def check_squashed(fleet: Fleet, revision: str) -> None:
    """Check that the revision is in force, and that the next one keeps what people wrote."""
    edge = fleet.repos["edge"]
    fleet.sweep()
    status = fleet.variants()[AMS]
    assert status["published"]["revision"] == revision, fleet.condition(AMS)
    fleet.settle()
    types = {it["type"] for it in fleet.variants()[AMS]["conditions"]}
    assert "OutOfBand" in types
    assert "TagMissing" not in types
    assert f"{AMS}/{revision}" in edge.tags()
    assert edge.drafts() == []
    before = edge.refs()
    fleet.later(minutes=1).sweep()
    assert edge.refs() == before
    fleet.release("v5", {"settings.yaml": PACKAGE["settings.yaml"] + "# v5\n"})
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v5"}, fleet.condition(AMS)
    assert "# v5" in edge.file("main", f"{AMS}/settings.yaml")


def remove_branch(repo: Repo) -> None:
    repo.git("update-ref", "-d", f"refs/heads/{DRAFT}")


WITHOUT_BRANCH = {
    "as it is": [],
    "with a file": [(NOTES, "mine\n")],
    "with an edit": [(f"{AMS}/deployment.yaml", "# mine\n")],
    "with an edit of its Kptfile": [EDITED_KPTFILE],
}


@pytest.mark.parametrize("edits", WITHOUT_BRANCH.values(), ids=WITHOUT_BRANCH)
def test_the_first_draft_that_is_squashed_and_whose_branch_is_removed(fleet: Fleet, edits):
    edge = fleet.repos["edge"]
    squash_with(edge, *edits)
    remove_branch(edge)
    check_squashed(fleet, "v1")
    for path, text in edits:
        assert text in edge.file("main", path)


@pytest.mark.parametrize("edits", WITHOUT_BRANCH.values(), ids=WITHOUT_BRANCH)
def test_a_later_draft_that_is_squashed_and_whose_branch_is_removed(later: Fleet, edits):
    edge = later.repos["edge"]
    squash_with(edge, *edits)
    remove_branch(edge)
    check_squashed(later, "v2")
    for path, text in edits:
        assert text in edge.file("main", path)


def test_a_later_draft_with_local_edits_that_is_squashed_and_whose_branch_is_removed(later: Fleet):
    edge = later.repos["edge"]
    mine = edge.file("main", f"{AMS}/deployment.yaml") + "# local\n"
    edge.commit("main", {f"{AMS}/deployment.yaml": mine})
    later.later(minutes=1).sweep("--drafts-only")
    assert "# local" in edge.file(DRAFT, f"{AMS}/deployment.yaml")
    squash_with(edge, (NOTES, "mine\n"))
    remove_branch(edge)
    check_squashed(later, "v2")
    assert "# local" in edge.file("main", f"{AMS}/deployment.yaml")


def test_the_kptfile_alone_of_a_draft_whose_branch_is_removed_is_no_merge(later: Fleet):
    edge = later.repos["edge"]
    edge.commit("main", {KPTFILE: edge.file(DRAFT, KPTFILE), NOTES: "mine\n"})
    remove_branch(edge)
    later.sweep()
    assert later.condition(AMS)[0] == "EditedDownstream"
    assert later.published() == {AMS: "v1"}


def test_a_draft_that_is_squashed_and_removed_before_a_newer_revision(fleet: Fleet):
    edge = fleet.repos["edge"]
    squash_with(edge)
    remove_branch(edge)
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    assert fleet.published() == {AMS: "v1"}
    fleet.settle()
    assert fleet.published() == {AMS: "v2"}


def test_a_package_of_others_in_place_of_a_removed_draft_is_not_to_be_removed(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", {KPTFILE: edge.file(DRAFT, KPTFILE) + "# theirs\n", NOTES: "theirs\n"})
    remove_branch(edge)
    fleet.sweep()
    reason, sentence = fleet.condition(AMS)
    assert reason == "PathTaken"
    assert "AdoptExisting" in sentence
    assert "remove" not in sentence
    assert "merge branch" not in sentence


def test_the_clone_of_the_same_revision_by_others_is_not_the_draft(fleet: Fleet):
    edge = fleet.repos["edge"]
    squash_with(edge, EDITED_KPTFILE, (f"{AMS}/deployment.yaml", "# theirs\n"))
    fleet.sweep()
    assert fleet.condition(AMS)[0] == "PathTaken"


def test_an_edit_of_the_kptfile_is_no_merge_of_a_draft_of_the_same_revision(tmp_path: Path):
    made = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    policy = (made.root / "policies/policy.yaml").read_text()
    made.settle()
    labels = "    template:\n      labels: {tier: dev}\n"
    made.write("policy.yaml", policy.replace("    template:\n", labels, 1))
    made.later(minutes=1).sweep("--drafts-only")
    edge = made.repos["edge"]
    assert edge.drafts() == ["sites/ams/monitoring"]
    edge.commit("main", {KPTFILE: edge.file("main", KPTFILE) + "# mine\n"})
    made.later(minutes=1).sweep("--drafts-only")
    assert edge.drafts() == ["sites/ams/monitoring"]
    made.settle()
    assert edge.file("main", KPTFILE).endswith("# mine\n")
    assert "tier: dev" in edge.file("main", KPTFILE)


def test_commits_pushed_to_the_branch_meanwhile_are_kept(fleet: Fleet):
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

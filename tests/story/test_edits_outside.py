"""What people commit to a draft outside of its package is not lost without a word."""

from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, POLICY, Fleet

AMS, DRAFT = "sites/ams", "drafts/default/sites/ams/monitoring"
DEPLOYMENT = "sites/ams/deployment.yaml"
DEV = "_stages/default.monitoring/dev"
SHARED = POLICY[: POLICY.index("  stages:")] + "  stages:\n  - {name: dev}\n"
MINE = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 9")


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge"), "osl": ("dev", "edge")})
    made.settle()
    made.release("v2")
    made.later(minutes=1).sweep("--drafts-only")
    return made


@pytest.mark.parametrize(
    "extra", [{}, {f"{AMS}/mine.txt": "mine\n"}], ids=["alone", "beside an edit"]
)
@pytest.mark.parametrize("outside", ["README.md", "NOTES.md", "sites/osl/deployment.yaml"])
def test_a_file_outside_of_the_package_holds_the_draft_by_name(fleet: Fleet, outside, extra):
    edge = fleet.repos["edge"]
    theirs = edge.commit(DRAFT, {outside: MINE, **extra})
    fleet.settle()
    assert fleet.condition(AMS) == (
        "DraftBroken",
        (
            f"{outside}: the file is outside of package {AMS}, and a publication would drop its"
            f" change; keep the change on a branch of its own, and take it back on branch {DRAFT},"
            " or remove the branch to have the draft rewritten"
        ),
    )
    assert fleet.published() == {AMS: "v1", "sites/osl": "v2"}
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert edge.refs()[f"refs/heads/{DRAFT}"] == theirs
    before = edge.file("main", outside) if outside in edge.files() else None
    edge.commit(DRAFT, {outside: before})
    fleet.settle()
    assert fleet.published() == {AMS: "v3", "sites/osl": "v3"}
    assert extra.keys() <= set(edge.files())


def test_a_removed_directory_is_named_file_by_file(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit(DRAFT, {f"sites/osl/{path}": None for path in PACKAGE})
    fleet.settle()
    reason, sentence = fleet.condition(AMS)
    assert reason == "DraftBroken"
    assert "sites/osl/Kptfile: the file is outside" in sentence
    assert f"on branch {DRAFT} (and {len(PACKAGE) - 1} more)" in sentence


def amend(fleet: Fleet, ref: str, outside: str) -> None:
    """Replace the tip of a branch by one with the same message and one more file."""
    edge = fleet.repos["edge"]
    tip = edge.git("rev-parse", ref).strip()
    message, parent = edge.git("log", "-1", "--format=%B", tip), edge.git("rev-parse", f"{tip}^")
    more = edge.commit(ref, {outside: "theirs\n"})
    amended = edge.git(
        "commit-tree", f"{more}^{{tree}}", "-p", parent.strip(), "-F", "-", input=message
    )
    edge.git("update-ref", f"refs/heads/{ref}", amended.strip())


def test_an_amended_commit_of_fanout_holds_it_as_well(fleet: Fleet):
    amend(fleet, DRAFT, "NOTES.md")
    fleet.settle()
    assert fleet.condition(AMS)[0] == "DraftBroken"
    assert fleet.published()[AMS] == "v1"


def test_a_file_equal_to_the_target_branch_is_no_edit(fleet: Fleet):
    edge = fleet.repos["edge"]
    theirs = edge.commit(DRAFT, {DEPLOYMENT: MINE, "NOTES.md": "of all\n"})
    edge.commit("main", {"NOTES.md": "of all\n", "README.md": "of all\n"})
    fleet.settle()
    assert fleet.published()[AMS] == "v2"
    assert edge.git("merge-base", theirs, "main").strip() == theirs
    assert edge.file("main", "NOTES.md") == edge.file("main", "README.md") == "of all\n"


def test_merging_the_target_branch_into_the_draft_is_no_edit(fleet: Fleet):
    edge = fleet.repos["edge"]
    theirs = edge.commit(DRAFT, {DEPLOYMENT: MINE})
    main = edge.commit("main", {"NOTES.md": "of main\n"})
    both = edge.git("merge-tree", "--write-tree", theirs, main).split()[0]
    merge = edge.git("commit-tree", both, "-p", theirs, "-p", main, "-m", "merge main").strip()
    edge.git("update-ref", f"refs/heads/{DRAFT}", merge)
    edge.commit("main", {"NOTES.md": "of main, later\n"})
    fleet.settle()
    assert fleet.published()[AMS] == "v2"
    assert edge.file("main", "NOTES.md") == "of main, later\n"


def test_a_merge_by_hand_has_the_edits_outside_the_package(fleet: Fleet):
    edge = fleet.repos["edge"]
    theirs = edge.commit(DRAFT, {"NOTES.md": "theirs\n"})
    merge = edge.git("commit-tree", f"{theirs}^{{tree}}", "-p", "main", "-p", theirs, "-m", "merge")
    edge.git("update-ref", "refs/heads/main", merge.strip())
    fleet.settle()
    assert fleet.published()[AMS] == "v2"
    assert edge.file("main", "NOTES.md") == "theirs\n"


@company
def shared(root: Path) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge"), "osl": ("dev", "edge")})
    made.write("policy.yaml", SHARED.replace("spec:\n", "spec:\n  draftPer: Stage\n", 1))
    made.sweep()
    return made


def test_a_file_outside_of_all_packages_holds_the_draft_of_a_stage(shared: Fleet):
    edge = shared.repos["edge"]
    edge.commit(f"drafts/default/{DEV}", {"NOTES.md": "theirs\n", DEPLOYMENT: MINE})
    shared.settle()
    assert set(shared.published().values()) == {""}
    for path in (AMS, "sites/osl"):
        reason, sentence = shared.condition(path)
        assert reason == "DraftBroken"
        assert "NOTES.md: the file is outside of the packages of the draft" in sentence
    edge.commit(f"drafts/default/{DEV}", {"NOTES.md": None})
    shared.settle()
    assert shared.published() == {AMS: "v1", "sites/osl": "v1"}
    assert edge.file("main", DEPLOYMENT) == MINE


def test_the_draft_of_a_stage_stays_when_its_targets_are_gone(shared: Fleet):
    edge = shared.repos["edge"]
    theirs = edge.commit(f"drafts/default/{DEV}", {"NOTES.md": "theirs\n"})
    for site in ("ams", "osl"):
        shared.remove(f"site-{site}.yaml")
    why = ("--reason", "closed", "--by", "Ann <ann@example.com>")
    shared.run("remove", "monitoring", "--all-gone", *why)
    shared.later(minutes=1).settle()
    assert edge.refs()[f"refs/heads/drafts/default/{DEV}"] == theirs


def test_an_amended_commit_of_a_draft_of_a_stage_holds_it_as_well(shared: Fleet):
    amend(shared, f"drafts/default/{DEV}", "NOTES.md")
    shared.settle()
    assert set(shared.published().values()) == {""}
    assert shared.condition(AMS)[0] == "DraftBroken"


def test_an_edit_of_another_package_of_the_draft_of_a_stage_is_the_drafts(shared: Fleet):
    edge = shared.repos["edge"]
    edge.commit(f"drafts/default/{DEV}", {"sites/osl/deployment.yaml": MINE})
    shared.settle()
    assert shared.published() == {AMS: "v1", "sites/osl": "v1"}
    assert edge.file("main", "sites/osl/deployment.yaml") == MINE

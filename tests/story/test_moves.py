"""A changed path or repository is a move: the package goes along with what people changed in it."""

from pathlib import Path

import pytest
from companies import company
from fleet import Fleet
from moving import (
    AMS,
    ANN,
    NEW,
    POLICY,
    RENDERED,
    TEXT,
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


PLACES = [("another path", "edge"), ("another repository", "core")]


@pytest.mark.parametrize(("_", "repository"), PLACES, ids=[row[0] for row in PLACES])
def test_the_package_goes_along_with_what_people_changed_in_it(fleet: Fleet, _, repository):
    edit(fleet)
    place(fleet, "ams", NEW, repository)
    repo = fleet.repos[repository]
    assert fleet.later(minutes=1).sweep().code == 0
    branch = "drafts/default/eu/ams/monitoring"
    assert is_edited(fleet, NEW, repository, branch)
    assert repo.git("log", "-1", "--format=%s", branch) == (
        "Move sites/ams to eu/ams at monitoring v1"
    )
    assert packages(fleet) == {AMS, "sites/ber"}
    fleet.settle()
    assert fleet.published() == {NEW: "v1", "sites/ber": "v1"}
    assert is_edited(fleet, NEW, repository)
    assert "name: ams\n" in repo.file("main", f"{NEW}/Kptfile")
    assert f"{NEW}/v1" in repo.tags()
    assert repo.drafts() == []
    assert fleet.sweep().out == "nothing to do\n"
    repo.fsck()


@pytest.mark.parametrize(("_", "repository"), PLACES, ids=[row[0] for row in PLACES])
def test_the_old_place_goes_when_the_new_one_is_ready(fleet: Fleet, _, repository):
    verified(fleet)
    fleet.report("dev", "v1")
    place(fleet, "ams", NEW, repository)
    fleet.later(minutes=1).settle()
    assert NEW in packages(fleet, repository)
    assert AMS in packages(fleet)
    assert f"published/{AMS}" in packages(fleet, branch=RENDERED)
    fleet.later(minutes=1).report("dev", "v1")
    fleet.settle()
    assert AMS not in packages(fleet)
    assert f"published/{AMS}" not in packages(fleet, branch=RENDERED)
    assert f"published/{NEW}" in packages(fleet, repository, RENDERED)
    edge = fleet.repos["edge"]
    message = edge.git("log", "-1", "--format=%B", "main")
    sentence = f"Its variant is eu/ams in {repository} now."
    assert message.startswith(f"Remove sites/ams\n\n{sentence}\n")
    assert f"{AMS}/v1" in edge.tags()
    edge.fsck()


def test_moved_edits_are_edits_for_the_next_revision_too(fleet: Fleet):
    edit(fleet)
    place(fleet, "ams", NEW, "core")
    fleet.later(minutes=1).settle()
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published()[NEW] == "v2"
    assert is_edited(fleet, NEW, "core")
    assert "replicas: 2" in fleet.repos["core"].file("main", f"{NEW}/deployment.yaml")


def test_a_move_and_a_new_revision_come_together(fleet: Fleet):
    edit(fleet)
    fleet.release("v2")
    place(fleet, "ams", NEW, "core")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {NEW: "v2", "sites/ber": "v2"}
    assert is_edited(fleet, NEW, "core")
    assert packages(fleet) == {"sites/ber"}


def test_tags_at_a_path_go_on_counting(fleet: Fleet):
    place(fleet, "ams", NEW)
    fleet.later(minutes=1).settle()
    place(fleet, "ams", AMS)
    fleet.later(minutes=1).settle()
    assert packages(fleet) == {AMS, "sites/ber"}
    assert fleet.repos["edge"].tags() == [
        "eu/ams/v1",
        "sites/ams/v1",
        "sites/ams/v2",
        "sites/ber/v1",
    ]


def test_the_name_of_the_package_is_that_of_its_new_path(fleet: Fleet):
    place(fleet, "ams", "sites/amsterdam")
    fleet.later(minutes=1).settle()
    edge = fleet.repos["edge"]
    assert "name: amsterdam\n" in edge.file("main", "sites/amsterdam/Kptfile")
    assert "name: amsterdam\n" in edge.file("main", "sites/amsterdam/package-context.yaml")


# ---- the way there -------------------------------------------------------------------------------


@pytest.mark.parametrize(("_", "repository"), PLACES, ids=[row[0] for row in PLACES])
def test_a_move_that_is_taken_back_before_it_is_published_leaves_nothing(
    fleet: Fleet, _, repository
):
    edit(fleet)
    before = fleet.repos["edge"].refs("refs/heads/main"), fleet.repos["core"].refs()
    place(fleet, "ams", NEW, repository)
    fleet.later(minutes=1).sweep("--drafts-only")
    assert fleet.repos[repository].drafts() == ["eu/ams/monitoring"]
    place(fleet, "ams", AMS)
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v1", "sites/ber": "v1"}
    edge, core = fleet.repos["edge"], fleet.repos["core"]
    assert (edge.drafts(), core.drafts()) == ([], [])
    assert edge.refs("refs/heads/main") == before[0]
    assert core.refs("refs/heads/main") == {"refs/heads/main": before[1]["refs/heads/main"]}
    assert is_edited(fleet, AMS)
    for repo in (edge, core):
        if RENDERED in repo.git("branch", "--format=%(refname:short)"):
            assert "drafts" not in repo.git("ls-tree", "--name-only", RENDERED).split()
    assert fleet.counted()["listings"] == 3, "core is not looked at any more"


@pytest.mark.parametrize(("_", "repository"), PLACES, ids=[row[0] for row in PLACES])
def test_a_person_s_commits_on_a_draft_are_in_the_draft_at_the_new_place(
    fleet: Fleet, _, repository
):
    edge, old = fleet.repos["edge"], "drafts/default/sites/ams/monitoring"
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    theirs = edge.commit(old, {f"{AMS}/notes.txt": "ours\n"})
    place(fleet, "ams", NEW, repository)
    fleet.later(minutes=1).sweep("--drafts-only")
    fleet.sweep("--drafts-only")
    new = fleet.repos[repository]
    branch = "drafts/default/eu/ams/monitoring"
    assert new.file(branch, f"{NEW}/notes.txt") == "ours\n"
    assert edge.drafts() == (
        ["eu/ams/monitoring", "sites/ber/monitoring"]
        if repository == "edge"
        else ["sites/ber/monitoring"]
    )
    assert (theirs in new.git("rev-list", branch).split()) == (repository == "edge")
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert new.file("main", f"{NEW}/notes.txt") == "ours\n"
    assert fleet.published()[NEW] == "v3"


@pytest.mark.parametrize(("_", "repository"), PLACES, ids=[row[0] for row in PLACES])
def test_a_variant_that_was_never_published_moves_with_its_draft(fleet: Fleet, _, repository):
    place(fleet, "cph", "sites/cph", "core")
    fleet.later(minutes=1).sweep("--drafts-only")
    core = fleet.repos["core"]
    core.commit("drafts/default/sites/cph/monitoring", {"sites/cph/notes.txt": "ours\n"})
    place(fleet, "cph", "eu/cph", "edge" if repository == "core" else "core")
    fleet.later(minutes=1).settle()
    to = fleet.repos["edge" if repository == "core" else "core"]
    assert to.file("main", "eu/cph/notes.txt") == "ours\n"
    assert (core.drafts(), to.drafts()) == ([], [])
    assert "sites/cph/Kptfile" not in core.files()


def test_a_commit_on_the_old_draft_after_it_was_taken_along_is_taken_too(fleet: Fleet):
    edge, old = fleet.repos["edge"], "drafts/default/sites/ams/monitoring"
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    edge.commit(old, {f"{AMS}/notes.txt": "ours\n"})
    place(fleet, "ams", NEW, "core")
    fleet.later(minutes=1).sweep("--drafts-only")
    edge.commit(old, {f"{AMS}/more.txt": "late\n"})
    fleet.settle()
    core = fleet.repos["core"]
    assert core.file("main", f"{NEW}/notes.txt") == "ours\n"
    assert core.file("main", f"{NEW}/more.txt") == "late\n"
    assert edge.drafts() == []


@pytest.mark.parametrize(("_", "repository"), PLACES, ids=[row[0] for row in PLACES])
def test_a_conflict_of_a_move_waits_for_a_decision(fleet: Fleet, _, repository):
    text = TEXT.replace("replicas: 1", "replicas: 7")
    fleet.repos["edge"].commit("main", {f"{AMS}/deployment.yaml": text})
    fleet.release("v2")
    place(fleet, "ams", NEW, repository)
    fleet.later(minutes=1).settle()
    assert fleet.condition(NEW)[0] == "MergeConflict"
    assert "replicas: 7" in fleet.repos["edge"].file("main", f"{AMS}/deployment.yaml")
    assert fleet.run("resolve", "monitoring", "--take", "local", *ANN).code == 0
    fleet.later(minutes=1).settle()
    assert fleet.published()[NEW] == "v2"
    assert "replicas: 7" in fleet.repos[repository].file("main", f"{NEW}/deployment.yaml")


def test_an_edit_of_the_old_place_makes_the_draft_anew(fleet: Fleet):
    place(fleet, "ams", NEW, "core")
    fleet.later(minutes=1).sweep("--drafts-only")
    edit(fleet)
    fleet.settle()
    assert is_edited(fleet, NEW, "core")
    assert AMS not in packages(fleet)


def test_with_orphan_the_old_package_stays_as_nobody_s(fleet: Fleet):
    fleet.write("policy.yaml", POLICY.replace("  stages:", "  deletionPolicy: Orphan\n  stages:"))
    place(fleet, "ams", NEW)
    fleet.later(minutes=1).settle()
    assert packages(fleet) == {AMS, NEW, "sites/ber"}
    assert f"published/{AMS}" not in packages(fleet, branch=RENDERED)
    place(fleet, "cph", AMS)
    fleet.later(minutes=1).sweep()
    assert "PathTaken" in reasons(fleet, AMS)


def test_a_suspended_variant_does_not_move(fleet: Fleet):
    fleet.run("suspend", "monitoring", "--variant", AMS, *ANN)
    place(fleet, "ams", NEW)
    fleet.later(minutes=1).settle()
    assert packages(fleet) == {AMS, "sites/ber"}
    assert fleet.repos["edge"].drafts() == []


def test_a_draft_of_a_move_that_a_person_merges_is_published(fleet: Fleet):
    edit(fleet)
    place(fleet, "ams", NEW, "core")
    fleet.later(minutes=1).sweep("--drafts-only")
    core = fleet.repos["core"]
    draft = core.refs()["refs/heads/drafts/default/eu/ams/monitoring"]
    core.git("update-ref", "refs/heads/main", draft)
    fleet.settle()
    assert fleet.published() == {NEW: "v1", "sites/ber": "v1"}
    assert packages(fleet) == {"sites/ber"}
    assert core.tags() == ["eu/ams/v1"]
    assert is_edited(fleet, NEW, "core")

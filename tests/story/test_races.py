"""Somebody else writes while a pass is under way: never overwritten, observed again, then done."""

from collections.abc import Callable
from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, Fleet

from fanout.git.git_errors import CHANGED_REMEDY
from fanout.git.mirror_store import MirrorStore

DRAFT = "drafts/default/sites/ams/monitoring"
EDITED = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 9")


def on_main(fleet: Fleet) -> None:
    fleet.repos["edge"].commit("main", {"notes.txt": "a person's\n"})


def on_the_draft(fleet: Fleet) -> None:
    fleet.repos["edge"].commit(DRAFT, {"sites/ams/deployment.yaml": EDITED})


def on_the_vendor_branch(fleet: Fleet) -> None:
    fleet.repos["edge"].commit("fanout/default/rendered", {"notes.txt": "a person's\n"})


def the_tag(fleet: Fleet) -> None:
    fleet.repos["edge"].git("update-ref", "refs/tags/sites/ams/v1", "main")


# What moved. A draft is in no push that publishes it; see below.
RACES: list[tuple[str, Callable[[Fleet], None]]] = [
    ("the branch", on_main),
    ("the vendor branch", on_the_vendor_branch),
    ("the tag that was to be made", the_tag),
]


@company
def fleet(root: Path) -> Fleet:
    """One more site of dev in a repository where nobody else is at work."""
    made = Fleet.build(root)
    made.repository("calm")
    made.site("dub", "dev", "calm")
    return made


def meanwhile(patch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do it once, when the plan is made and the downstream repositories are about to be written."""
    change, done = MirrorStore.change, []

    def late(self, changes):
        if not done and any(one.merges or one.branches for one in changes):
            done.append(act())
        return change(self, changes)

    patch.setattr(MirrorStore, "change", late)


@pytest.mark.parametrize("act", [row[1] for row in RACES], ids=[row[0] for row in RACES])
def test_a_publication_that_loses_a_race_is_done_by_the_next_pass(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, act: Callable[[Fleet], None]
):
    fleet.sweep("--drafts-only")
    meanwhile(monkeypatch, lambda: act(fleet))
    lost = fleet.sweep()
    assert lost.code == 3
    assert "failed: publish edge:sites/ams at v1: " in lost.err
    assert CHANGED_REMEDY in lost.err
    edge = fleet.repos["edge"]
    moved = edge.refs()
    assert f"refs/heads/{DRAFT}" in moved
    assert fleet.repos["calm"].tags() == ["sites/dub/v1"], "all others are served"
    fleet.settle()
    for ref, oid in moved.items():
        if not ref.startswith("refs/heads/drafts/"):
            edge.git("merge-base", "--is-ancestor", oid, ref)
    assert fleet.published()["sites/ams"] == "v1"
    tag = "sites/ams/v2" if act is the_tag else "sites/ams/v1"
    assert tag in edge.tags()
    assert edge.file(tag, "sites/ams/deployment.yaml") == PACKAGE["deployment.yaml"]
    edge.fsck()


def test_a_commit_on_a_draft_that_is_being_published_stays_on_its_branch(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    fleet.sweep("--drafts-only")
    meanwhile(monkeypatch, lambda: on_the_draft(fleet))
    assert fleet.sweep().code == 0
    fleet.settle()
    edge = fleet.repos["edge"]
    assert edge.file("sites/ams/v1", "sites/ams/deployment.yaml") == PACKAGE["deployment.yaml"]
    assert edge.file(DRAFT, "sites/ams/deployment.yaml") == EDITED
    theirs = edge.refs()[f"refs/heads/{DRAFT}"]
    fleet.release("v2")
    fleet.settle()
    assert fleet.condition("sites/ams")[0] == "MergeConflict"
    edge.git("merge-base", "--is-ancestor", theirs, DRAFT)


def test_a_draft_that_somebody_commits_to_is_not_rewritten_over_it(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    fleet.sweep("--drafts-only")
    fleet.release("v2")
    meanwhile(monkeypatch, lambda: on_the_draft(fleet))
    lost = fleet.sweep("--drafts-only")
    assert lost.code == 3
    assert "failed: rewrite the draft of edge:sites/ams at v2" in lost.err
    edge = fleet.repos["edge"]
    assert edge.file(DRAFT, "sites/ams/deployment.yaml") == EDITED
    assert "replicas: 2" in fleet.repos["calm"].file(
        "drafts/default/sites/dub/monitoring", "sites/dub/deployment.yaml"
    )
    theirs = edge.refs()[f"refs/heads/{DRAFT}"]
    assert fleet.sweep("--drafts-only").code == 3, "the conflict waits for a person"
    edge.git("merge-base", "--is-ancestor", theirs, DRAFT)
    assert fleet.condition("sites/ams")[0] == "MergeConflict"


def test_a_push_that_fails_is_reported_once_however_many_drafts_were_in_it(fleet: Fleet):
    fleet.repos["edge"].hook("pre-receive", "exit 1")
    swept = fleet.sweep("--drafts-only")
    assert swept.code == 3
    (failed_line,) = (line for line in swept.err.splitlines() if line.startswith("failed: "))
    assert "failed: write the draft of edge:sites/ams at v1 and 1 more: " in failed_line
    outcomes = fleet.sweep("--drafts-only", "-o", "json").json["outcomes"]
    failed = {it["path"] for it in outcomes if not it["done"]}
    assert failed == {"sites/ams", "sites/ber"}


def test_a_record_made_while_a_pass_publishes_hides_no_publication(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    fleet.sweep("--drafts-only")
    meanwhile(monkeypatch, lambda: fleet.run("suspend", "monitoring", "--reason", "an incident"))
    swept = fleet.sweep("-o", "json")
    published = [it["path"] for it in swept.json["outcomes"] if it["kind"] == "Publish"]
    assert sorted(published) == ["sites/ams", "sites/dub"]
    assert fleet.published()["sites/ams"] == "v1"
    assert fleet.sweep("-o", "json").json["outcomes"] == [], "the publications are on record"


def test_a_record_made_while_a_saved_plan_publishes_hides_no_publication(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    fleet.sweep("--drafts-only")
    saved = str(fleet.root / "plan.json")
    fleet.plan("--out", saved)
    meanwhile(monkeypatch, lambda: fleet.run("suspend", "monitoring", "--reason", "an incident"))
    swept = fleet.sweep("--plan", saved, "-o", "json")
    assert swept.code == 0, swept.err
    published = [it["path"] for it in swept.json["outcomes"] if it["kind"] == "Publish"]
    assert sorted(published) == ["sites/ams", "sites/dub"]
    fleet.settle()
    assert fleet.published()["sites/ams"] == "v1"

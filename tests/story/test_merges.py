"""A new revision meets what people changed: nothing of theirs is lost, and conflicts are told."""

from pathlib import Path

import pytest
from fleet import PACKAGE, Fleet

AMS, DEPLOYMENT = "sites/ams", "sites/ams/deployment.yaml"
TEXT = PACKAGE["deployment.yaml"]


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    made = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    made.settle()
    assert made.published() == {AMS: "v1"}
    return made


def draft(fleet: Fleet, path: str = DEPLOYMENT) -> str:
    return fleet.repos["edge"].file("drafts/default/sites/ams/monitoring", path)


def test_an_edit_of_the_published_package_survives_the_next_revision(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", {DEPLOYMENT: TEXT + "  paused: true # by hand\n"})
    fleet.release("v2")
    assert fleet.later(minutes=1).sweep().code == 0
    assert "replicas: 2" in draft(fleet)
    assert "paused: true # by hand" in draft(fleet)
    assert edge.file("fanout/default/rendered", f"drafts/{DEPLOYMENT}").count("paused") == 0
    fleet.settle()
    assert fleet.published() == {AMS: "v2"}
    assert "paused: true # by hand" in edge.file("main", DEPLOYMENT)
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert "replicas: 3" in edge.file("main", DEPLOYMENT)
    assert "paused: true # by hand" in edge.file("main", DEPLOYMENT)
    assert edge.file("main", "sites/ams/Kptfile").count("ref: monitoring/v3") == 2
    edge.fsck()


def test_a_person_s_commit_on_a_draft_survives_the_next_revision(fleet: Fleet):
    edge = fleet.repos["edge"]
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    theirs = edge.commit(
        "drafts/default/sites/ams/monitoring", {DEPLOYMENT: draft(fleet) + "  paused: true\n"}
    )
    fleet.release("v3")
    fleet.later(minutes=1).sweep("--drafts-only")
    assert "replicas: 3" in draft(fleet)
    assert "paused: true" in draft(fleet)
    tip = edge.refs()["refs/heads/drafts/default/sites/ams/monitoring"]
    assert theirs in edge.git("rev-list", tip).split()
    fleet.settle()
    assert "paused: true" in edge.file("main", DEPLOYMENT)


def test_edits_on_the_branch_and_on_the_draft_both_survive(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", {"sites/ams/notes.txt": "ours\n"})
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    edge.commit(
        "drafts/default/sites/ams/monitoring", {DEPLOYMENT: draft(fleet) + "  paused: true\n"}
    )
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert edge.file("main", "sites/ams/notes.txt") == "ours\n"
    assert "paused: true" in edge.file("main", DEPLOYMENT)
    assert "replicas: 3" in edge.file("main", DEPLOYMENT)


def conflict(fleet: Fleet) -> None:
    """A person and upstream set the same value differently; the draft is written."""
    text = TEXT.replace("replicas: 1", "replicas: 7")
    fleet.repos["edge"].commit("main", {DEPLOYMENT: text})
    fleet.release("v2")
    fleet.later(minutes=1).settle()


def test_upstream_wins_in_a_conflict_and_automation_waits_for_a_decision(fleet: Fleet):
    conflict(fleet)
    assert "replicas: 2" in draft(fleet)
    reason, sentence = fleet.condition(AMS)
    assert reason == "ConflictUndecided"
    assert "1 value that both sides changed" in sentence
    assert "replicas: 7" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_diff_names_the_conflict_with_its_three_values(fleet: Fleet):
    conflict(fleet)
    told = fleet.run("diff", "sites/ams").out.splitlines()[0]
    assert told.startswith("# conflict: deployment.yaml:")
    assert "Deployment/prometheus: spec.replicas: both changed" in told
    assert "(base 1, upstream 2, local 7); upstream won" in told


def test_a_recorded_decision_resolves_a_conflict(fleet: Fleet):
    conflict(fleet)
    done = fleet.run("resolve", "monitoring", "--reason", "2 it is", "--by", "Ann <ann@x.org>")
    assert done.code == 0, done.err
    fleet.later(minutes=1).settle()
    assert "replicas: 2" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_a_commit_on_the_draft_resolves_a_conflict(fleet: Fleet):
    conflict(fleet)
    text = draft(fleet).replace("replicas: 2", "replicas: 5")
    fleet.repos["edge"].commit("drafts/default/sites/ams/monitoring", {DEPLOYMENT: text})
    fleet.later(minutes=1).settle()
    assert "replicas: 5" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_a_resolved_conflict_is_not_asked_again_at_the_next_revision(fleet: Fleet):
    test_a_commit_on_the_draft_resolves_a_conflict(fleet)
    fleet.release("v3", {"service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n"})
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v3"}
    assert "replicas: 5" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_a_person_may_promote_a_draft_with_conflicts(fleet: Fleet):
    conflict(fleet)
    done = fleet.run(
        "promote", "monitoring", "--stage", "dev", "--reason", "ok", "--by", "Ann <ann@x.org>"
    )
    assert done.code == 0, done.err
    assert fleet.published() == {AMS: "v2"}


@pytest.mark.parametrize(("word", "published"), [("UpstreamWins", "v2"), ("Hold", "v1")])
def test_the_policy_says_what_a_conflict_does(fleet: Fleet, word: str, published: str):
    policy = (fleet.root / "policies" / "policy.yaml").read_text()
    fleet.write("policy.yaml", policy.replace("  stages:\n", f"  onConflict: {word}\n  stages:\n"))
    conflict(fleet)
    args = ("promote", "monitoring", "--stage", "dev", "--reason", "ok", "--by", "A <a@x.org>")
    fleet.run(*args)
    assert fleet.published() == {AMS: published}


def test_without_the_base_an_edited_package_is_held(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", {DEPLOYMENT: TEXT + "  paused: true\n"})
    edge.git("update-ref", "-d", "refs/heads/fanout/default/rendered")
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.condition(AMS)[0] == "BaseMissing"
    assert "replicas: 1" in edge.file("main", DEPLOYMENT)


def test_a_package_that_was_removed_by_hand_is_not_put_back(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", dict.fromkeys((p for p in edge.files() if p.startswith(AMS)), None))
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.condition(AMS)[0] == "EditedDownstream"
    assert edge.files() == ["README.md"]


def test_edits_beside_one_that_upstream_makes_too_stay_edits(fleet: Fleet):
    """The merge then comes to what is there already, and no draft is needed."""
    edge, settings = fleet.repos["edge"], "sites/ams/settings.yaml"
    text = edge.file("main", settings).replace("7d", "9d")
    edge.commit("main", {settings: text, DEPLOYMENT: TEXT + "  paused: true\n"})
    fleet.site("ams", "dev", "edge", "9d")
    fleet.later(minutes=1).settle()
    assert edge.drafts() == []
    assert edge.file("fanout/default/rendered", f"published/{DEPLOYMENT}").count("paused") == 0
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert "paused: true" in edge.file("main", DEPLOYMENT)
    edge.fsck()

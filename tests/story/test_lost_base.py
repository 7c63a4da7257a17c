"""The branch of renderings is lost or was changed: no edit is taken for what fanout wrote."""

from collections.abc import Callable
from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, Fleet

AMS, DEPLOYMENT = "sites/ams", "sites/ams/deployment.yaml"
TEXT = PACKAGE["deployment.yaml"]
BRANCH, RENDERED = "fanout/default/rendered", "refs/heads/fanout/default/rendered"
DRAFT = "drafts/default/sites/ams/monitoring"
PAUSED = "  paused: true # by hand\n"


def one_site(root: Path) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.settle()
    return made


@company
def fleet(root: Path) -> Fleet:
    """What is published at v1 is what fanout made of it."""
    return one_site(root)


@company
def merged(root: Path) -> Fleet:
    """What is published at v2 has a person's edit in it, and nobody has edited it since."""
    made = one_site(root)
    made.repos["edge"].commit("main", {DEPLOYMENT: TEXT + PAUSED})
    made.release("v2")
    made.later(minutes=1).settle()
    assert made.published() == {AMS: "v2"}
    return made


def lost(fleet: Fleet) -> None:
    fleet.repos["edge"].git("update-ref", "-d", RENDERED)


def tampered(fleet: Fleet) -> None:
    """Somebody has the branch say that the edit is nobody's."""
    edge = fleet.repos["edge"]
    edge.commit(BRANCH, {f"published/{DEPLOYMENT}": edge.file("main", DEPLOYMENT)})


WAYS = [("lost", lost), ("changed by a person", tampered)]


@pytest.fixture(params=[row[1] for row in WAYS], ids=[row[0] for row in WAYS])
def spoil(request: pytest.FixtureRequest) -> Callable[[Fleet], None]:
    return request.param


def test_edits_that_were_merged_before_are_held_and_not_overwritten(merged: Fleet, spoil):
    spoil(merged)
    merged.release("v3")
    merged.later(minutes=1).settle()
    edge = merged.repos["edge"]
    reason, sentence = merged.condition(AMS)
    assert reason == "BaseMissing"
    assert "restore that branch" in sentence
    assert (merged.published(), edge.drafts()) == ({AMS: "v2"}, [])
    assert PAUSED in edge.file("main", DEPLOYMENT)
    result = merged.run("diff", AMS)
    assert (result.code, result.out) == (3, "")  # no patch that takes the edit away
    assert sentence in result.err


def test_an_unmerged_edit_has_its_base_in_the_history_of_the_branch(fleet: Fleet, spoil):
    edge = fleet.repos["edge"]
    edge.commit("main", {DEPLOYMENT: TEXT + PAUSED})
    spoil(fleet)
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v2"}
    text = edge.file("main", DEPLOYMENT)
    assert "replicas: 2" in text
    assert PAUSED in text
    assert edge.file(BRANCH, f"published/{DEPLOYMENT}").count("paused") == 0


def test_an_adoption_takes_over_the_package_with_all_edits(merged: Fleet, spoil):
    spoil(merged)
    policy = (merged.root / "policies" / "policy.yaml").read_text()
    adopting = policy.replace("  stages:\n", "  adoptionPolicy: AdoptExisting\n  stages:\n")
    merged.write("policy.yaml", adopting)
    merged.release("v3")
    merged.later(minutes=1).settle()
    assert merged.condition(AMS)[0] == "AdoptionAwaits"
    why = ("--reason", "its edits are there", "--by", "Ann <ann@example.com>")
    assert merged.run("promote", "monitoring", "--stage", "dev", *why).code == 0
    edge = merged.repos["edge"]
    assert merged.published() == {AMS: "v3"}
    assert "replicas: 3" in edge.file("main", DEPLOYMENT)
    assert PAUSED in edge.file("main", DEPLOYMENT)
    merged.release("v4")
    merged.later(minutes=1).settle()
    assert PAUSED in edge.file("main", DEPLOYMENT)
    assert "replicas: 4" in edge.file("main", DEPLOYMENT)


def test_a_restored_branch_lets_the_next_revision_through(merged: Fleet, spoil):
    edge = merged.repos["edge"]
    before = edge.refs()[RENDERED]
    spoil(merged)
    merged.release("v3")
    merged.later(minutes=1).settle()
    edge.git("update-ref", RENDERED, before)
    merged.settle()
    assert merged.published() == {AMS: "v3"}
    assert PAUSED in edge.file("main", DEPLOYMENT)


def lost_with_draft(fleet: Fleet) -> None:
    lost(fleet)


def tampered_draft(fleet: Fleet) -> None:
    fleet.repos["edge"].commit(BRANCH, {f"drafts/{DEPLOYMENT}": TEXT + PAUSED})


@pytest.mark.parametrize("spoil_draft", [lost_with_draft, tampered_draft])
def test_an_open_draft_gets_its_rendering_back_before_it_is_published(fleet: Fleet, spoil_draft):
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    edge = fleet.repos["edge"]
    edge.commit(DRAFT, {DEPLOYMENT: edge.file(DRAFT, DEPLOYMENT) + PAUSED})
    spoil_draft(fleet)
    fleet.settle()
    assert fleet.published() == {AMS: "v2"}
    assert PAUSED in edge.file("main", DEPLOYMENT)
    assert edge.file(BRANCH, f"published/{DEPLOYMENT}").count("paused") == 0
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert PAUSED in edge.file("main", DEPLOYMENT)
    assert "replicas: 3" in edge.file("main", DEPLOYMENT)
    edge.fsck()


def test_a_removal_knows_merged_edits_without_the_branch(merged: Fleet, spoil):
    spoil(merged)
    [item] = merged.run("get", "variants", "-o", "json").items
    name = item["metadata"]["name"]
    merged.site("ber", "dev", "edge")
    merged.remove("site-ams.yaml")
    line = ("remove", "monitoring", name, "--reason", "closed", "--by", "Ann <ann@example.com>")
    refused = merged.run(*line)
    assert refused.code == 4
    assert "--edited" in refused.err
    assert merged.run(*line, "--edited").code == 0

"""A branch of a draft to which a person pushed something that is no draft of its variant."""

from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet

AMS, OSL = "sites/ams", "sites/osl"
DRAFT, OTHER = (f"drafts/default/{path}/monitoring" for path in (AMS, OSL))
SHARED = POLICY[: POLICY.index("  stages:")] + "  stages:\n  - {name: dev}\n"


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge"), "osl": ("dev", "edge")})
    made.sweep("--drafts-only")
    return made


def sweep_twice(fleet: Fleet) -> None:
    for _ in range(2):
        assert fleet.later(minutes=1).sweep().code == 3


@pytest.mark.parametrize("commits", [{}, {f"{OSL}/notes.txt": "mine\n"}], ids=["plain", "edited"])
def test_the_draft_of_another_variant_holds_the_one_whose_branch_it_is(fleet: Fleet, commits):
    edge = fleet.repos["edge"]
    edge.git("update-ref", f"refs/heads/{DRAFT}", edge.refs()[f"refs/heads/{OTHER}"])
    if commits:
        edge.commit(DRAFT, commits)
    pushed = edge.refs()[f"refs/heads/{DRAFT}"]
    sweep_twice(fleet)
    reason, sentence = fleet.condition(AMS)
    assert reason == "PathTaken"
    assert f"branch {DRAFT} has the draft of variant monitoring-osl-" in sentence
    assert "and none of monitoring-ams-" in sentence
    assert fleet.published() == {AMS: "", OSL: "v1"}
    assert edge.refs()[f"refs/heads/{DRAFT}"] == pushed
    edge.git("update-ref", "-d", f"refs/heads/{DRAFT}")
    fleet.settle()
    assert fleet.published() == {AMS: "v1", OSL: "v1"}


def test_a_branch_that_was_reset_to_the_target_branch_is_written_again(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.git("update-ref", f"refs/heads/{DRAFT}", "refs/heads/main")
    fleet.settle()
    assert fleet.published() == {AMS: "v1", OSL: "v1"}
    assert edge.drafts() == []


def test_a_branch_of_a_stage_that_was_reset_is_written_again(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "osl": ("dev", "edge")})
    fleet.write("policy.yaml", SHARED.replace("spec:\n", "spec:\n  draftPer: Stage\n", 1))
    fleet.sweep()
    edge = fleet.repos["edge"]
    [branch] = edge.drafts()
    edge.git("update-ref", f"refs/heads/drafts/default/{branch}", "refs/heads/main")
    fleet.settle()
    assert fleet.published() == {AMS: "v1", OSL: "v1"}
    assert edge.drafts() == []


def test_a_commit_on_a_branch_that_was_reset_is_kept(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.git("update-ref", f"refs/heads/{DRAFT}", "refs/heads/main")
    theirs = edge.commit(DRAFT, {"notes.txt": "mine\n"})
    sweep_twice(fleet)
    assert edge.refs()[f"refs/heads/{DRAFT}"] == theirs
    assert "has commits of others" in fleet.condition(AMS)[1]

"""What a person commits to a draft and cannot be used is neither published nor a decision."""

import re
from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, Fleet

AMS, DEPLOYMENT = "sites/ams", "sites/ams/deployment.yaml"
TEXT = PACKAGE["deployment.yaml"]
DRAFT = "drafts/default/sites/ams/monitoring"
WHY = ("--reason", "it is urgent", "--by", "Ann <ann@example.com>")
MARKED = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: prometheus
spec:
<<<<<<< HEAD
  replicas: 2
=======
  replicas: 7
>>>>>>> mine
"""


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.settle()
    made.release("v2")
    made.later(minutes=1).sweep("--drafts-only")
    return made


ROWS = [
    ("a file that is no YAML", {DEPLOYMENT: TEXT + " bad\n"}, f"{DEPLOYMENT}:7:"),
    ("conflict markers in a manifest", {DEPLOYMENT: MARKED}, f"{DEPLOYMENT}:6: the markers of"),
    (
        "conflict markers in another file",
        {"sites/ams/notes.txt": "one\n<<<<<<< a\n2\n=======\n3\n>>>>>>> b\n"},
        "sites/ams/notes.txt:2: the markers of a merge conflict",
    ),
    (
        "an object that is there twice",
        {"sites/ams/more.yaml": TEXT},
        "sites/ams/more.yaml:1: Deployment/prometheus: the object is also at deployment.yaml:1",
    ),
    ("a Kptfile that is none", {"sites/ams/Kptfile": "kind: Kptfile\n"}, "sites/ams/Kptfile:1:"),
    ("no Kptfile", {"sites/ams/Kptfile": None}, "sites/ams/Kptfile: there is no Kptfile"),
    (
        "more values than a package may have",
        {"sites/ams/more.yaml": "a:\n" + "- 1\n" * 150_001},
        "sites/ams/more.yaml: the package has more than 150,000 YAML values",
    ),
    (
        "no package at all",
        {f"{AMS}/{path}": None for path in PACKAGE},
        "sites/ams/Kptfile: there is no Kptfile",
    ),
]


@pytest.mark.parametrize(("_", "files", "words"), ROWS, ids=[row[0] for row in ROWS])
def test_a_broken_draft_is_held_by_name_and_continues_when_corrected(fleet: Fleet, _, files, words):
    edge = fleet.repos["edge"]
    before = edge.refs()[f"refs/heads/{DRAFT}"]
    theirs = edge.commit(DRAFT, files)
    fleet.settle()
    reason, sentence = fleet.condition(AMS)
    assert reason == "DraftBroken"
    assert words in sentence
    assert re.search(f"; correct (it|the [a-z]+) on branch {DRAFT}", sentence), sentence
    assert sentence.count("; correct ") == 1
    fleet.run("promote", "monitoring", "--stage", "dev", *WHY)
    assert fleet.published() == {AMS: "v1"}
    assert edge.refs()[f"refs/heads/{DRAFT}"] == theirs
    edge.commit(DRAFT, {path: edge.file(before, path) if path in edge.files(before) else None
                        for path in files})  # fmt: skip
    fleet.settle()
    assert fleet.published() == {AMS: "v2"}


def test_the_next_revision_does_not_take_it_along(fleet: Fleet):
    theirs = fleet.repos["edge"].commit(DRAFT, {DEPLOYMENT: MARKED})
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert fleet.repos["edge"].refs()[f"refs/heads/{DRAFT}"] == theirs
    assert fleet.condition(AMS)[0] == "DraftBroken"


def test_a_draft_branch_that_a_person_removed_is_written_anew(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit(DRAFT, {DEPLOYMENT: MARKED})
    edge.git("update-ref", "-d", f"refs/heads/{DRAFT}")
    fleet.settle()
    assert fleet.published() == {AMS: "v2"}


def test_a_broken_draft_merged_by_a_person_is_published(fleet: Fleet):
    edge = fleet.repos["edge"]
    theirs = edge.commit(DRAFT, {DEPLOYMENT: MARKED})
    merge = edge.git("commit-tree", f"{theirs}^{{tree}}", "-p", "main", "-p", theirs, "-m", "merge")
    edge.git("update-ref", "refs/heads/main", merge)
    fleet.settle()
    status = fleet.variants()[AMS]
    assert status["published"]["revision"] == "v2"
    assert "OutOfBand" in [it["type"] for it in status["conditions"]]


def test_a_conflict_is_not_decided_by_a_commit_that_cannot_be_used(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.settle()
    edge = fleet.repos["edge"]
    edge.commit("main", {DEPLOYMENT: TEXT.replace("replicas: 1", "replicas: 7")})
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.condition(AMS)[0] == "MergeConflict"
    edge.commit(DRAFT, {DEPLOYMENT: MARKED})
    assert fleet.condition(AMS)[0] == "DraftBroken"
    edge.commit(DRAFT, {DEPLOYMENT: TEXT.replace("replicas: 1", "replicas: 7")})
    fleet.settle()
    assert "replicas: 7" in edge.file("main", DEPLOYMENT)


def test_upstream_s_own_oddities_are_not_the_maintainers_to_correct(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.release("v2", {"again.yaml": TEXT, "notes.txt": "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n"})
    fleet.sweep("--drafts-only")
    edge = fleet.repos["edge"]
    edge.commit(DRAFT, {"sites/ams/mine.txt": "ours\n"})
    fleet.settle()
    assert fleet.published() == {AMS: "v2"}
    assert edge.file("main", "sites/ams/mine.txt") == "ours\n"


def test_objects_of_one_name_in_two_subpackages_may_both_be_edited(fleet: Fleet):
    edge, head = fleet.repos["edge"], "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"
    parts = {
        f"{name}/{path}": text
        for name in ("one", "two")
        for path, text in (("Kptfile", PACKAGE["Kptfile"]), ("c.yaml", f"{head}data: {{a: b}}\n"))
    }
    fleet.release("v3", parts)
    fleet.settle()
    edge.commit("main", {f"sites/ams/{name}/c.yaml": f"{head}data: {{a: {name}}}\n"
                         for name in ("one", "two")})  # fmt: skip
    fleet.release("v4")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v4"}
    assert "a: two" in edge.file("main", "sites/ams/two/c.yaml")

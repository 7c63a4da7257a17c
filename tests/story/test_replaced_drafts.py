"""Draft branches that people set to something else: their commits stay, and are told."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fleet import POLICY, Fleet, Repo

SIGNED = "  - {name: dev, requires: [{name: ok, approval: {from: [sre]}}]}\n"
BRANCHES = {
    "Stage": "drafts/default/_stages/default.monitoring/dev",
    "Variant": "drafts/default/sites/a/monitoring",
}


def build(root: Path, draft: str, stages: str = SIGNED) -> Fleet:
    fleet = Fleet.build(root, {"a": ("dev", "edge")})
    policy = POLICY[: POLICY.index("  - {name: dev,")] + stages
    fleet.write("policy.yaml", policy.replace("spec:\n", f"spec:\n  draftPer: {draft}\n", 1))
    return fleet


def rebase(repo: Repo, branch: str) -> str:
    """Put the one commit of a branch on `main`, as a forge does that rebases."""
    tip = repo.refs()[f"refs/heads/{branch}"]
    files = {path: repo.file(tip, path) for path in repo.files(tip)}
    return repo.commit("main", files, repo.git("log", "-1", "--format=%B", tip))


@pytest.mark.parametrize("draft", BRANCHES)
def test_a_commit_on_a_branch_that_was_reset_stays(tmp_path: Path, draft: str):
    fleet, branch = build(tmp_path, draft), BRANCHES[draft]
    assert fleet.sweep().code == 0
    edge = fleet.repos["edge"]
    edge.commit("main", {"README.md": "# more\n"})
    rebase(edge, branch)
    fleet.later(minutes=1).settle()
    assert fleet.published() == {"sites/a": "v1"}
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    edge.git("update-ref", f"refs/heads/{branch}", "refs/heads/main")
    commit = edge.commit(branch, {"notes.md": "mine\n"})
    for _ in range(2):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 3, swept.out + swept.err
        assert edge.refs()[f"refs/heads/{branch}"] == commit
    reason, sentence = fleet.condition("sites/a")
    assert reason == "PathTaken"
    assert branch in sentence
    # As the message says, the branch is to be moved out of the way.
    edge.git("branch", "-m", branch, "mine")
    fleet.later(minutes=1).settle()
    assert "replicas: 2" in edge.file(branch, "sites/a/deployment.yaml")


TWO = (
    "  - {name: dev, requires: [{name: ok, approval: {from: [sre]}}]}\n"
    "  - {name: lab, requires: [{name: ok, approval: {from: [sre]}}]}\n"
)


def test_a_rebased_branch_has_nothing_of_the_commits_below_it(tmp_path: Path):
    fleet = build(tmp_path, "Stage", TWO)
    fleet.site("b", "lab", "edge")
    assert fleet.sweep().code == 0
    edge, dev = fleet.repos["edge"], BRANCHES["Stage"]
    lab = dev.replace("/dev", "/lab")
    theirs = edge.git("log", "-1", "--format=%B", lab)
    files = {it: edge.file(lab, it) for it in edge.files(lab) if it.startswith("sites/b/")}
    edge.commit("main", {"README.md": "# more\n"})
    rebase(edge, dev)
    # What "update by rebase" of a forge does.
    edge.git("update-ref", f"refs/heads/{lab}", "refs/heads/main")
    rebased = edge.commit(lab, files, theirs)
    fleet.later(minutes=1).settle()
    assert fleet.published() == {"sites/a": "v1", "sites/b": ""}
    assert edge.refs()[f"refs/heads/{lab}"] == rebased
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    log = edge.git("log", "--format=%B", f"main..{lab}")
    assert "sites/b" in log
    assert "sites/a" not in log


@pytest.mark.parametrize("draft", BRANCHES)
def test_a_commit_beside_the_packages_survives_a_bump(tmp_path: Path, draft: str):
    fleet, branch = build(tmp_path, draft), BRANCHES[draft]
    assert fleet.sweep().code == 0
    edge = fleet.repos["edge"]
    commit = edge.commit(branch, {"notes.md": "mine\n"})
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert edge.refs()[f"refs/heads/{branch}"] == commit
    assert fleet.condition("sites/a")[0] == "DraftBroken"
    edge.commit(branch, {"notes.md": None})
    fleet.settle()
    assert "replicas: 2" in edge.file(branch, "sites/a/deployment.yaml")
    assert edge.git("merge-base", "--is-ancestor", commit, branch) == ""


def one_commit(repo: Repo, names: tuple[str, ...] = ()) -> None:
    """Put files of the draft on `main`; all, if none is named."""
    files = [it for it in repo.files(OWN) if not names or it.endswith(names)]
    repo.commit("main", {it: repo.file(OWN, it) for it in files})


def without_merges(repo: Repo) -> None:
    """Put the draft on `main` as a forge does that rebases: it leaves out merge commits."""
    for commit in repo.git("rev-list", "--reverse", "--no-merges", f"main..{OWN}").split():
        repo.git("update-ref", "refs/heads/one", commit)
        rebase(repo, "one")


def merge_and_revert(repo: Repo) -> None:
    before = {it: repo.file("main", it) for it in repo.files("main")}
    repo.git("update-ref", "refs/heads/main", f"refs/heads/{OWN}")
    after = dict.fromkeys(repo.files("main"))
    repo.commit("main", {**after, **before})


def merge_and_revert_some(repo: Repo, *names: str) -> None:
    before = {it: repo.file("main", it) for it in repo.files("main") if it.endswith(names)}
    repo.git("update-ref", "refs/heads/main", f"refs/heads/{OWN}")
    repo.commit("main", before)


OWN = BRANCHES["Variant"]
HALVES = [
    ("a rebase", without_merges, "v2", "ApprovalMissing"),
    ("a squash", one_commit, "v3", "Ready"),
    ("a squash of some files", lambda it: one_commit(it, ("/deployment.yaml",)), "v1",
     "ApprovalMissing"),
    ("a squash of others", lambda it: one_commit(it, ("/Kptfile",)), "v1", "EditedDownstream"),
    ("a cherry-pick of the edit", lambda it: one_commit(it, ("/note.txt",)), "v1",
     "ApprovalMissing"),
    ("a merge and its revert", merge_and_revert, "v1", "ApprovalMissing"),
    ("a merge, and a revert of some files",
     lambda it: merge_and_revert_some(it, "/deployment.yaml"), "v3", "Ready"),
    ("a merge, and a revert of others",
     lambda it: merge_and_revert_some(it, "/Kptfile"), "v1", "ApprovalMissing"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("does", "published", "reason"), [it[1:] for it in HALVES], ids=[it[0] for it in HALVES]
)
def test_the_content_that_people_put_on_a_draft_is_published(
    tmp_path: Path, does: Callable[[Repo], None], published: str, reason: str
):
    fleet = draft_of_two_revisions(tmp_path)
    does(fleet.repos["edge"])
    for _ in range(3):
        fleet.later(minutes=1).sweep()
    assert fleet.published() == {"sites/a": published}
    assert fleet.condition("sites/a")[0] == reason


@pytest.mark.parametrize("is_between", [False, True])
def test_a_revert_of_some_files_is_an_edit_whether_or_not_a_pass_saw_the_merge(
    tmp_path: Path, is_between: bool
):
    fleet = draft_of_two_revisions(tmp_path)
    edge, deployment = fleet.repos["edge"], "sites/a/deployment.yaml"
    before = edge.file("main", deployment)
    edge.git("update-ref", "refs/heads/main", f"refs/heads/{OWN}")
    if is_between:
        fleet.later(minutes=1).settle()
    edge.commit("main", {deployment: before})
    fleet.later(minutes=1).settle()
    assert fleet.published() == {"sites/a": "v3"}
    fleet.release("v4")
    fleet.later(minutes=1).settle()
    assert "MergeConflict" in fleet.run("explain", "monitoring").out
    output = fleet.run("diff", "sites/a", "--three-way").out
    assert "=== deployment.yaml: changed upstream, changed here\n" in output
    assert "--  replicas: 3\n+   replicas: 4\n" in output
    assert edge.file("main", deployment) == before


def draft_of_two_revisions(root: Path) -> Fleet:
    """The draft of v3 has that of v2 as a parent, because of an edit; v1 is published."""
    fleet = build(root, "Variant")
    assert fleet.sweep().code == 0
    edge = fleet.repos["edge"]
    rebase(edge, OWN)
    fleet.later(minutes=1).settle()
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    edge.commit(OWN, {"sites/a/note.txt": "by hand\n"})
    fleet.later(minutes=1).settle()
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert edge.git("rev-list", "--merges", f"main..{OWN}") != ""
    return fleet

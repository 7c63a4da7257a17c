"""What people do to the branch of a draft: it is carried on or held, and no commit is lost.

Each act is played on the branch of one variant and on that of a stage, with plain Git. What is
checked is what Git shows: whether the commits of people are reachable, and what the branch has.
"""

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet

AMS = "sites/ams"
SETTINGS = f"{AMS}/settings.yaml"
BRANCHES = {
    "Variant": "drafts/default/sites/ams/monitoring",
    "Stage": "drafts/default/_stages/default.monitoring/dev",
}
SIGNED = """\
  stages:
  - name: dev
    requires: [{name: ok, approval: {from: [sre], atLeast: 1}}]
"""
ANN = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "Ann"), ("EMAIL", "ann@example.com"))
}


def build(root: Path, draft: str) -> Fleet:
    fleet = Fleet.build(root, {"ams": ("dev", "edge"), "osl": ("dev", "edge")})
    text = POLICY[: POLICY.index("  stages:")] + SIGNED
    fleet.write("policy.yaml", text.replace("spec:\n", f"spec:\n  draftPer: {draft}\n", 1))
    assert fleet.sweep().code == 0
    return fleet


@company
def fleets_of_variants(root: Path) -> Fleet:
    return build(root, "Variant")


@company
def fleets_of_stages(root: Path) -> Fleet:
    return build(root, "Stage")


@dataclass
class Clone:
    """A clone in which Ann works on the branch of a draft."""

    path: Path
    branch: str

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", "-c", "core.editor=true", *args],
            cwd=self.path,
            env=os.environ | ANN,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def edit(self) -> None:
        """Add a setting to the package of ams."""
        file = self.path / SETTINGS
        text = file.read_text(encoding="utf-8") if file.exists() else "data:\n"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("data:", "data:\n  mine: x"), encoding="utf-8")
        self.git("add", "--all")

    def commit(self, *options: str) -> None:
        self.edit()
        self.git("commit", "--quiet", *(options or ("-m", "Mine")))


def commit(clone: Clone) -> None:
    clone.commit()


def amend(clone: Clone) -> None:
    clone.commit("--amend", "--no-edit")


def amend_with_a_new_message(clone: Clone) -> None:
    clone.commit("--amend", "-m", "Mine")


def amend_with_one_more_trailer(clone: Clone) -> None:
    clone.commit("--amend", "--no-edit", "--signoff")


def reset(clone: Clone) -> None:
    clone.git("reset", "--quiet", "--hard", "origin/main")
    clone.commit()


def rebase(clone: Clone) -> None:
    clone.commit()
    clone.git("checkout", "--quiet", "main")
    (clone.path / "other.txt").write_text("x\n", encoding="utf-8")
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "-m", "Beside all packages")
    clone.git("push", "--quiet", "origin", "main")
    clone.git("rebase", "--quiet", "main", clone.branch)


def squash(clone: Clone) -> None:
    clone.commit()
    clone.git("reset", "--quiet", "--soft", "origin/main")
    clone.git("commit", "--quiet", "-m", "Mine")


def squash_with_the_first_message(clone: Clone) -> None:
    message = clone.git("log", "-1", "--format=%B")
    clone.commit()
    clone.git("reset", "--quiet", "--soft", "origin/main")
    clone.git("commit", "--quiet", "-m", message)


def merge_main(clone: Clone) -> None:
    clone.commit()
    clone.git("checkout", "--quiet", "main")
    clone.git("commit", "--quiet", "--allow-empty", "-m", "On main")
    clone.git("push", "--quiet", "origin", "main")
    clone.git("checkout", "--quiet", clone.branch)
    clone.git("merge", "--quiet", "--no-ff", "main")


def cherry_pick(clone: Clone) -> None:
    clone.git("checkout", "--quiet", "-b", "mine")
    clone.commit()
    clone.git("checkout", "--quiet", clone.branch)
    clone.git("cherry-pick", "--allow-empty", "mine")


def revert(clone: Clone) -> None:
    clone.git("revert", "--no-edit", "HEAD")


def rename_a_file(clone: Clone) -> None:
    clone.git("mv", SETTINGS, f"{AMS}/renamed.yaml")
    clone.git("commit", "--quiet", "-m", "Mine")


def push_another_branch(clone: Clone) -> None:
    clone.git("checkout", "--quiet", "-b", "mine", "origin/main")
    clone.commit()
    clone.git("branch", "--force", clone.branch, "mine")


def repeat_the_draft(clone: Clone) -> None:
    clone.commit()
    clone.git("reset", "--quiet", "--hard", "HEAD~1")
    clone.git("cherry-pick", "--allow-empty", "--keep-redundant-commits", "HEAD", "ORIG_HEAD")


def swap_the_commits(clone: Clone) -> None:
    """The person's commit comes first, the draft on top of it."""
    draft = clone.git("rev-parse", "HEAD")
    clone.git("reset", "--quiet", "--hard", "origin/main")
    (clone.path / AMS).mkdir(parents=True, exist_ok=True)
    (clone.path / AMS / "mine.yaml").write_text("mine: x\n", encoding="utf-8")
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "-m", "Mine")
    clone.git("cherry-pick", draft)


def begin_without_history(clone: Clone) -> None:
    clone.git("checkout", "--quiet", "--orphan", "mine")
    clone.commit()
    clone.git("branch", "--force", clone.branch, "mine")


def state_another_path(clone: Clone) -> None:
    message = clone.git("log", "-1", "--format=%B")
    clone.commit("-m", message.replace(AMS, "sites/ber"))


def state_another_stage(clone: Clone) -> None:
    message = clone.git("log", "-1", "--format=%B")
    clone.commit("-m", message.replace("Fanout-Stage: dev", "Fanout-Stage: prod"))


def state_another_installation(clone: Clone) -> None:
    message = clone.git("log", "-1", "--format=%B")
    clone.commit("-m", message.replace("Fanout-Install: default", "Fanout-Install: other"))


def state_a_tree_that_is_not_there(clone: Clone) -> None:
    tree = clone.git("rev-parse", f"HEAD:{AMS}")
    message = clone.git("log", "-1", "--format=%B")
    clone.commit("-m", message.replace(tree, "0" * 40))


def state_no_ids(clone: Clone) -> None:
    message = clone.git("log", "-1", "--format=%B")
    clone.commit("-m", re.sub(r"\b[0-9a-f]{40}\b", "z", message))


def state_a_base_that_is_not_there(clone: Clone) -> None:
    message = clone.git("log", "-1", "--format=%B")
    clone.commit("-m", re.sub(r"Fanout-Base: .*", f"Fanout-Base: {'0' * 40}", message))


def amend_a_base_that_is_not_there(clone: Clone) -> None:
    message = clone.git("log", "-1", "--format=%B")
    clone.commit("--amend", "-m", re.sub(r"Fanout-Base: .*", f"Fanout-Base: {'0' * 40}", message))


ACTS: dict[Callable[[Clone], None], str] = {
    commit: "",
    amend: "",
    amend_with_a_new_message: "PathTaken",
    amend_with_one_more_trailer: "",
    reset: "PathTaken",
    rebase: "",
    squash: "PathTaken",
    squash_with_the_first_message: "",
    merge_main: "",
    cherry_pick: "",
    revert: "DraftBroken",
    rename_a_file: "",
    push_another_branch: "PathTaken",
    repeat_the_draft: "",
    swap_the_commits: "",
    begin_without_history: "PathTaken",
    state_another_path: "",
    state_another_stage: "",
    state_another_installation: "",
    state_a_tree_that_is_not_there: "",
    state_no_ids: "",
    state_a_base_that_is_not_there: "PathTaken",
    amend_a_base_that_is_not_there: "",
}
"""Each act, and the reason that the variant is held for; "": the branch is carried on."""


@pytest.fixture(params=list(BRANCHES))
def played(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Fleet, Clone]:
    """A fleet with a draft that waits for an approval, and a clone at its branch."""
    name = {"Variant": "fleets_of_variants", "Stage": "fleets_of_stages"}[request.param]
    fleet: Fleet = request.getfixturevalue(name)
    branch, path = BRANCHES[request.param], tmp_path / "clone"
    origin = str(fleet.repos["edge"].path)
    subprocess.run(["git", "clone", "--quiet", origin, str(path)], check=True)
    clone = Clone(path, branch)
    clone.git("checkout", "--quiet", branch)
    return fleet, clone


def find_lost(fleet: Fleet, commits: list[str]) -> list[str]:
    edge = fleet.repos["edge"]
    return [it for it in commits if not edge.git("for-each-ref", "--contains", it, "refs/heads")]


@pytest.mark.parametrize("act", ACTS, ids=lambda it: it.__name__)
def test_no_commit_of_a_person_is_lost(played: tuple[Fleet, Clone], act: Callable[[Clone], None]):
    fleet, clone = played
    edge, branch = fleet.repos["edge"], clone.branch
    act(clone)
    clone.git("push", "--quiet", "--force", "origin", branch)
    format_line = ("log", "--format=%H %ce", branch, "--not", "origin/main")
    lines = [line.split() for line in clone.git(*format_line).splitlines()]
    theirs = [commit for commit, address in lines if address == "ann@example.com"]
    assert theirs
    head, reason = edge.refs()[f"refs/heads/{branch}"], ACTS[act]
    for event in (None, "v2", None):
        if event is not None:
            fleet.release(event)
        fleet.later(minutes=1).sweep()
        assert find_lost(fleet, theirs) == []
        if reason:
            assert edge.refs()[f"refs/heads/{branch}"] == head
            assert fleet.condition(AMS)[0] == reason
    if not reason:
        assert "v2" in edge.git("log", "-1", "--format=%B", branch), fleet.condition(AMS)
    edge.fsck()

"""Acts of people on the branch of a draft, with plain Git in a clone of theirs."""

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

AMS = "sites/ams"
SETTINGS = f"{AMS}/settings.yaml"
ANN = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "Ann"), ("EMAIL", "ann@example.com"))
}


@dataclass
class Clone:
    """A clone in which Ann works on the branch of a draft."""

    path: Path
    branch: str

    @classmethod
    def of(cls, origin: Path, path: Path, branch: str) -> "Clone":
        """Clone a repository, and check the branch out."""
        subprocess.run(["git", "clone", "--quiet", str(origin), str(path)], check=True)
        clone = cls(path, branch)
        clone.git("checkout", "--quiet", branch)
        return clone

    def list_own(self) -> list[str]:
        """Return Ann's commits that are on the branch and not on main."""
        lines = self.git("log", "--format=%H %ce", self.branch, "--not", "origin/main")
        pairs = [line.split() for line in lines.splitlines()]
        return [commit for commit, address in pairs if address == "ann@example.com"]

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", "-c", "core.editor=true", *args],
            cwd=self.path,
            env=os.environ | ANN | {"GIT_ALLOW_PROTOCOL": "file:http"},
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

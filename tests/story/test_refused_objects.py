"""Objects that Git refuses stop what they belong to, and odd people of old commits stop nothing."""

import subprocess
from pathlib import Path

import pytest
from companies import company
from fleet import PLAIN, PROMOTION, Fleet, Repo

OTHER = PLAIN.replace("name: monitoring}", "name: other}", 1).replace("sites/", "other/")
WHO = ("--by", "Ann <ann@example.com>", "--reason", "looks odd")


@company
def fleet(root: Path) -> Fleet:
    """Two policies in one repository, all published."""
    made = Fleet(root)
    made.repository("blueprints")
    made.release("v1")
    made.repository("edge")
    made.write("policy.yaml", PLAIN)
    made.write("other.yaml", OTHER)
    made.write("promotion.yaml", PROMOTION)
    made.settle()
    assert set(made.published().values()) == {"v1"}
    return made


def write_object(repo: Repo, kind: str, data: bytes) -> str:
    done = subprocess.run(
        ["git", "hash-object", "-t", kind, "-w", "--stdin", "--literally"],
        cwd=repo.path, input=data, capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout.decode().strip()


def commit(repo: Repo, branch: str, *, tree: str = "", author: str = "", line: str = "") -> str:
    """A commit on a branch as some other program wrote it."""
    parent = repo.refs()[f"refs/heads/{branch}"]
    person = author or "Ada <ada@example.com> 1772442000 +0000"
    tree = tree or repo.git("rev-parse", f"{parent}^{{tree}}")
    text = f"tree {tree}\nparent {parent}\nauthor {person}\ncommitter {person}\n{line}\nodd\n"
    made = write_object(repo, "commit", text.encode())
    repo.git("update-ref", f"refs/heads/{branch}", made)
    return made


def bad_tree(repo: Repo) -> str:
    """A directory with a name that Git refuses."""
    blob = write_object(repo, "blob", b"x\n")
    return write_object(repo, "tree", b"100644 .git\0" + bytes.fromhex(blob))


def test_records_that_git_refuses_hold_their_policy_alone(fleet: Fleet):
    records = fleet.records()
    [branch] = [it for it in records.refs("refs/heads/") if it.endswith("/other")]
    branch = branch.removeprefix("refs/heads/")
    good = records.refs()[f"refs/heads/{branch}"]
    commit(records, branch, tree=bad_tree(records))
    fleet.release("v2")
    result = fleet.later(minutes=1).sweep()
    assert result.code == 3
    assert "other" in result.err
    assert "hasDotgit" in result.err
    fleet.later(minutes=1).sweep()
    published = fleet.published()
    assert published["sites/ams"] == "v2"
    assert published["other/ams"] != "v2"
    suspended = fleet.later(minutes=1).run("suspend", "monitoring", *WHO)
    assert suspended.code == 0, suspended.err
    refused = fleet.run("suspend", "other", *WHO)
    assert refused.code != 0
    assert "hasDotgit" in refused.err
    assert "allowedObjects" not in refused.err
    records.git("update-ref", f"refs/heads/{branch}", good)
    fleet.later(minutes=1).settle()
    assert fleet.published()["other/ams"] == "v2"


PEOPLE = [
    "Ada <ada@example.com> 1772442000 +051800",
    "Ada <ada@example.com> 01772442000 +0000",
    "Ada<ada@example.com> 1772442000 +0000",
]


@pytest.mark.parametrize("author", PEOPLE)
def test_odd_people_and_dates_of_old_commits_stop_nothing(fleet: Fleet, author: str):
    edge = fleet.repos["edge"]
    commit(edge, "main", author=author)
    edge.commit("main", {"README.md": "# more\n"})
    fleet.release("v2")
    for _ in range(2):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 0, swept.err
    assert set(fleet.published().values()) == {"v2"}


def test_a_directory_that_git_refuses_stops_its_repository(fleet: Fleet):
    edge = fleet.repos["edge"]
    commit(edge, "main", tree=bad_tree(edge))
    swept = fleet.later(minutes=1).sweep()
    assert swept.code == 3
    assert "hasDotgit" in swept.err
    assert "spec.allowedObjects" in swept.err


def test_an_object_that_the_repository_allows_is_fetched(fleet: Fleet):
    edge = fleet.repos["edge"]
    before = edge.refs()["refs/heads/main"]
    tree = bad_tree(edge)
    commit(edge, "main", tree=tree)
    commit(edge, "main", tree=edge.git("rev-parse", f"{before}^{{tree}}"))
    fleet.release("v2")
    assert tree in fleet.later(minutes=1).sweep().err
    path = fleet.root / fleet.policies / "repository-edge.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("spec: {", f"spec: {{allowedObjects: [{tree}], "), "utf-8")
    fleet.later(minutes=1).settle()
    assert set(fleet.published().values()) == {"v2"}

"""One repository with all packages in one directory, and more of them than small commits take.

Each commit has a version of that directory of its own, as long as all its packages together.
"""

import shutil
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet, Repo

from fanout.plan.changes.commit_chain import MAX_COMMITS

FEW, MANY = 600, 1_200  # more than 16 to each of the commits
DRAFTS = ["Variant", "Stage"]
STAGES = "  stages:\n  - {name: dev}\n"


def build(root: Path, count: int, draft: str) -> Fleet:
    """Return a fleet with that many variants, all of one stage in one directory."""
    made = Fleet.build(root, {f"c{number:04}": ("dev", "edge") for number in range(count)})
    policy = POLICY[: POLICY.index("  stages:")] + STAGES
    made.write("policy.yaml", policy.replace("spec:\n", f"spec:\n  draftPer: {draft}\n", 1))
    return made


@company
def few(root: Path) -> Fleet:
    """Return a fleet whose variants are published, each from a draft of its own."""
    made = build(root, FEW, "Variant")
    made.settle()
    return made


def directories(repo: Repo) -> int:
    """Return the bytes of all directories in a repository, each whole."""
    listed = repo.git(
        "cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectsize)"
    )
    rows = (line.split(" ") for line in listed.splitlines())
    return sum(int(size) for kind, size in rows if kind == "tree")


def commits(repo: Repo, revisions: str) -> list[str]:
    return repo.git("rev-list", "--first-parent", revisions).split()


@pytest.mark.parametrize("draft", DRAFTS)
def test_written_trees_grow_with_the_number_of_packages(tmp_path: Path, draft: str):
    written: list[tuple[int, ...]] = []
    for count in (FEW, MANY):
        root = tmp_path / str(count)
        root.mkdir()
        fleet = build(root, count, draft)
        repo = fleet.repos["edge"]
        fleet.sweep()
        drafted = directories(repo)
        if draft == "Stage":
            branch = "drafts/default/_stages/default.monitoring/dev"
            assert len(commits(repo, f"main..{branch}")) <= MAX_COMMITS
        fleet.later(minutes=1).settle()
        assert len(repo.tags()) == count
        assert len(commits(repo, "main")) <= 1 + MAX_COMMITS  # one was there before
        written.append((drafted, directories(repo) - drafted))
        repo.fsck()
    for of_few, of_many in zip(*written, strict=True):
        assert of_many < 2.2 * of_few


def test_each_commit_of_a_publication_names_and_merges_its_own_packages(few: Fleet):
    repo = few.repos["edge"]
    named: list[str] = []
    for commit in reversed(commits(repo, "main")[:-1]):
        subject, *lines = repo.git("log", "-1", "--format=%B", commit).splitlines()
        paths = [line.removeprefix("* ") for line in lines if line.startswith("* ")]
        assert subject == f"Publish {len(paths)} variants of stage dev at v1"
        assert len(repo.git("rev-parse", f"{commit}^@").split()) == 1 + len(paths)
        assert {repo.refs(f"refs/tags/{path}/")[f"refs/tags/{path}/v1"] for path in paths} == {
            commit
        }
        changed = repo.git("diff-tree", "-r", "--name-only", f"{commit}^1", commit).splitlines()
        assert {name.rpartition("/")[0] for name in changed} == set(paths)
        named += paths
    assert named == sorted(f"sites/c{number:04}" for number in range(FEW))


def test_publications_are_read_again_where_the_records_are_lost(few: Fleet):
    before, tags = few.refs(), few.repos["edge"].refs("refs/tags/")
    shutil.rmtree(few.root / few.state)
    assert few.later(minutes=1).run("sweep", "--new-records").code == 0
    assert few.refs() == before
    variants = few.run("get", "variants", "-o", "json").items
    published = [it["status"]["published"] for it in variants]
    assert {it["revision"] for it in published} == {"v1"}
    assert {f"refs/tags/{it['tag']}": it["commit"] for it in published} == tags
    last = variants[-1]["metadata"]["name"]
    [entry] = few.run("history", f"monitoring/dev/{last}", "-o", "json").items
    assert entry["status"]["commit"] == published[-1]["commit"]

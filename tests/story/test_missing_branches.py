"""A repository without the branch of its object: what commands say of it, and what goes on."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fleet import PLAIN, PROMOTION, Fleet, Repo

AMS = "sites/ams"


def renamed(repo: Repo) -> None:
    repo.git("branch", "-m", "main", "trunk")


def other_names(repo: Repo) -> None:
    repo.git("update-ref", "refs/heads/next", "refs/heads/main")
    repo.git("update-ref", "-d", "refs/heads/main")  # HEAD names it all the same


def another_head(repo: Repo) -> None:
    for name in ("alpha", "beta"):
        repo.git("update-ref", f"refs/heads/{name}", "refs/heads/main")
    repo.git("symbolic-ref", "HEAD", "refs/heads/beta")
    repo.git("update-ref", "-d", "refs/heads/main")


def emptied(repo: Repo) -> None:
    for ref in repo.refs():
        repo.git("update-ref", "-d", ref)


# What happens to the downstream repository, and what is said.
DOWNSTREAM = [
    ("the branch was renamed", renamed, "its default branch is trunk"),
    ("HEAD names the missing branch", other_names, "no branch main, but next"),
    ("HEAD names another branch", another_head, "its default branch is beta"),
    ("the repository is empty", emptied, "push a first commit to it"),
]
EMPTIED = "push the earlier history to it again"  # where packages were published


@pytest.mark.parametrize("is_published", [False, True], ids=["new", "published"])
@pytest.mark.parametrize(("_", "act", "words"), DOWNSTREAM, ids=[row[0] for row in DOWNSTREAM])
def test_a_downstream_repository_without_its_branch(
    tmp_path: Path, _, act: Callable[[Repo], None], words: str, is_published: bool
):
    fleet = Fleet(tmp_path)
    for name in ("blueprints", "edge", "core"):
        fleet.repository(name)
    fleet.release("v1")
    fleet.write("policy.yaml", PLAIN)
    other = PLAIN.replace("name: monitoring}", "name: other}", 1).replace("edge", "core")
    fleet.write("other.yaml", other)
    fleet.write("promotion.yaml", PROMOTION)
    if is_published:
        fleet.settle()
        words = EMPTIED if act is emptied else words
    act(fleet.repos["edge"])
    swept = fleet.later(minutes=1).sweep()
    assert swept.code == 3
    assert "repository edge has no branch main" in swept.err
    fleet.later(minutes=1).sweep()
    # what waits for nothing goes on
    assert fleet.repos["core"].file("main", f"{AMS}/deployment.yaml")
    result = {
        "status": fleet.run("status").out,
        "explain": fleet.run("explain", "monitoring").out,
        "get": fleet.run("get", "repositories", "-o", "wide").out,
    }
    for text in result.values():
        assert "has no branch main" in " ".join(text.split()), text
        assert words in " ".join(text.split()), text
    conditions = {
        it["metadata"]["name"]: it["status"]["conditions"][0]
        for it in fleet.run("get", "repositories", "-o", "json").items
    }
    assert (conditions["edge"]["status"], conditions["edge"]["reason"]) == (
        "False",
        "BranchMissing",
    )
    assert conditions["core"]["status"] == "True"
    assert conditions["blueprints"]["status"] == "True"


UPSTREAM = [
    ("the branch was renamed", renamed, ""),
    ("HEAD names the missing branch", other_names, ""),
    ("HEAD names another branch", another_head, ""),
    ("the repository is empty", emptied, "no tag monitoring/v<N>"),
]


@pytest.mark.parametrize(("_", "act", "words"), UPSTREAM, ids=[row[0] for row in UPSTREAM])
def test_an_upstream_without_its_branch_is_read_by_its_tags(
    tmp_path: Path, _, act: Callable[[Repo], None], words: str
):
    fleet = Fleet(tmp_path)
    for name in ("blueprints", "edge"):
        fleet.repository(name)
    fleet.release("v1")
    fleet.write("policy.yaml", PLAIN)
    fleet.write("promotion.yaml", PROMOTION)
    act(fleet.repos["blueprints"])
    swept = fleet.sweep()
    [policy] = fleet.run("get", "policies", "-o", "json").items
    condition = policy["status"]["conditions"][0]
    if words:
        assert swept.code == 3
        assert (condition["status"], condition["reason"]) == ("False", "NoRevision")
        for text in (swept.err, fleet.run("explain", "monitoring").out, fleet.run("status").out):
            assert words in " ".join(text.split()), text
    else:
        assert swept.code == 0, swept.err
        fleet.settle()
        assert set(fleet.published().values()) == {"v1"}
    ready = {
        it["metadata"]["name"]: it["status"]["conditions"][0]["status"]
        for it in fleet.run("get", "repositories", "-o", "json").items
        if "conditions" in it["status"]
    }
    assert ready.get("blueprints", "True") == "True"

"""Branches that were renamed, rewritten or replaced are told as that."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from companies import company
from fleet import PLAIN, Fleet
from forge_fleet import ForgeFleet
from gitea_server import Gitea

AMS = "sites/ams"


@company
def fleet(root: Path) -> Fleet:
    """Two packages in one repository, published at v1."""
    made = Fleet(root)
    made.repository("blueprints")
    made.release("v1")
    made.repository("edge")
    made.write("policy.yaml", PLAIN)
    made.write(
        "promotion.yaml",
        "apiVersion: fanout.dev/v1alpha1\nkind: PromotionPolicy\nmetadata: {name: all}\n"
        'spec: {policies: ["*"], autoPromotion: {stages: ["*"]}}\n',
    )
    made.settle()
    assert set(made.published().values()) == {"v1"}
    return made


def move_to(fleet: Fleet, branch: str) -> None:
    path = fleet.root / fleet.policies / "repository-edge.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("spec: {", f"spec: {{branch: {branch}, "), encoding="utf-8")


def collect_output(fleet: Fleet) -> str:
    """What commands say, whoever asks."""
    lines = (
        ("sweep",), ("status",), ("explain", "monitoring"), ("get", "variants", "-o", "json"),
        ("diff", AMS),
    )  # fmt: skip
    results = [fleet.later(minutes=1).run(*line) for line in lines]
    return "\n".join(it.out + it.err for it in results)


def test_another_default_branch_is_named(tmp_path: Path):
    fleet = Fleet(tmp_path)
    fleet.repository("blueprints")
    fleet.release("v1")
    edge = fleet.repository("edge")
    edge.git("branch", "-m", "main", "master")
    fleet.write("policy.yaml", PLAIN)
    reason, sentence = fleet.condition(AMS)
    assert reason == "BranchMissing"
    assert "default branch is master" in sentence
    assert "first commit" not in collect_output(fleet)
    move_to(fleet, "master")
    assert fleet.later(minutes=1).sweep().code == 0
    assert edge.drafts() != []


def test_a_renamed_branch_is_named_and_its_packages_stay(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.git("branch", "-m", "main", "trunk")
    reason, sentence = fleet.condition(AMS)
    assert reason == "BranchMissing"
    assert "default branch is trunk" in sentence
    output = collect_output(fleet)
    assert "fanout remove" not in output
    assert "by hand" not in output
    move_to(fleet, "trunk")
    assert fleet.later(minutes=1).sweep().code == 0
    assert set(fleet.published().values()) == {"v1"}
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert "replicas: 2" in edge.file("trunk", f"{AMS}/deployment.yaml")


def test_a_branch_under_another_name_is_named_without_a_default(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.git("update-ref", "refs/heads/next", "refs/heads/main")
    edge.git("update-ref", "-d", "refs/heads/main")  # HEAD names it all the same
    _, sentence = fleet.condition(AMS)
    assert "but next" in sentence
    assert "fanout remove" not in collect_output(fleet)


def rewrite(fleet: Fleet) -> None:
    """Somebody begins the branch anew, in the same repository."""
    edge = fleet.repos["edge"]
    tree = edge.git("mktree", input="")
    commit = edge.git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit-tree", "-m", "x", tree)
    edge.git("update-ref", "refs/heads/main", commit)


def go_back(fleet: Fleet) -> None:
    """Somebody puts the branch back to before the first publication."""
    edge = fleet.repos["edge"]
    root = edge.git("rev-list", "--max-parents=0", "main")
    edge.git("update-ref", "refs/heads/main", root)


@pytest.mark.parametrize("act", [rewrite, go_back])
def test_a_rewritten_branch_is_reported_and_can_be_mended(
    fleet: Fleet, act: Callable[[Fleet], None], tmp_path: Path
):
    edge = fleet.repos["edge"]
    act(fleet)
    reason, sentence = fleet.condition(AMS)
    assert reason == "BranchRewritten"
    assert "branch main of edge was rewritten or replaced" in sentence
    output = collect_output(fleet)
    assert "fanout remove" not in output
    assert "by hand" not in output
    clone = tmp_path / "clone"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "clone", "-q", str(edge.path), str(clone)], check=True)
    for path in (AMS, "sites/ber"):
        [command] = re.findall(r"`(git restore [^`]+)`", fleet.condition(path)[1])
        subprocess.run(command.split(), cwd=clone, check=True)
    subprocess.run([*git, "add", "-A"], cwd=clone, check=True)
    subprocess.run([*git, "commit", "-q", "-m", "back"], cwd=clone, check=True)
    subprocess.run([*git, "push", "-q", "origin", "HEAD:main"], cwd=clone, check=True)
    assert fleet.later(minutes=1).sweep().code == 0
    assert set(fleet.states().values()) == {"Ready"}
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert set(fleet.published().values()) == {"v2"}


def test_a_replaced_repository_is_reported(fleet: Fleet):
    edge = fleet.repos["edge"].path
    kept = edge.with_suffix(".kept")
    edge.rename(kept)
    fleet.repository("edge", declare=False)
    reason, sentence = fleet.condition(AMS)
    assert reason == "BranchRewritten"
    assert "push the earlier history" in sentence
    output = collect_output(fleet)
    assert "fanout remove" not in output
    assert "by hand" not in output
    shutil.rmtree(edge)
    kept.rename(edge)
    assert fleet.later(minutes=1).sweep().code == 0
    assert set(fleet.states().values()) == {"Ready"}


def empty(fleet: Fleet) -> None:
    """An empty repository has its address."""
    edge = fleet.repos["edge"].path
    shutil.rmtree(edge)
    fleet.repository("edge", declare=False, first=False)


def rename(fleet: Fleet) -> None:
    fleet.repos["edge"].git("branch", "-m", "main", "trunk")


def test_an_emptied_repository_is_reported(fleet: Fleet):
    empty(fleet)
    reason, sentence = fleet.condition(AMS)
    assert reason == "BranchMissing"
    assert "push the earlier history" in sentence
    assert "first commit" not in collect_output(fleet)


WITHOUT_AMS = PLAIN.replace("[sites/ams, sites/ber]", "[sites/ber]")


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (rename, "BranchMissing"),
        (empty, "BranchMissing"),
        (rewrite, "BranchRewritten"),
        (go_back, "BranchRewritten"),
    ],
)
def test_a_variant_without_a_target_is_not_forgotten_with_its_branch(fleet: Fleet, act, reason):
    """Its package is on the branch of another name, or comes back with the history."""
    edge = fleet.repos["edge"]
    main, kept = edge.refs()["refs/heads/main"], edge.path.with_suffix(".kept")
    shutil.copytree(edge.path, kept)
    act(fleet)
    fleet.write("policy.yaml", WITHOUT_AMS)
    for _ in range(2):
        assert fleet.later(minutes=1).sweep().code == 3
    view = fleet.run("explain", "monitoring", "-o", "json").json["status"]
    holds = {(name, it["reason"]) for it in view["blockers"] for name in it["variants"]}
    [name] = {name for name, _ in holds if "-ams-" in name}
    assert (name, reason) in holds
    assert not [it for blocker in view["blockers"] for it in blocker["commands"]]
    shutil.rmtree(edge.path)
    kept.rename(edge.path)
    assert edge.refs()["refs/heads/main"] == main
    assert fleet.later(minutes=1).settle() > 0
    assert not [it for it in edge.files() if it.startswith(f"{AMS}/")]


def test_a_variant_without_a_target_on_a_restored_branch_is_not_shown_as_edited(fleet: Fleet):
    edge = fleet.repos["edge"]
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    main = edge.refs()["refs/heads/main"]
    edge.git("update-ref", "refs/heads/main", edge.refs()[f"refs/tags/{AMS}/v1"])
    fleet.write("policy.yaml", WITHOUT_AMS)
    output = fleet.later(minutes=1).sweep().err + fleet.run("explain", "monitoring").out
    assert f"published {AMS}" in output
    assert "fanout remove" not in output
    edge.git("update-ref", "refs/heads/main", main)
    assert fleet.later(minutes=1).settle() > 0
    assert not [it for it in edge.files() if it.startswith(f"{AMS}/")]


def test_a_person_ends_a_variant_whose_package_went_with_its_branch(fleet: Fleet):
    rewrite(fleet)
    fleet.write("policy.yaml", WITHOUT_AMS)
    fleet.later(minutes=1).sweep()
    items = fleet.run("get", "targets", "-o", "json").items
    [name] = [name for it in items if "-ams-" in (name := it["metadata"]["name"])]
    done = fleet.run(
        "remove", "monitoring", name, "--reason", "gone", "--by", "Ann <ann@example.com>"
    )
    assert done.code in (0, 3), done.err
    assert name not in fleet.run("get", "targets", "-o", "json").out


def test_a_package_removed_by_a_commit_is_still_shown_as_removed(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", {it: None for it in edge.files() if it.startswith(f"{AMS}/")})
    reason, sentence = fleet.condition(AMS)
    assert reason == "EditedDownstream"
    assert "by hand" in sentence


@pytest.mark.forge
def test_the_default_branch_of_a_forge_is_named(gitea: Gitea, tmp_path: Path):
    fleet = ForgeFleet.on(gitea, tmp_path, {"a": ("dev", "edge")})
    fleet.rename_branch("edge", "main", "trunk")
    reason, sentence = fleet.condition("sites/a")
    assert reason == "BranchMissing"
    assert "default branch is trunk" in sentence

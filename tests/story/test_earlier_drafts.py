"""Drafts and publications of earlier versions, whose commits named neither branch nor path."""

import os
import subprocess
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet, Repo

from fanout.plan.commit_statement import PackageStatement, parse_message

AMS = "sites/ams"
OWN, SHARED = "drafts/default/sites/ams/monitoring", "drafts/default/_stages/default.monitoring/dev"
STAGES = "  stages:\n  - {name: dev}\n"


def build(root: Path, draft: str) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge"), "osl": ("dev", "edge")})
    text = POLICY[: POLICY.index("  stages:")] + STAGES
    made.write("policy.yaml", text.replace("spec:\n", f"spec:\n  draftPer: {draft}\n", 1))
    made.sweep("--drafts-only")
    return made


@company
def fleet(root: Path) -> Fleet:
    return build(root, "Variant")


@company
def fleet_of_stages(root: Path) -> Fleet:
    made = build(root, "Stage")
    made.sweep()
    return made


def describe_as_before(package: PackageStatement) -> str:
    """The trailers of a draft of one variant, as they were before branches had a set."""
    return (
        f"Fanout-Install: {package.install}\nFanout-Policy: {package.policy}\n"
        f"Fanout-Variant: {package.variant}\nFanout-Stage: {package.stage}\n"
        f"Fanout-Revision: {package.revision}\nFanout-Commit: {package.commit}\n"
        f"Fanout-Digest: {package.digest}\nFanout-Onto: {package.onto}\n"
        f"Fanout-Tree: {package.tree}\nFanout-Conflicts: {package.conflicts}\n"
        f"Fanout-Rendered: {package.rendered}\n"
    )


def write_as_before(edge: Repo, branch: str) -> str:
    """Write the only commit of a branch anew, with the message of an earlier version."""
    message = edge.git("log", "-1", "--format=%B", branch)
    stated = parse_message(message)
    assert stated is not None
    head, _, last = message.rpartition("\n\n")
    if len(stated.packages) == 1:
        [package] = stated.packages.values()
        last = describe_as_before(package)
    else:
        lines = last.splitlines(keepends=True)
        last = "".join(line for line in lines if not line.startswith("Fanout-Set: "))
    form = "--format=%an%n%ae%n%at +0000%n%T%n%P"
    name, address, date, tree, parents = edge.git("log", "-1", form, branch).splitlines()
    fields = {"NAME": name, "EMAIL": address, "DATE": date}
    done = subprocess.run(
        ["git", "commit-tree", tree, *(word for it in parents.split() for word in ("-p", it))],
        cwd=edge.path,
        input=f"{head}\n\n{last}",
        env=os.environ
        | {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in fields.items()
        },
        text=True,
        capture_output=True,
        check=True,
    )
    commit = done.stdout.strip()
    edge.git("update-ref", f"refs/heads/{branch}", commit)
    return commit


@pytest.mark.parametrize("branch", [OWN, SHARED], ids=["of a variant", "of a stage"])
def test_a_draft_that_nobody_edited_is_written_anew(request: pytest.FixtureRequest, branch: str):
    fleet: Fleet = request.getfixturevalue("fleet" if branch == OWN else "fleet_of_stages")
    edge = fleet.repos["edge"]
    before = write_as_before(edge, branch)
    assert fleet.later(minutes=1).sweep("--drafts-only").code == 0
    fleet.later(minutes=1).sweep()
    fleet.settle()
    assert fleet.published() == {AMS: "v1", "sites/osl": "v1"}
    assert edge.drafts() == []
    # It was written anew, so nothing was published from it.
    assert before not in edge.git("rev-list", "main").split()


@pytest.mark.parametrize("branch", [OWN, SHARED], ids=["of a variant", "of a stage"])
def test_a_draft_that_a_person_committed_to_is_held_by_name(
    request: pytest.FixtureRequest, branch: str
):
    fleet: Fleet = request.getfixturevalue("fleet" if branch == OWN else "fleet_of_stages")
    edge = fleet.repos["edge"]
    write_as_before(edge, branch)
    commit = edge.commit(branch, {f"{AMS}/notes.txt": "mine\n"})
    for _ in range(2):
        assert fleet.later(minutes=1).sweep().code == 3
        assert edge.refs()[f"refs/heads/{branch}"] == commit
    reason, sentence = fleet.condition(AMS)
    assert reason == "PathTaken"
    assert f"branch {branch} has commits of others" in sentence


def test_a_publication_stays_readable(fleet: Fleet):
    edge = fleet.repos["edge"]
    draft = write_as_before(edge, OWN)
    tree = edge.git("rev-parse", f"{draft}:{AMS}")
    # A person merges it, so that it is published as an earlier version did.
    edge.git("update-ref", "refs/heads/main", draft)
    fleet.settle()
    assert fleet.published()[AMS] == "v1"
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published()[AMS] == "v2"
    history = fleet.run("history", "monitoring", "-o", "json").views
    assert [it["revision"] for it in history] == ["v2", "v1"]
    decided = fleet.later(minutes=1).run(
        "rollback", "monitoring", "--stage", "dev", "--revision", "v1", "--reason", "v2 is broken",
        "--yes", "--by", "Ann <ann@example.com>",
    )  # fmt: skip
    assert decided.code == 0, decided.err
    fleet.later(minutes=1).settle()
    assert fleet.published()[AMS] == "v1"
    assert edge.git("rev-parse", f"main:{AMS}") == tree

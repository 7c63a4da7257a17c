"""Branches of pull requests that people set to something else, on a real Gitea."""

from pathlib import Path

import pytest
from fleet import PACKAGE, POLICY, PROMOTION, RULE
from forge_fleet import ForgeFleet
from gitea_server import Gitea

pytestmark = pytest.mark.forge
PROD = "drafts/default/_stages/default.monitoring/prod"
STAGES = """\
  - {name: dev}
  - {name: prod, after: {stages: [dev]}, requires: [{name: ok, approval: {from: [sre]}}]}
"""


def sweep(fleet: ForgeFleet, passes: int = 1, code: int = 0) -> None:
    for _ in range(passes):
        fleet.await_checks()
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == code, swept.out + swept.err


def open_request(fleet: ForgeFleet) -> dict[str, object]:
    [request] = [it for it in fleet.requests("edge") if it["state"] == "open"]
    return request


def approve(fleet: ForgeFleet, revision: str) -> None:
    approved = fleet.later(minutes=1).run(
        "approve", "monitoring", "--stage", "prod", "--revision", revision,
        "--by", "Ann <ann@example.com>",
    )  # fmt: skip
    assert approved.code == 0, approved.err


def promote(fleet: ForgeFleet, style: str) -> None:
    """Have fanout merge in this style."""
    fleet.write("promotion.yaml", f"{PROMOTION}  pullRequest: {{mergeStyle: {style}}}\n")


@pytest.mark.parametrize("style", ["Rebase", "Merge"])
def test_a_commit_pushed_with_force_stays_and_its_request_says_so(
    gitea: Gitea, tmp_path: Path, style: str
):
    fleet = ForgeFleet.on(gitea, tmp_path, {"a": ("dev", "edge"), "b": ("prod", "edge")})
    fleet.write("policy.yaml", POLICY[: POLICY.index("  - {name: dev,")] + STAGES)
    promote(fleet, "Rebase")
    sweep(fleet, 5)
    approve(fleet, "v1")
    sweep(fleet, 3)
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}
    promote(fleet, style)
    fleet.release("v2")
    sweep(fleet, 5)
    assert fleet.published() == {"sites/a": "v2", "sites/b": "v1"}
    request, edge = open_request(fleet), fleet.repos["edge"]
    assert request["head"] == PROD
    edge.commit("mine", {"notes.md": "mine\n"}, by="ann")  # on the head of main
    commit = edge.refs()["refs/heads/mine"]
    edge.push(f"+{commit}:refs/heads/{PROD}", by="ann")
    edge.push(":refs/heads/mine", by="ann")
    for _ in range(3):
        sweep(fleet, code=3)
        assert edge.refs()[f"refs/heads/{PROD}"] == commit
    reason, _ = fleet.condition("sites/b")
    assert reason == "PathTaken"
    held = open_request(fleet)
    assert (held["number"], held["commit"]) == (request["number"], commit)
    assert f"`{PROD}`" in held["body"]
    assert "`PathTaken`" in held["body"]
    assert fleet.statuses("edge", commit)["fanout", fleet.bot] == "pending"
    # Nobody else waits for it, and it is no conflict of theirs.
    fleet.release("v3")
    sweep(fleet, 4, code=3)
    assert fleet.published() == {"sites/a": "v3", "sites/b": "v1"}
    assert edge.refs()[f"refs/heads/{PROD}"] == commit
    # Moved away, as the message says, the branch is written anew.
    edge.push(f"{commit}:refs/heads/mine", f":refs/heads/{PROD}", by="ann")
    sweep(fleet, 2)
    assert "replicas: 3" in edge.file(PROD, "sites/b/deployment.yaml")


@pytest.fixture
def prod(gitea: Gitea, tmp_path: Path) -> ForgeFleet:
    """The request of prod is open, and waits for an approval."""
    fleet = ForgeFleet.on(gitea, tmp_path, {"a": ("dev", "edge"), "b": ("prod", "edge")})
    fleet.write("policy.yaml", POLICY[: POLICY.index("  - {name: dev,")] + STAGES)
    sweep(fleet, 5)
    assert open_request(fleet)["head"] == PROD
    return fleet


def replace_branch(fleet: ForgeFleet, branch: str) -> str:
    """Push with force what a person committed to the head of main; return the commit."""
    edge = fleet.repos["edge"]
    edge.commit("mine", {"notes.md": "mine\n"}, by="ann")
    commit = edge.refs()["refs/heads/mine"]
    edge.push(f"+{commit}:refs/heads/{branch}", ":refs/heads/mine", by="ann")
    return commit


def test_a_branch_that_is_reset_to_its_target_keeps_its_request(prod: ForgeFleet):
    request, edge = open_request(prod), prod.repos["edge"]
    edge.git("rev-parse", "main")
    prod.await_checks()
    edge.commit("mine", {"notes.md": "mine\n"}, by="ann")
    main = edge.refs()["refs/heads/main"]
    edge.push(f"+{main}:refs/heads/{PROD}", ":refs/heads/mine", by="ann")
    prod.await_checks()
    for _ in range(3):
        prod.later(minutes=1).sweep()
    assert [it["state"] for it in prod.requests("edge")] == ["merged", "open"]
    assert open_request(prod)["number"] == request["number"]
    assert prod.condition("sites/b")[0] in ("PathTaken", "ApprovalMissing")


def test_the_branch_of_a_removal_that_is_replaced_keeps_its_request(gitea: Gitea, tmp_path: Path):
    fleet = ForgeFleet.on(gitea, tmp_path, {"a": ("dev", "edge"), "b": ("dev", "edge")})
    sweep(fleet, 3)
    fleet.write("promotion.yaml", PROMOTION + "  merge: Manual\n")
    fleet.remove("site-b.yaml")
    name = next(
        it["metadata"]["name"] for it in fleet.run("get", "targets", "-o", "json").items
        if "-b-" in it["metadata"]["name"]
    )  # fmt: skip
    removed = fleet.later(minutes=1).run(
        "remove", "monitoring", name, "--reason", "closed", "--by", "Ann <ann@example.com>"
    )
    assert removed.code == 0, removed.err
    sweep(fleet, 2)
    request = open_request(fleet)
    commit = replace_branch(fleet, str(request["head"]))
    for _ in range(3):
        fleet.later(minutes=1).sweep()
    held = open_request(fleet)
    assert (held["number"], held["commit"]) == (request["number"], commit)
    assert "`PathTaken`" in held["body"]


@pytest.mark.parametrize("happens", ["a person edits", "force is refused"])
def test_a_draft_that_has_an_earlier_one_as_a_parent_is_not_rebased(
    gitea: Gitea, tmp_path: Path, happens: str
):
    """A rebase leaves out the commit with two parents: the earlier revision would be published."""
    fleet = build_alone(gitea, tmp_path)
    promote(fleet, "Rebase")
    sweep(fleet, 2)
    edge, draft = fleet.repos["edge"], OWN
    if happens == "a person edits":
        edge.commit(draft, {"sites/b/note.txt": "by hand\n"}, by="ann")
        sweep(fleet)
    else:
        fleet.protect("edge", "drafts/**", enable_push=True, enable_push_whitelist=False)
    fleet.release("v2")
    sweep(fleet, 2)
    fleet.await_checks()
    approve(fleet, "v2")
    # Each sweep reports that the server lets nobody delete the branch of the published draft.
    code = 0 if happens == "a person edits" else 3
    sweep(fleet, 2, code)
    assert fleet.published() == {"sites/b": "v2"}
    assert "replicas: 2" in edge.file("main", "sites/b/deployment.yaml")
    assert ("sites/b/note.txt" in edge.files("main")) is (happens == "a person edits")
    assert edge.git("log", "--merges", "--format=%h", "main") == ""


OWN = "drafts/default/sites/b/monitoring"


def build_alone(gitea: Gitea, root: Path) -> ForgeFleet:
    """One variant, whose draft has a branch of its own, and waits for an approval."""
    fleet = ForgeFleet.on(gitea, root, {"b": ("prod", "edge")})
    text = POLICY[: POLICY.index("  - {name: dev,")] + STAGES
    text = text.replace(", after: {stages: [dev]}", "")
    fleet.write("policy.yaml", text.replace("spec:\n", "spec:\n  draftPer: Variant\n", 1))
    return fleet


@pytest.mark.parametrize(
    ("is_published", "style", "then", "has"),
    [
        (True, "rebase", "", "v2"),
        (False, "rebase", "deletes the branch", "v1"),
        (True, "merge", "reverts it and deletes the branch", "v1"),
    ],
)
def test_a_merged_request_publishes_the_content_of_its_branch(
    gitea: Gitea, tmp_path: Path, is_published: bool, style: str, then: str, has: str
):
    """A rebase leaves out the commit with two parents, which has the newest revision."""
    fleet = build_alone(gitea, tmp_path)
    edge = fleet.repos["edge"]
    sweep(fleet, 2)
    if is_published:
        approve(fleet, "v1")
        sweep(fleet, 3)
        fleet.release("v2")
        sweep(fleet, 2)
    fleet.write("promotion.yaml", f"{PROMOTION}  merge: Manual\n")
    edge.commit(OWN, {"sites/b/note.txt": "by hand\n"}, by="ann")
    sweep(fleet)
    newest = "v3" if is_published else "v2"
    fleet.release(newest)
    sweep(fleet, 2)
    approve(fleet, newest)
    sweep(fleet)
    number = open_request(fleet)["number"]
    files = {it: edge.file("main", it) for it in edge.files("main")}
    fleet.merge("edge", int(str(number)), style=style)
    if "reverts" in then:
        deletions = {it: None for it in edge.files("main") if it not in files}
        edge.commit("main", {**files, **deletions}, by="ann")
    if "deletes" in then:
        edge.push(f":refs/heads/{OWN}", by="ann")
    fleet.await_checks()
    sweep(fleet, 2)
    assert f"replicas: {has[1:]}" in edge.file("main", "sites/b/deployment.yaml")
    assert fleet.published() == {"sites/b": has}
    # The newest revision is proposed again.
    assert fleet.condition("sites/b")[0] == "ApprovalMissing"
    assert open_request(fleet)["number"] != number
    assert f"replicas: {newest[1:]}" in edge.file(OWN, "sites/b/deployment.yaml")


def test_a_rebase_that_leaves_out_newer_inputs_publishes_the_older_ones(
    gitea: Gitea, tmp_path: Path
):
    fleet = build_alone(gitea, tmp_path)
    fleet.write("promotion.yaml", f"{PROMOTION}  merge: Manual\n")
    sweep(fleet, 2)
    edge = fleet.repos["edge"]
    edge.commit(OWN, {"sites/b/note.txt": "by hand\n"}, by="ann")
    sweep(fleet)
    fleet.site("b", "prod", "edge", retention="99d")
    sweep(fleet, 2)
    approve(fleet, "v1")
    sweep(fleet)
    fleet.merge("edge", 1, style="rebase")
    fleet.await_checks()
    assert "99d" not in str([edge.file("main", it) for it in edge.files("main")])
    sweep(fleet, 2)
    assert fleet.published() == {"sites/b": "v1"}
    assert fleet.condition("sites/b")[0] == "ApprovalMissing"
    assert open_request(fleet)["number"] == 2
    assert "99d" in str([edge.file(OWN, it) for it in edge.files(OWN)])


@pytest.mark.parametrize("is_published", [False, True], ids=["the first release", "a later one"])
def test_another_package_at_the_released_commit_is_no_publication(
    gitea: Gitea, tmp_path: Path, is_published: bool
):
    """A person puts a clone of it in place of what a request brought, before a pass sees that."""
    fleet = build_alone(gitea, tmp_path)
    edge, upstream = fleet.repos["edge"], fleet.repos["blueprints"]
    policy = (fleet.root / "policies" / "policy.yaml").read_text()

    def follow(commit: str) -> None:
        rule = f"package: monitoring, revision: {{commit: {commit}}}"
        fleet.write("policy.yaml", policy.replace(RULE, rule))
        sweep(fleet, 2)
        approve(fleet, commit)

    first = upstream.commit("main", {f"logging/{name}": text for name, text in PACKAGE.items()})
    if is_published:
        follow(first)
        sweep(fleet, 3)
        assert fleet.published() == {"sites/b": first}
    second = upstream.commit("main", {"monitoring/notes.txt": "new\n"})
    fleet.write("promotion.yaml", f"{PROMOTION}  merge: Manual\n")
    follow(second)
    sweep(fleet)
    fleet.merge("edge", int(str(open_request(fleet)["number"])))
    text = edge.file("main", "sites/b/Kptfile")
    assert second in text
    text = text.replace("directory: /monitoring\n", "directory: /logging\n")
    edge.commit("main", {"sites/b/Kptfile": text}, by="ann")
    edge.push(f":refs/heads/{OWN}", by="ann")
    fleet.await_checks()
    sweep(fleet, 2, code=3)
    assert fleet.published() == {"sites/b": first if is_published else ""}
    reason = "EditedDownstream" if is_published else "PathTaken"
    assert fleet.condition("sites/b")[0] == reason

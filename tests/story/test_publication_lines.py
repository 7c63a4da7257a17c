"""Publications that the vendor branch states: squashed, rebased, without tags, without records."""

import shutil
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet, Repo

BRANCH = "drafts/default/_stages/default.monitoring/dev"
VENDOR = "fanout/default/rendered"
WHO = ("--by", "Ann <ann@example.com>", "--reason", "slow")
ONE_STAGE = POLICY[: POLICY.index("  stages:")] + "  stages: [{name: dev}]\n"


def declare(fleet: Fleet, draft: str = "Stage", tags: str = "Each") -> Fleet:
    policy = ONE_STAGE.replace("spec:\n", f"spec:\n  draftPer: {draft}\n", 1)
    fleet.write("policy.yaml", policy)
    return declare_tags(fleet, tags)


def declare_tags(fleet: Fleet, tags: str) -> Fleet:
    head = "apiVersion: fanout.dev/v1alpha1\nkind: Repository\nmetadata: {name: edge}\n"
    spec = f"spec: {{url: {fleet.repos['edge'].path}, tags: {tags}}}\n"
    fleet.write("repository-edge.yaml", head + spec)
    return fleet


@company
def fleet(root: Path) -> Fleet:
    return declare(Fleet.build(root, {"a": ("dev", "edge"), "b": ("dev", "edge")}))


def publish(fleet: Fleet, revision: str) -> None:
    if revision != "v1":
        fleet.release(revision)
    fleet.later(minutes=5).settle()
    assert in_force(fleet) == {revision}


def in_force(fleet: Fleet) -> set[str]:
    return set(fleet.published().values())


def replicas(fleet: Fleet) -> str:
    text = fleet.repos["edge"].file("main", "sites/a/deployment.yaml")
    return text.partition("replicas: ")[2][0]


def roll_back(fleet: Fleet, revision: str) -> None:
    arguments = ("rollback", "--yes", "monitoring", "--stage", "dev", "--revision", revision, *WHO)
    result = fleet.later(minutes=1).run(*arguments)
    assert result.code == 0, result.err
    fleet.later(minutes=1).settle()


def lose_records(fleet: Fleet, state: str = "fresh") -> None:
    fleet.state = state
    refused = fleet.later(minutes=1).sweep()
    assert (refused.code, "--new-records" in refused.err) == (2, True), refused.err
    assert fleet.sweep("--new-records").code == 0


def merge_by_hand(repo: Repo, how: str) -> str:
    """Merge the draft of the stage as people do, onto a branch that has moved on."""
    repo.commit("main", {"README.md": "# edge, changed\n"}, "look")
    tree = repo.git("merge-tree", "--write-tree", "main", BRANCH).strip()
    tip = repo.refs()[f"refs/heads/{BRANCH}"]
    message = repo.git("log", "-1", "--format=%B", tip) if how == "rebase" else how
    parents = ["-p", "main", *(["-p", tip] if how == "merge" else [])]
    merged = repo.git("commit-tree", tree, *parents, "-F", "-", input=message).strip()
    repo.git("update-ref", "refs/heads/main", merged)
    return merged


def statements(repo: Repo, key: str) -> list[str]:
    """Values of the lines with the key in the commits of the vendor branch, newest first."""
    lines = repo.git("log", "--format=%B", VENDOR).splitlines()
    return [line.partition(": ")[2] for line in lines if line.startswith(f"{key}: ")]


def remove_tags(repo: Repo) -> None:
    for tag in repo.tags():
        repo.git("update-ref", "-d", f"refs/tags/{tag}")


def test_the_vendor_commit_repeats_the_line_of_the_package(fleet: Fleet):
    fleet.sweep()
    repo = fleet.repos["edge"]
    drafted = repo.git("log", "-1", "--format=%B", BRANCH).splitlines()
    publish(fleet, "v1")
    message = repo.git("log", "-1", "--format=%B", VENDOR).splitlines()
    lines = [line for line in drafted if line.startswith("Fanout-Package: ")]
    assert [line for line in message if line.startswith("Fanout-Package: ")] == lines
    assert statements(repo, "Fanout-Tag") == ["sites/a/v1", "sites/b/v1"]
    assert statements(repo, "Fanout-Merge") == [repo.refs()["refs/tags/sites/a/v1"]]
    assert statements(repo, "Fanout-Revision") == ["v1"]


def test_the_same_input_gives_the_same_vendor_commit(fleet: Fleet, tmp_path: Path):
    fleet.sweep()
    shutil.copytree(fleet.root, tmp_path / "before", symlinks=True)
    publish(fleet, "v1")
    refs = fleet.repos["edge"].refs()
    shutil.rmtree(fleet.root)
    shutil.copytree(tmp_path / "before", fleet.root, symlinks=True)
    publish(fleet, "v1")
    assert fleet.repos["edge"].refs() == refs


@pytest.mark.parametrize("tags", ["Each", "None"])
@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_a_merge_by_a_person_is_recognized_by_its_statement(fleet: Fleet, how: str, tags: str):
    declare_tags(fleet, tags).sweep()
    repo = fleet.repos["edge"]
    merged = merge_by_hand(repo, how)
    publish(fleet, "v1")
    assert statements(repo, "Fanout-Merge") == [merged]
    digest = fleet.variants()["sites/a"]["published"]["digest"]
    publish(fleet, "v2")
    remove_tags(repo)
    roll_back(fleet, "v1")
    assert (in_force(fleet), replicas(fleet)) == ({"v1"}, "1")
    assert fleet.variants()["sites/a"]["published"]["digest"] == digest


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_a_merge_by_a_person_outlives_the_records(fleet: Fleet, how: str):
    fleet.sweep()
    repo = fleet.repos["edge"]
    merge_by_hand(repo, how)
    publish(fleet, "v1")
    remove_tags(repo)
    before, refs = fleet.variants()["sites/a"]["published"], repo.refs()
    lose_records(fleet)
    after = fleet.variants()["sites/a"]["published"]
    assert [after[key] for key in ("revision", "digest", "tree", "commit")] == [
        before[key] for key in ("revision", "digest", "tree", "commit")
    ]
    assert repo.refs() == refs
    assert fleet.later(minutes=1).plan().out == "nothing to do\n"


def test_a_squashed_package_stays_with_its_policy(fleet: Fleet):
    fleet.sweep()
    merge_by_hand(fleet.repos["edge"], "squash")
    publish(fleet, "v1")
    text = (fleet.root / fleet.policies / "policy.yaml").read_text(encoding="utf-8")
    fleet.write("policy.yaml", text.replace("{name: monitoring}", "{name: other}", 1))
    fleet.state = "fresh"
    fleet.later(minutes=1).sweep("--new-records")
    reason, message = fleet.condition("sites/a")
    assert (reason, "published for default/monitoring" in message) == ("PathTaken", True)


@pytest.mark.parametrize("draft", ["Variant", "Stage"])
def test_without_tags_everything_works(fleet: Fleet, draft: str):
    declare(fleet, draft, "None")
    repo = fleet.repos["edge"]
    publish(fleet, "v1")
    publish(fleet, "v2")
    roll_back(fleet, "v1")
    assert (in_force(fleet), replicas(fleet)) == ({"v1"}, "1")
    lose_records(fleet)
    assert in_force(fleet) == {"v1"}
    publish(fleet, "v3")
    roll_back(fleet, "v2")
    assert (in_force(fleet), replicas(fleet)) == ({"v2"}, "2")
    assert repo.tags() == []
    numbers = [tag for tag in statements(repo, "Fanout-Tag") if tag.startswith("sites/a/")]
    assert numbers == [f"sites/a/v{number}" for number in (5, 4, 3, 2, 1)]
    assert fleet.later(minutes=1).plan().out == "nothing to do\n"
    repo.fsck()


@pytest.mark.parametrize("draft", ["Variant", "Stage"])
def test_switching_tags_off_and_on_loses_nothing(fleet: Fleet, draft: str):
    declare(fleet, draft)
    repo = fleet.repos["edge"]
    publish(fleet, "v1")
    declare_tags(fleet, "None")
    publish(fleet, "v2")
    declare_tags(fleet, "Each")
    assert fleet.later(minutes=1).plan().out == "nothing to do\n"
    lose_records(fleet)
    assert in_force(fleet) == {"v2"}
    publish(fleet, "v3")
    assert repo.tags() == [f"sites/{site}/v{number}" for site in "ab" for number in (1, 3)]
    for revision in ("v2", "v1"):
        roll_back(fleet, revision)
        assert (in_force(fleet), replicas(fleet)) == ({revision}, revision[1])
    assert fleet.condition("sites/a")[0] == "Ready"


@pytest.mark.parametrize("draft", ["Variant", "Stage"])
@pytest.mark.parametrize("tags", ["Each", "None"])
def test_a_publication_that_was_not_recorded_is_stated_once(fleet: Fleet, draft: str, tags: str):
    declare(fleet, draft, tags).sweep()
    repo, records = fleet.repos["edge"], fleet.records()
    # A release is recorded before the push, which only drafts of variants have in that pass.
    released = "test -e released || { touch released; exit 0; }\n" if draft == "Variant" else ""
    records.hook("pre-receive", f"{released}exit 1")
    assert fleet.later(minutes=1).sweep().code != 0
    vendor = repo.refs()[f"refs/heads/{VENDOR}"]
    records.hook("pre-receive", "exit 0")
    publish(fleet, "v1")
    assert repo.refs()[f"refs/heads/{VENDOR}"] == vendor
    merge = fleet.variants()["sites/a"]["published"]["commit"]
    assert merge in repo.git("rev-list", "main")
    assert repo.tags() == (["sites/a/v1", "sites/b/v1"] if tags == "Each" else [])


@pytest.mark.parametrize("tags", ["Each", "None"])
def test_a_server_that_moved_the_vendor_branch_alone(fleet: Fleet, tags: str):
    declare_tags(fleet, tags).sweep()
    repo = fleet.repos["edge"]
    before = repo.refs()
    fleet.later(minutes=1).sweep()
    after = repo.refs()
    assert in_force(fleet) == {"v1"}
    # As a server leaves it that died when one of the refs had moved.
    vendor = f"refs/heads/{VENDOR}"
    for ref in after.keys() | before.keys():
        if ref != vendor:
            old = before.get(ref)
            repo.git("update-ref", *([ref, old] if old else ["-d", ref]))
    assert repo.refs() == {**before, vendor: after[vendor]}
    lose_records(fleet)
    publish(fleet, "v1")
    publish(fleet, "v2")
    roll_back(fleet, "v1")
    assert (in_force(fleet), replicas(fleet)) == ({"v1"}, "1")

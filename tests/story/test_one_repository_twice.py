"""One repository that is declared at two addresses: its paths are one another's all the same."""

from pathlib import Path

import pytest
from fleet import POLICY, Fleet

AMS = "sites/ams"


def second(fleet: Fleet, address: str) -> None:
    """A second Repository, and a second policy that wants the same path in it."""
    fleet.write(
        "repository-twin.yaml",
        "apiVersion: fanout.dev/v1alpha1\nkind: Repository\n"
        f"metadata: {{name: twin}}\nspec: {{url: {address}}}\n",
    )
    text = POLICY.replace("{name: monitoring}", "{name: other}")
    fleet.write(
        "other.yaml", text.replace("repositoryExpr: target.spec.repository", "repository: twin")
    )


SPELLINGS = [
    ("as a file URL", "file://{}"),
    ("with a slash at its end", "{}/"),
    ("with another directory on the way", "{}/../edge.git"),
    ("with two slashes", "/{}"),
    ("with a file URL and percent signs", "file://{}/%2e/"),
]


@pytest.mark.parametrize(("_", "spelling"), SPELLINGS, ids=[row[0] for row in SPELLINGS])
def test_another_spelling_is_the_same_place(tmp_path: Path, _, spelling):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.settle()
    second(fleet, spelling.format(fleet.repos["edge"].path))
    before = fleet.repos["edge"].refs()
    for _round in range(2):
        assert fleet.later(minutes=1).sweep().code == 3
    assert fleet.repos["edge"].refs() == before
    held = [item["holds"] for item in fleet.run("get", "targets", "-o", "json").views]
    assert sorted(hold["reason"] for holds in held for hold in holds) == [
        "PathCollision",
        "VerificationPending",
    ]


def test_a_new_spelling_of_a_repository_is_no_move(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.settle()
    before = fleet.refs(), fleet.records().refs()
    path = fleet.repos["edge"].path
    file = fleet.root / "policies" / "repository-edge.yaml"
    file.write_text(file.read_text().replace(str(path), f"file://{path}/"))
    assert fleet.later(minutes=1).sweep().out == "nothing to do\n"
    assert (fleet.refs(), fleet.records().refs()) == before
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v2"}


def test_two_addresses_that_nobody_can_compare_show_in_what_is_published(tmp_path: Path):
    """The file system knows that both are one, fanout does not."""
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.settle()
    path = fleet.repos["edge"].path
    link = path.with_name("link.git")
    link.symlink_to(path)
    second(fleet, str(link))
    before = fleet.repos["edge"].refs()
    for _ in range(3):
        assert fleet.later(minutes=1).sweep().code == 3
    assert fleet.repos["edge"].refs() == before
    items = fleet.run("get", "targets", "-o", "json").views
    [hold] = [hold for item in items for hold in item["holds"] if item["policy"] == "other"]
    assert hold["reason"] == "PathTaken"
    words = ("default/monitoring", str(path), str(link))
    assert all(word in hold["message"] for word in words)


def test_of_two_that_begin_together_the_first_to_publish_has_the_path(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    link = fleet.repos["edge"].path.with_name("link.git")
    link.symlink_to(fleet.repos["edge"].path)
    second(fleet, str(link))
    for _ in range(6):
        fleet.later(minutes=1).sweep()
    edge = fleet.repos["edge"]
    assert edge.tags() == ["sites/ams/v1"]
    before = edge.refs()["refs/heads/main"]
    fleet.later(minutes=1).sweep()
    assert edge.refs()["refs/heads/main"] == before
    items = fleet.run("get", "targets", "-o", "json").views
    reasons = {item["policy"]: [hold["reason"] for hold in item["holds"]] for item in items}
    assert sorted(map(tuple, reasons.values())) == [
        ("PathTaken",),
        ("VerificationPending",),
    ]


TWIN = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {name: aaa}
spec: {url: PATH, branch: other}
---
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: other}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1"}}
  targets:
  - repositories: [{name: aaa, packageNames: [sites/cph]}]
    template: {stage: dev}
  stages: [{name: dev}]
"""


def test_a_new_repository_with_another_branch_leaves_the_one_in_use(tmp_path: Path):
    """By its name alone it would come first."""
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.settle()
    fleet.repos["edge"].git("branch", "other", "main")
    fleet.write("twin.yaml", TWIN.replace("PATH", str(fleet.repos["edge"].path)))
    fleet.release("v2")
    for _ in range(3):
        assert fleet.later(minutes=1).sweep().code == 3
    assert fleet.repos["edge"].tags() == ["sites/ams/v1", "sites/ams/v2"]
    items = fleet.run("get", "targets", "-o", "json").views
    [hold] = [hold for item in items for hold in item["holds"] if item["policy"] == "other"]
    assert hold["reason"] == "RepositoryUnavailable"
    assert "Repository default/edge has the same URL" in hold["message"]
    assert "branch main" in hold["message"]
    # Where it is in use no more, the other branch is published to.
    for name in ("policy.yaml", "repository-edge.yaml", "promotion.yaml"):
        fleet.remove(name)
    fleet.later(minutes=1).sweep()
    assert fleet.later(minutes=1).sweep().code == 0
    assert {item["state"] for item in fleet.run("get", "targets", "-o", "json").views} == {
        "Drafted"
    }

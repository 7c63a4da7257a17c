"""Pull requests on a real Gitea for all other changes: by hand, rollback, adoption, moves."""

from pathlib import Path

import pytest
from fleet import POLICY, PROMOTION
from forge_fleet import ForgeFleet
from gitea_server import Gitea

pytestmark = pytest.mark.forge
HEAD = "drafts/default/_stages/default.monitoring/dev"
WHO = ("--by", "Ann <ann@example.com>")
MINE = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: mine}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}
  downstream: {repository: edge, package: own/mine}
"""


def build(gitea: Gitea, root: Path) -> ForgeFleet:
    return ForgeFleet.on(gitea, root, {"a": ("dev", "edge"), "b": ("dev", "edge")})


def settle(fleet: ForgeFleet, limit: int = 8) -> list[str]:
    """Sweep each minute until nothing is to be done; what each sweep printed."""
    outputs = []
    for _ in range(limit):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 0, swept.err
        outputs.append(swept.out)
        if swept.out == "nothing to do\n":
            return outputs
    raise AssertionError(outputs)


def revision(fleet: ForgeFleet) -> str:
    """Return the upstream commit of v1."""
    return fleet.repos["blueprints"].git("rev-parse", "monitoring/v1^{commit}").strip()


def states(fleet: ForgeFleet) -> list[str]:
    return [it["state"] for it in fleet.requests("edge")]


def test_a_variant_written_by_hand_has_a_request_of_its_own(gitea: Gitea, tmp_path: Path):
    fleet = build(gitea, tmp_path)
    fleet.remove("policy.yaml")
    fleet.write("mine.yaml", MINE)
    fleet.write("promotion.yaml", PROMOTION + "  variants: [mine]\n")
    settle(fleet)
    assert fleet.published() == {"own/mine": "v1"}
    assert states(fleet) == ["merged"]
    assert fleet.repos["edge"].tags() == ["own/mine/v1"]
    assert fleet.repos["edge"].drafts() == []


def test_a_stage_goes_back_by_a_request(gitea: Gitea, tmp_path: Path):
    fleet = build(gitea, tmp_path)
    settle(fleet)
    fleet.release("v2")
    settle(fleet)
    back = fleet.later(minutes=1).run(
        "rollback",
        "--yes",
        "monitoring",
        "--stage",
        "dev",
        "--revision",
        "v1",
        "--reason",
        "bad",
        *WHO,
    )
    assert back.code in (0, 4), back.err
    settle(fleet)
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}
    assert states(fleet) == ["merged"] * 3
    repo = fleet.repos["edge"]
    assert repo.git("rev-parse", "main:sites/a") == repo.git("rev-parse", "sites/a/v1:sites/a")


def test_a_package_that_is_there_is_adopted_by_a_request(gitea: Gitea, tmp_path: Path):
    fleet = build(gitea, tmp_path)
    settle(fleet)
    repo = fleet.repos["edge"]
    other = ForgeFleet.on(gitea, tmp_path / "other", {"a": ("dev", "edge")})
    replaced = {str(tmp_path / "git"): str(tmp_path / "other" / "git")}
    replaced[revision(fleet)] = revision(other)
    files = {path: repo.file("main", path) for path in repo.files() if path.startswith("sites/a")}
    for old, new in replaced.items():
        files = {path: text.replace(old, new) for path, text in files.items()}
    other.repos["edge"].commit("main", files)
    other.write(
        "policy.yaml", POLICY.replace("  stages:\n", "  adoptionPolicy: AdoptExisting\n  stages:\n")
    )
    for _ in range(3):
        other.later(minutes=1).sweep()
    name = other.run("get", "variants", "-o", "json").items[0]["metadata"]["name"]
    other.later(minutes=1).run(
        "promote", "monitoring", "--stage", "dev", "--revision", "v1", "--reason", "read", *WHO
    )
    settle(other)
    assert other.published() == {"sites/a": "v1"}, other.run("explain", "monitoring", name).out
    assert [it["state"] for it in other.requests("edge")] == ["merged"]


def test_a_variant_moves_by_two_requests(gitea: Gitea, tmp_path: Path):
    fleet = build(gitea, tmp_path)
    settle(fleet)
    fleet.write("policy.yaml", POLICY.replace("'sites/'", "'places/'"))
    settle(fleet)
    fleet.report("dev", "v1")
    settle(fleet)
    assert fleet.published() == {"places/a": "v1", "places/b": "v1"}
    assert states(fleet) == ["merged"] * 3
    assert not [it for it in fleet.repos["edge"].files() if it.startswith("sites/")]
    assert fleet.repos["edge"].drafts() == []

"""People merge a pull request while a pass is under way: what is recorded is what they merged."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fleet import POLICY, PROMOTION
from forge_fleet import ForgeFleet
from forge_proxy import proxying
from gitea_server import Gitea

from fanout.git.mirror_store import MirrorStore

pytestmark = pytest.mark.forge
HEAD = "drafts/default/_stages/default.monitoring/dev"
MANUAL = PROMOTION + "  merge: Manual\n"
SIGNED = "  - {name: dev, requires: [{name: ok, approval: {from: [sre]}}]}\n"
SITES = {"a": ("dev", "edge"), "b": ("dev", "edge")}
DEPLOYMENT = "sites/a/deployment.yaml"


def sweep(fleet: ForgeFleet, passes: int = 1) -> str:
    """Sweep each minute; what the last one printed."""
    for _ in range(passes):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 0, swept.err
    return swept.out


def request_v2(fleet: ForgeFleet) -> None:
    """Publish v1, and have people asked about v2 by request 2."""
    sweep(fleet, 2)
    fleet.write("promotion.yaml", MANUAL)
    fleet.release("v2")
    sweep(fleet, 2)
    assert [it["state"] for it in fleet.requests("edge")] == ["merged", "open"]


def meanwhile(patch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do it once, when releases are on record and a downstream repository is to be written."""
    change, done = MirrorStore.change, []

    def late(self, changes):
        if not done:
            done.append(act())
        return change(self, changes)

    patch.setattr(MirrorStore, "change", late)


def test_a_variant_that_left_a_request_is_not_published_by_it(gitea: Gitea, tmp_path: Path):
    fleet = ForgeFleet.on(gitea, tmp_path, SITES)
    request_v2(fleet)
    items = fleet.run("get", "variants", "-o", "json").items
    [name] = [name for it in items if (name := it["metadata"]["name"]).startswith("monitoring-b-")]
    suspended = fleet.later(minutes=1).run(
        "suspend", "monitoring", "--variant", name, "--reason", "x", "--by", "Ann <ann@example.com>"
    )
    assert suspended.code == 0, suspended.err
    sweep(fleet, 2)
    fleet.merge("edge", 2)
    sweep(fleet)
    assert fleet.published() == {"sites/a": "v2", "sites/b": "v1"}
    assert sweep(fleet) == "nothing to do\n"


def test_a_merge_after_git_was_listed_is_recorded_by_the_next_pass(gitea: Gitea, tmp_path: Path):
    with proxying(gitea.url) as proxy:
        fleet = ForgeFleet.on(gitea, tmp_path, SITES, api=proxy.api)
        request_v2(fleet)
        done: list[str] = []

        def merge(_method: str, path: str) -> None:
            if not done:
                done.append(path)
                fleet.merge("edge", 2)

        # So that the pass lists Git before it asks the forge for the first time.
        fleet.repos["edge"].commit("main", {"notes.md": "x\n"})
        proxy.before = merge
        sweep(fleet)
        assert done
        assert fleet.repos["edge"].tags() == ["sites/a/v1", "sites/b/v1"]
        sweep(fleet)
        assert fleet.published() == {"sites/a": "v2", "sites/b": "v2"}
        repo = fleet.repos["edge"]
        assert "replicas: 2" in repo.file("sites/a/v2", DEPLOYMENT)
        assert sweep(fleet) == "nothing to do\n"
        assert [it["state"] for it in fleet.requests("edge")] == ["merged", "merged"]


def test_a_merge_with_deletion_before_the_push_is_recorded_as_what_it_was(
    gitea: Gitea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fleet = ForgeFleet.on(gitea, tmp_path, SITES)
    request_v2(fleet)

    def merge() -> None:
        fleet.merge("edge", 2)
        fleet.delete_branch("edge", HEAD)

    meanwhile(monkeypatch, merge)
    fleet.release("v3")
    assert fleet.later(minutes=1).sweep().code == 3
    sweep(fleet)
    assert fleet.published() == {"sites/a": "v2", "sites/b": "v2"}
    fleet.write("promotion.yaml", PROMOTION)
    sweep(fleet, 3)
    assert fleet.published() == {"sites/a": "v3", "sites/b": "v3"}
    assert "replicas: 3" in fleet.repos["edge"].file("main", DEPLOYMENT)


@pytest.mark.parametrize("style", ["merge", "squash"])
def test_a_merge_before_the_push_is_recorded_and_followed_by_the_new_revision(
    gitea: Gitea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, style: str
):
    fleet = ForgeFleet.on(gitea, tmp_path, SITES)
    request_v2(fleet)
    meanwhile(monkeypatch, lambda: fleet.merge("edge", 2, style=style))
    fleet.release("v3")
    sweep(fleet)
    assert "replicas: 3" in fleet.repos["edge"].file(HEAD, DEPLOYMENT)
    assert "OutOfBand" in fleet.later(minutes=1).sweep("-o", "json").reasons
    assert fleet.published() == {"sites/a": "v2", "sites/b": "v2"}
    assert "replicas: 2" in fleet.repos["edge"].file("sites/a/v2", DEPLOYMENT)
    sweep(fleet, 2)
    assert [it["state"] for it in fleet.requests("edge")] == ["merged", "merged", "open"]
    fleet.merge("edge", 3)
    sweep(fleet)
    assert fleet.published() == {"sites/a": "v3", "sites/b": "v3"}
    assert "replicas: 3" in fleet.repos["edge"].file("main", DEPLOYMENT)
    assert sweep(fleet) == "nothing to do\n"


def test_a_merge_without_gates_is_reported_after_a_pass_that_could_not_push(
    gitea: Gitea, tmp_path: Path
):
    fleet = ForgeFleet.on(gitea, tmp_path, SITES)
    fleet.write("policy.yaml", POLICY[: POLICY.index("  - {name: dev,")] + SIGNED)
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    fleet.retitle("edge", 1, "mine")
    fleet.merge("edge", 1)
    hook = fleet.repos["edge"].path / "hooks" / "pre-receive.d" / "refuse"
    hook.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    assert fleet.later(minutes=1).sweep().code == 3
    hook.unlink()
    assert "OutOfBand" in fleet.later(minutes=1).sweep("-o", "json").reasons

"""What kstatus computes of the objects: the library by which tools wait for what they apply."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kube.status_world import StatusWorld
from kube_server import KubeServer
from servers.build import kstatus_folder

pytestmark = pytest.mark.kube
KINDS = ("Repository", "PromotionPolicy", "UpstreamPolicy", "PackageVariant")


@pytest.fixture
def cluster(server: KubeServer, kube_namespace: str, tmp_path: Path) -> StatusWorld:
    """Return a site in dev before one in prod."""
    sites = {"ams": ("dev", "edge"), "cph": ("prod", "core")}
    return StatusWorld.build(server, kube_namespace, tmp_path, sites)


def ask(items: list[dict[str, Any]]) -> dict[str, str]:
    """Return what kstatus computes, by the names of the objects."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    program = str(kstatus_folder() / "kstatus")
    done = subprocess.run([program], input=text, text=True, capture_output=True, check=True)
    return dict(line.split("\t") for line in done.stdout.splitlines())


def statuses(cluster: StatusWorld) -> dict[str, set[str]]:
    """Return what kstatus computes of all objects, by kind."""
    return {
        kind: {*ask(cluster.server.list("fanout.dev/v1alpha1", kind, cluster.namespace)).values()}
        for kind in KINDS
    }


def of_site(cluster: StatusWorld, site: str) -> str:
    [status] = ask([cluster.variants()[site]]).values()
    return status


def test_a_rollout_is_in_progress_until_all_is_ready(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        assert (of_site(cluster, "ams"), of_site(cluster, "cph")) == (
            "InProgress",
            "InProgress",
        )
        assert statuses(cluster)["UpstreamPolicy"] == {"InProgress"}
        cluster.report("dev", "v1")
        for _ in range(2):
            cluster.fleet.later(hours=2)
            cluster.settle()
        assert statuses(cluster) == {key: {"Current"} for key in KINDS}


def test_a_change_is_in_progress_until_a_round_has_seen_it(cluster: StatusWorld):
    policy = cluster.manifest("UpstreamPolicy", "monitoring")
    with cluster.process():
        cluster.settle()
        cluster.report("dev", "v1")
        for _ in range(2):
            cluster.fleet.later(hours=2)
            cluster.settle()
        cluster.server.patch(policy, {"spec": {"removalLimit": 5}})
        assert statuses(cluster)["UpstreamPolicy"] == {"InProgress"}
        cluster.settle()
        assert statuses(cluster)["UpstreamPolicy"] == {"Current"}


def test_a_policy_that_only_a_person_can_resume_has_failed(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        cluster.report("dev", "v1", "failed")
        cluster.settle()
        assert of_site(cluster, "ams") == "Failed"
        assert statuses(cluster)["UpstreamPolicy"] == {"Failed"}


def test_a_policy_suspended_before_it_is_ready_is_in_progress(cluster: StatusWorld):
    policy = cluster.manifest("UpstreamPolicy", "monitoring")
    with cluster.process():
        cluster.settle()
        cluster.server.patch(policy, {"spec": {"suspend": True}})
        cluster.settle()
        assert statuses(cluster)["UpstreamPolicy"] == {"InProgress"}

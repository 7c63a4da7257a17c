"""Owners of variants, and statuses that somebody takes away, on a real kube-apiserver."""

import copy
from typing import Any

import pytest
from kube.status_world import StatusWorld
from kube.test_statuses import SITES, versions
from kube.test_statuses import cluster as cluster_of_statuses

pytestmark = pytest.mark.kube
cluster = cluster_of_statuses  # the fixture


def test_a_policy_owns_its_variants(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
    policy = cluster.server.get(
        {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "UpstreamPolicy",
            "metadata": {"name": "monitoring", "namespace": cluster.namespace},
        }
    )
    owner = {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "UpstreamPolicy",
        "name": "monitoring",
        "uid": policy["metadata"]["uid"],
        "controller": True,
    }
    variants = cluster.variants().values()
    assert [it["metadata"]["ownerReferences"] for it in variants] == [[owner]] * len(SITES)


@pytest.mark.parametrize(
    ("kind", "plural", "name"),
    [
        ("UpstreamPolicy", "upstreampolicies", "monitoring"),
        ("Repository", "repositories", "edge"),
        ("PromotionPolicy", "promotionpolicies", "everything"),
    ],
)
def test_a_status_that_somebody_removed_is_written_again(
    cluster: StatusWorld, kind: str, plural: str, name: str
):
    def shown() -> dict[str, Any]:
        """Return the status without instants, which no record has."""
        status: dict[str, Any] = copy.deepcopy(cluster.get(kind, name).get("status", {}))
        for condition in status.get("conditions", ()):
            del condition["lastTransitionTime"]
        return status

    with cluster.process():
        cluster.settle()
        before, others = shown(), versions(cluster)
        assert before["conditions"]
        removed = cluster.get(kind, name)
        del removed["status"]
        path = f"/apis/fanout.dev/v1alpha1/namespaces/{cluster.namespace}/{plural}/{name}/status"
        cluster.server.ask("PUT", f"{path}?fieldManager=somebody", removed)
        assert shown() == {}
        cluster.await_change()
        cluster.show()
        assert shown() == before
        changed = {key for key, it in versions(cluster).items() if others[key] != it}
        assert changed == {(kind, name)}

"""Owners of variants, and statuses that somebody takes away, on a real kube-apiserver."""

import copy
from typing import Any

import pytest
from kube.status_world import StatusWorld
from kube.test_statuses import SITES, versions
from kube.test_statuses import world as world_of_statuses

pytestmark = pytest.mark.kube
world = world_of_statuses  # the fixture


def test_a_policy_owns_its_variants(world: StatusWorld):
    with world.process():
        world.settle()
    policy = world.server.get(
        {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "UpstreamPolicy",
            "metadata": {"name": "monitoring", "namespace": world.namespace},
        }
    )
    owner = {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "UpstreamPolicy",
        "name": "monitoring",
        "uid": policy["metadata"]["uid"],
        "controller": True,
    }
    variants = world.variants().values()
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
    world: StatusWorld, kind: str, plural: str, name: str
):
    def shown() -> dict[str, Any]:
        """Return the status without instants, which no record has."""
        status: dict[str, Any] = copy.deepcopy(world.get(kind, name).get("status", {}))
        for condition in status.get("conditions", ()):
            del condition["lastTransitionTime"]
        return status

    with world.process():
        world.settle()
        before, others = shown(), versions(world)
        assert before["conditions"]
        removed = world.get(kind, name)
        del removed["status"]
        path = f"/apis/fanout.dev/v1alpha1/namespaces/{world.namespace}/{plural}/{name}/status"
        world.server.ask("PUT", f"{path}?fieldManager=somebody", removed)
        assert shown() == {}
        world.await_change()
        world.show()
        assert shown() == before
        changed = {key for key, it in versions(world).items() if others[key] != it}
        assert changed == {(kind, name)}

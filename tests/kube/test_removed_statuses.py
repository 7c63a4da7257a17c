"""Owners of variants, and statuses that somebody takes away, on a real kube-apiserver."""

import copy
from typing import Any

import pytest
from kube.status_world import StatusWorld
from kube.test_statuses import SITES, versions
from kube.test_statuses import installation as installation_of_statuses

pytestmark = pytest.mark.kube
installation = installation_of_statuses  # the fixture


def test_a_policy_owns_its_variants(installation: StatusWorld):
    with installation.process():
        installation.settle()
    policy = installation.server.get(
        {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "UpstreamPolicy",
            "metadata": {"name": "monitoring", "namespace": installation.namespace},
        }
    )
    owner = {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "UpstreamPolicy",
        "name": "monitoring",
        "uid": policy["metadata"]["uid"],
        "controller": True,
    }
    variants = installation.variants().values()
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
    installation: StatusWorld, kind: str, plural: str, name: str
):
    def shown() -> dict[str, Any]:
        """Return the status without instants, which no record has."""
        status: dict[str, Any] = copy.deepcopy(installation.get(kind, name).get("status", {}))
        for condition in status.get("conditions", ()):
            del condition["lastTransitionTime"]
        return status

    with installation.process():
        installation.settle()
        before, others = shown(), versions(installation)
        assert before["conditions"]
        removed = installation.get(kind, name)
        del removed["status"]
        path = (
            f"/apis/fanout.dev/v1alpha1/namespaces/{installation.namespace}/{plural}/{name}/status"
        )
        installation.server.ask("PUT", f"{path}?fieldManager=somebody", removed)
        assert shown() == {}
        installation.await_change()
        installation.show()
        assert shown() == before
        changed = {key for key, it in versions(installation).items() if others[key] != it}
        assert changed == {(kind, name)}

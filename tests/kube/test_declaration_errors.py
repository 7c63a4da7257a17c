"""Errors of objects that no schema caught and no pass meets, in the statuses of these objects."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube.status_world import StatusWorld
from kube_server import KubeServer

pytestmark = pytest.mark.kube

SITES = {"ams": ("dev", "edge")}


@pytest.fixture
def cluster(server: KubeServer, kube_namespace: str, tmp_path: Path) -> Iterator[StatusWorld]:
    cluster = StatusWorld.build(server, kube_namespace, tmp_path, SITES)
    with cluster.process():
        yield cluster


def conditions(cluster: StatusWorld, kind: str, name: str) -> dict[str, Any]:
    """Return the conditions of an object by their types."""
    return {it["type"]: it for it in cluster.get(kind, name)["status"]["conditions"]}


WRONG: list[tuple[str, dict[str, Any], str]] = [
    (
        "a version range",
        {"upstream": {"revision": {"semver": "=>1"}}},
        "spec.upstream.revision.semver: ",
    ),
    ("a pin", {"stages": [{"name": "dev", "pin": "latest"}, {"name": "prod"}]}, "stages[0].pin: "),
    (
        "an expression that nothing evaluates yet",
        {"stages": [{"name": "dev"}, {"name": "prod", "propagateWhen": ["stage.nothing > 1"]}]},
        "spec.stages[1].propagateWhen[0]: ",
    ),
]


@pytest.mark.parametrize(("_", "spec", "words"), WRONG, ids=[it[0] for it in WRONG])
def test_an_error_of_a_policy_is_in_its_status(cluster: StatusWorld, _, spec, words):
    cluster.settle()
    policy = cluster.manifest("UpstreamPolicy", "monitoring")
    before = cluster.get("UpstreamPolicy", "monitoring")["spec"]
    cluster.server.patch(policy, {"spec": spec})
    cluster.settle()
    present = conditions(cluster, "UpstreamPolicy", "monitoring")
    assert present["Ready"]["status"] == "False"
    assert present["Stalled"]["status"] == "True"
    assert words in present["Stalled"]["message"]
    assert "Reconciling" not in present
    cluster.server.patch(policy, {"spec": before})
    cluster.settle()
    assert "Stalled" not in conditions(cluster, "UpstreamPolicy", "monitoring")


def test_an_error_of_a_variant_written_by_hand_is_in_its_status(cluster: StatusWorld):
    variant = {
        **cluster.manifest("PackageVariant", "solo"),
        "spec": {
            "upstream": {
                "repository": "blueprints",
                "package": "monitoring",
                "revision": {"semver": "=>1"},
            },
            "downstream": {"repository": "edge", "package": "solo"},
        },
    }
    cluster.server.create(variant)
    cluster.settle()
    stalled = conditions(cluster, "PackageVariant", "solo")["Stalled"]
    assert "spec.upstream.revision.semver: " in stalled["message"]


def test_a_promotion_policy_says_that_it_names_an_unknown_policy(cluster: StatusWorld):
    promotion = cluster.manifest("PromotionPolicy", "everything")
    cluster.server.patch(promotion, {"spec": {"policies": ["monitorin"]}})
    cluster.settle()
    present = conditions(cluster, "PromotionPolicy", "everything")
    assert (present["Ready"]["status"], present["Ready"]["reason"]) == ("False", "InvalidObject")
    assert "there is no UpstreamPolicy monitorin in this namespace" in present["Stalled"]["message"]
    cluster.server.patch(promotion, {"spec": {"policies": ["monitoring"]}})
    cluster.settle()
    present = conditions(cluster, "PromotionPolicy", "everything")
    assert (present["Ready"]["status"], present["Ready"]["reason"]) == ("True", "Ready")
    assert "Stalled" not in present


def test_an_error_that_another_object_ends_is_no_more_in_the_status(cluster: StatusWorld):
    """The policy itself does not change, and its result may not either."""
    cluster.settle()
    promotion = {
        **cluster.manifest("PromotionPolicy", "early"),
        "spec": {"policies": ["logging"], "autoPromotion": {"stages": ["*"]}},
    }
    cluster.server.create(promotion)
    cluster.settle()
    assert "Stalled" in conditions(cluster, "PromotionPolicy", "early")
    policy = cluster.get("UpstreamPolicy", "monitoring")
    logging = {**cluster.manifest("UpstreamPolicy", "logging"), "spec": policy["spec"]}
    cluster.server.create(logging)
    cluster.run_round()
    assert "Stalled" not in conditions(cluster, "PromotionPolicy", "early")

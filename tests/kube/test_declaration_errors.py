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
def world(server: KubeServer, kube_namespace: str, tmp_path: Path) -> Iterator[StatusWorld]:
    world = StatusWorld.build(server, kube_namespace, tmp_path, SITES)
    with world.process():
        yield world


def conditions(world: StatusWorld, kind: str, name: str) -> dict[str, Any]:
    """Return the conditions of an object by their types."""
    return {it["type"]: it for it in world.get(kind, name)["status"]["conditions"]}


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
def test_an_error_of_a_policy_is_in_its_status(world: StatusWorld, _, spec, words):
    world.settle()
    policy = world.manifest("UpstreamPolicy", "monitoring")
    before = world.get("UpstreamPolicy", "monitoring")["spec"]
    world.server.patch(policy, {"spec": spec})
    world.settle()
    present = conditions(world, "UpstreamPolicy", "monitoring")
    assert present["Ready"]["status"] == "False"
    assert present["Stalled"]["status"] == "True"
    assert words in present["Stalled"]["message"]
    assert "Reconciling" not in present
    world.server.patch(policy, {"spec": before})
    world.settle()
    assert "Stalled" not in conditions(world, "UpstreamPolicy", "monitoring")


def test_an_error_of_a_variant_written_by_hand_is_in_its_status(world: StatusWorld):
    variant = {
        **world.manifest("PackageVariant", "solo"),
        "spec": {
            "upstream": {
                "repository": "blueprints",
                "package": "monitoring",
                "revision": {"semver": "=>1"},
            },
            "downstream": {"repository": "edge", "package": "solo"},
        },
    }
    world.server.create(variant)
    world.settle()
    stalled = conditions(world, "PackageVariant", "solo")["Stalled"]
    assert "spec.upstream.revision.semver: " in stalled["message"]


def test_a_promotion_policy_says_that_it_names_an_unknown_policy(world: StatusWorld):
    promotion = world.manifest("PromotionPolicy", "everything")
    world.server.patch(promotion, {"spec": {"policies": ["monitorin"]}})
    world.settle()
    present = conditions(world, "PromotionPolicy", "everything")
    assert (present["Ready"]["status"], present["Ready"]["reason"]) == ("False", "InvalidObject")
    assert "there is no UpstreamPolicy monitorin in this namespace" in present["Stalled"]["message"]
    world.server.patch(promotion, {"spec": {"policies": ["monitoring"]}})
    world.settle()
    present = conditions(world, "PromotionPolicy", "everything")
    assert (present["Ready"]["status"], present["Ready"]["reason"]) == ("True", "Ready")
    assert "Stalled" not in present


def test_an_error_that_another_object_ends_is_no_more_in_the_status(world: StatusWorld):
    """The policy itself does not change, and its result may not either."""
    world.settle()
    promotion = {
        **world.manifest("PromotionPolicy", "early"),
        "spec": {"policies": ["logging"], "autoPromotion": {"stages": ["*"]}},
    }
    world.server.create(promotion)
    world.settle()
    assert "Stalled" in conditions(world, "PromotionPolicy", "early")
    policy = world.get("UpstreamPolicy", "monitoring")
    logging = {**world.manifest("UpstreamPolicy", "logging"), "spec": policy["spec"]}
    world.server.create(logging)
    world.run_round()
    assert "Stalled" not in conditions(world, "PromotionPolicy", "early")

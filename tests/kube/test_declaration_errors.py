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
def installation(server: KubeServer, kube_namespace: str, tmp_path: Path) -> Iterator[StatusWorld]:
    installation = StatusWorld.build(server, kube_namespace, tmp_path, SITES)
    with installation.process():
        yield installation


def conditions(installation: StatusWorld, kind: str, name: str) -> dict[str, Any]:
    """Return the conditions of an object by their types."""
    return {it["type"]: it for it in installation.get(kind, name)["status"]["conditions"]}


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
def test_an_error_of_a_policy_is_in_its_status(installation: StatusWorld, _, spec, words):
    installation.settle()
    policy = installation.manifest("UpstreamPolicy", "monitoring")
    before = installation.get("UpstreamPolicy", "monitoring")["spec"]
    installation.server.patch(policy, {"spec": spec})
    installation.settle()
    present = conditions(installation, "UpstreamPolicy", "monitoring")
    assert present["Ready"]["status"] == "False"
    assert present["Stalled"]["status"] == "True"
    assert words in present["Stalled"]["message"]
    assert "Reconciling" not in present
    installation.server.patch(policy, {"spec": before})
    installation.settle()
    assert "Stalled" not in conditions(installation, "UpstreamPolicy", "monitoring")


def test_an_error_of_a_variant_written_by_hand_is_in_its_status(installation: StatusWorld):
    variant = {
        **installation.manifest("PackageVariant", "solo"),
        "spec": {
            "upstream": {
                "repository": "blueprints",
                "package": "monitoring",
                "revision": {"semver": "=>1"},
            },
            "downstream": {"repository": "edge", "package": "solo"},
        },
    }
    installation.server.create(variant)
    installation.settle()
    stalled = conditions(installation, "PackageVariant", "solo")["Stalled"]
    assert "spec.upstream.revision.semver: " in stalled["message"]


def test_a_promotion_policy_says_that_it_names_an_unknown_policy(installation: StatusWorld):
    promotion = installation.manifest("PromotionPolicy", "everything")
    installation.server.patch(promotion, {"spec": {"policies": ["monitorin"]}})
    installation.settle()
    present = conditions(installation, "PromotionPolicy", "everything")
    assert (present["Ready"]["status"], present["Ready"]["reason"]) == ("False", "InvalidObject")
    assert "there is no UpstreamPolicy monitorin in this namespace" in present["Stalled"]["message"]
    installation.server.patch(promotion, {"spec": {"policies": ["monitoring"]}})
    installation.settle()
    present = conditions(installation, "PromotionPolicy", "everything")
    assert (present["Ready"]["status"], present["Ready"]["reason"]) == ("True", "Ready")
    assert "Stalled" not in present


def test_an_error_that_another_object_ends_is_no_more_in_the_status(installation: StatusWorld):
    """The policy itself does not change, and its result may not either."""
    installation.settle()
    promotion = {
        **installation.manifest("PromotionPolicy", "early"),
        "spec": {"policies": ["logging"], "autoPromotion": {"stages": ["*"]}},
    }
    installation.server.create(promotion)
    installation.settle()
    assert "Stalled" in conditions(installation, "PromotionPolicy", "early")
    policy = installation.get("UpstreamPolicy", "monitoring")
    logging = {**installation.manifest("UpstreamPolicy", "logging"), "spec": policy["spec"]}
    installation.server.create(logging)
    installation.run_round()
    assert "Stalled" not in conditions(installation, "PromotionPolicy", "early")

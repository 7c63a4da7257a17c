"""Rights that are withdrawn while a controller runs, and given back."""

from functools import partial

import pytest
import yaml
from kube.tenants import (
    HASTY_WATCHES,
    INJECTING,
    PLAIN_POLICY,
    await_handled,
    condition,
    denied,
    own,
    request_pass,
    variants_of,
    without_binding,
    without_watches,
)

pytestmark = pytest.mark.kube

PATHS = {"monitoring": "sites/ams", "plain": "plain", "injecting": "injecting"}
TARGETS = "spec.targets[0].objectSelector.kind: "
SOURCES = "spec.targets[0].template.injectors[0].kind: "
# What is withdrawn; the policies that need it, each with its field; verb and resource.
WITHDRAWN = {
    "the-right-to-targets": (
        partial(denied, resource="clusters.infra.example.com"),
        {"monitoring": TARGETS},
        'cannot list resource "clusters"',
    ),
    "the-right-to-sources": (
        partial(denied, resource="configmaps"),
        {"monitoring": SOURCES, "injecting": SOURCES},
        'cannot list resource "configmaps"',
    ),
    "the-binding": (
        without_binding,
        {"monitoring": TARGETS, "injecting": SOURCES},
        "cannot list resource ",
    ),
    "watch-alone": (
        without_watches,
        {"monitoring": TARGETS, "injecting": SOURCES},
        "cannot watch resource ",
    ),
}


@pytest.mark.parametrize(
    ("withdraw", "holding", "refusal"), WITHDRAWN.values(), ids=WITHDRAWN.keys()
)
def test_a_right_that_is_withdrawn_holds_who_needs_it_until_it_is_back(
    tenant, begin, withdraw, holding, refusal
):
    twin = tenant()
    for name, more in (("plain", ""), ("injecting", INJECTING)):
        twin.fleet.write(f"{name}.yaml", PLAIN_POLICY.format(name=name, more=more))
    twin.move()
    twin.apply()
    controller = begin(twin, program=("-c", HASTY_WATCHES))
    edge = twin.fleet.repos["edge"]
    published = {f"{path}/v1" for path in PATHS.values()}
    controller.until(lambda: {*edge.tags()} == published)
    for name in PATHS:
        await_handled(controller, twin, "first", name)
    variants, files = variants_of(twin), {*edge.files()}

    def stalled(name: str) -> str:
        return str(condition(twin, "UpstreamPolicy", name, "Stalled").get("message", ""))

    with withdraw(twin.server):
        for name, field in holding.items():
            controller.until(lambda name=name, field=field: field in stalled(name))
            controller.until(lambda name=name: refusal in stalled(name))
        # What changes meanwhile reaches the policies that need nothing of it.
        twin.fleet.release("v2")
        request_pass(twin, "second", "plain")
        going_on = {f"{path}/v2" for name, path in PATHS.items() if name not in holding}
        for name in PATHS.keys() - holding.keys():
            request_pass(twin, "second", name)
        controller.until(lambda: going_on <= {*edge.tags()})
        await_handled(controller, twin, "third", "plain")
        assert {*edge.tags()} == published | going_on
        assert edge.drafts() == []
        assert {*edge.files()} == files
        for name in holding:
            assert refusal in stalled(name)
            assert variants_of(twin)[name] == variants[name]
    controller.until(lambda: {*edge.tags()} == published | {f"{it}/v2" for it in PATHS.values()})
    for name in holding:
        controller.until(lambda name=name: not stalled(name))
    for path in ("sites/ams", "injecting"):
        assert yaml.safe_load(edge.file("main", f"{path}/settings.yaml"))["data"] == {
            "retention": "7d"
        }
    assert "interval" not in controller.triggers()
    assert controller.end() == 0


def test_targets_that_go_while_their_kind_is_denied_are_removed_afterwards(tenant, begin):
    """Nothing tells of the deletion meanwhile, and the first list afterwards does."""
    twin = tenant(dict.fromkeys(("ams", "ber", "cph"), ("dev", "edge")))
    policy = own(twin, "UpstreamPolicy", "monitoring")
    twin.server.patch(policy, {"spec": {"stages": [{"name": "dev"}], "removalLimit": 1}})
    controller = begin(twin, program=("-c", HASTY_WATCHES))
    edge = twin.fleet.repos["edge"]
    controller.until(lambda: len(edge.tags()) == 3)
    await_handled(controller, twin, "first")
    files = {*edge.files()}
    stalled = partial(condition, twin, "UpstreamPolicy", "monitoring", "Stalled")
    with denied(twin.server, "clusters.infra.example.com"):
        controller.until(lambda: 'cannot list resource "clusters"' in stalled().get("message", ""))
        twin.server.kubectl("delete", "clusters.infra.example.com", "ams", namespace=twin.namespace)
        request_pass(twin, "second")  # which no pass serves, because the policy is left out
        assert {*edge.files()} == files
    controller.until(lambda: not any(it.startswith("sites/ams/") for it in edge.files()))
    assert {it for it in files if not it.startswith("sites/ams/")} == {*edge.files()}
    assert controller.end() == 0

"""Deleted policies and variants on a real kube-apiserver: what keeps them, and until when."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from fleet import POLICY, Fleet
from kube_server import CONTROLLER, KubeServer

from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.controller.cluster_operation import FinalizedInventory
from fanout.declared.declared_objects import DeclaredObjects
from fanout.git.mirror import create_bare
from fanout.kube.api_connection import open_connection
from fanout.kube.api_inventory import ApiInventory
from fanout.kube.finalizers import FINALIZER, RemovalFinalizers
from fanout.kube.object_sources import ListedObjects
from fanout.reconcile.execution.plan_execution import run_pass
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassMode
from fanout.values import replace

pytestmark = pytest.mark.kube

BY_HAND = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: oslo}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  downstream: {repository: core, package: hand/oslo}
---
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: by-hand}
spec: {variants: [oslo], autoPromotion: {stages: ["*"]}}
"""
SITES = {"ams": ("dev", "edge"), "cph": ("prod", "core")}


class World:
    """A fleet whose objects are in a namespace, and rounds as the controller makes them."""

    def __init__(self, server: KubeServer, namespace: str, root: Path) -> None:
        self.server, self.namespace = server, namespace
        self.fleet = Fleet.build(root, SITES)
        self.fleet.write("policy.yaml", POLICY.replace(", soak: 1h", ""))
        self.connection = open_connection(server.kubeconfig, CONTROLLER)
        self.finalizers = RemovalFinalizers(self.connection)
        self.apply()

    def apply(self) -> None:
        for path in sorted((self.fleet.root / "policies").glob("*.yaml")):
            for document in yaml.safe_load_all(path.read_text()):
                meta = {"namespace": self.namespace, **document["metadata"]}
                self.server.apply({**document, "metadata": meta})

    def exists(self, kind: str = "UpstreamPolicy", name: str = "monitoring") -> bool:
        items = self.server.list("fanout.dev/v1alpha1", kind, self.namespace)
        return name in {it["metadata"]["name"] for it in items}

    def get(self, kind: str = "UpstreamPolicy", name: str = "monitoring") -> dict[str, Any]:
        item: dict[str, Any] = self.server.get(self.manifest(kind, name))
        return item

    def manifest(self, kind: str, name: str) -> dict[str, Any]:
        meta = {"name": name, "namespace": self.namespace}
        return {"apiVersion": "fanout.dev/v1alpha1", "kind": kind, "metadata": meta}

    def set(self, **spec: str) -> None:
        """Change fields of the policy."""
        self.server.patch(self.get(), {"spec": spec})

    def read(self) -> DeclaredObjects:
        return ApiInventory(ListedObjects(self.connection)).read()

    def round(self) -> PassReport:
        """One round as user CONTROLLER, in a process of its own but for the finalizers."""
        records = self.fleet.root / self.fleet.state / "records.git"
        is_new = not records.exists()
        if is_new:
            create_bare(records)
        settings = Settings(
            context=CONTROLLER,
            kubeconfig=self.server.kubeconfig,
            state_dir=self.fleet.root / "controller",
            records=str(records),
            new_records=is_new,
            now_override=self.fleet.now,
            is_controller=True,
        )
        self.fleet.later(minutes=1)
        with open_program(settings) as program:
            declared = self.finalizers.add_missing(program.read_declared())
            mode = PassMode(namespace=self.namespace)
            report = run_pass(program.world, program.reconciler, declared, settings.now(), mode)
            self.finalizers.remove(report.pass_plan.completed_deletions)
        return report

    def rounds(self, number: int) -> None:
        for _ in range(number):
            self.round()

    def delete(self, kind: str = "UpstreamPolicy", name: str = "monitoring") -> None:
        self.server.delete(self.manifest(kind, name))

    def packages(self) -> list[str]:
        return [
            path.removesuffix("/Kptfile")
            for name in ("edge", "core")
            for path in self.fleet.repos[name].files()
            if path.endswith("/Kptfile")
        ]


@pytest.fixture
def cluster(base_server: KubeServer, kube_namespace: str, tmp_path: Path) -> World:
    return World(base_server, kube_namespace, tmp_path)


@pytest.fixture
def published(cluster: World) -> World:
    """Both sites are published."""
    cluster.rounds(4)
    assert cluster.packages() == ["sites/ams"]
    report(cluster)
    cluster.rounds(3)
    assert cluster.packages() == ["sites/ams", "sites/cph"]
    return cluster


def report(cluster: World) -> None:
    """Record evidence in Git, as a verb on files does."""
    path = cluster.fleet.root / "policies"
    for file in path.glob("*.yaml"):
        documents = list(yaml.safe_load_all(file.read_text()))
        for document in documents:
            document["metadata"]["namespace"] = cluster.namespace
        file.write_text(yaml.safe_dump_all(documents))
    done = cluster.fleet.report("dev", "v1", "passed", "-n", cluster.namespace)
    assert done.code == 0, done.err


def finalizers(item: dict[str, Any]) -> list[str]:
    names: list[str] = item["metadata"].get("finalizers", [])
    return names


def test_the_finalizer_is_present_before_the_first_draft(cluster: World):
    declared = cluster.read()
    assert cluster.finalizers.add_missing(declared) is declared
    assert finalizers(cluster.get()) == [FINALIZER]
    version = cluster.get()["metadata"]["resourceVersion"]
    cluster.rounds(3)
    assert cluster.get()["metadata"]["resourceVersion"] == version
    assert cluster.packages() == ["sites/ams"]


def test_a_deleted_policy_stays_until_somebody_confirms(published: World):
    published.delete()
    published.rounds(3)
    assert published.packages() == ["sites/ams", "sites/cph"]
    assert published.get()["metadata"]["deletionTimestamp"]
    published.set(removalLimit="100%")
    published.round()
    assert published.packages() == ["sites/ams"]  # level by level
    assert published.exists()
    published.round()
    assert published.packages() == []
    published.rounds(2)
    assert not published.exists()


def test_a_deleted_policy_asks_nobody_for_targets(published: World):
    published.delete()
    published.rounds(2)
    root = published.fleet.root
    result = published.fleet.run(
        *("explain", "monitoring", "-n", published.namespace, "--context", CONTROLLER),
        *("--kubeconfig", str(published.server.kubeconfig), "--state-dir", str(root / "reader")),
        *("--records", str(root / published.fleet.state / "records.git")),
        files=False,
    )
    assert "TooManyRemovals" in result.out
    assert "no target is in stage" not in result.out


def test_a_deleted_policy_with_orphan_goes_and_its_packages_stay(published: World):
    heads = [published.fleet.repos[name].refs()["refs/heads/main"] for name in ("edge", "core")]
    published.delete()
    published.round()
    published.set(deletionPolicy="Orphan")
    published.rounds(4)
    assert not published.exists()
    assert published.packages() == ["sites/ams", "sites/cph"]
    assert heads == [
        published.fleet.repos[name].refs()["refs/heads/main"] for name in ("edge", "core")
    ]


def test_a_policy_made_again_is_published_again_by_nobody(published: World):
    """Its records go on counting; what stayed with Orphan is not taken over unasked."""
    published.set(deletionPolicy="Orphan")
    published.delete()
    published.rounds(4)
    assert not published.exists()
    heads = published.fleet.refs()["core"]["refs/heads/main"]
    published.apply()
    published.rounds(4)
    assert published.fleet.refs()["core"]["refs/heads/main"] == heads
    assert len(published.fleet.repos["core"].tags()) == 1


def test_a_policy_that_wrote_nothing_goes_in_one_round(cluster: World):
    cluster.finalizers.add_missing(cluster.read())
    cluster.delete()
    assert cluster.exists()
    cluster.round()
    assert not cluster.exists()


def test_a_repository_that_does_not_respond_keeps_the_policy(published: World):
    published.set(removalLimit="100%")
    published.delete()
    core = published.fleet.repos["core"].path
    core.rename(core.with_name("away"))
    published.rounds(3)
    assert published.exists()
    core.with_name("away").rename(core)
    published.rounds(5)
    assert not published.exists()
    assert published.packages() == []


def test_a_variant_written_by_hand_goes_with_its_package(cluster: World):
    cluster.fleet.write("by-hand.yaml", BY_HAND)
    cluster.apply()
    cluster.rounds(4)
    assert finalizers(cluster.get("PackageVariant", "oslo")) == [FINALIZER]
    assert "hand/oslo" in cluster.packages()
    cluster.delete("PackageVariant", "oslo")
    cluster.rounds(3)
    assert not cluster.exists("PackageVariant", "oslo")
    assert cluster.packages() == ["sites/ams"]


def test_finalizers_of_others_stay(cluster: World):
    item = cluster.get()
    cluster.server.patch(item, {"metadata": {"finalizers": ["example.com/backup"]}})
    declared = cluster.read()
    cluster.finalizers.add_missing(declared)
    assert finalizers(cluster.get()) == ["example.com/backup", FINALIZER]
    cluster.delete()
    cluster.rounds(2)
    assert finalizers(cluster.get()) == ["example.com/backup"]


def test_an_inventory_shows_what_has_it(cluster: World):
    inventory = FinalizedInventory(
        ApiInventory(ListedObjects(cluster.connection)), cluster.finalizers
    )
    declared = inventory.read()
    assert finalizers(cluster.get()) == [FINALIZER]
    assert [it.metadata.name for it in declared.policies] == ["monitoring"]
    assert inventory.read() is declared


def test_an_inventory_leaves_out_what_has_it_not_and_stays_the_same_value(cluster: World):
    reader = RemovalFinalizers(open_connection(cluster.server.kubeconfig, "carol"))
    inventory = FinalizedInventory(ApiInventory(ListedObjects(cluster.connection)), reader)
    declared = inventory.read()
    assert declared.policies == ()
    assert inventory.read() is declared


def test_an_object_that_cannot_get_it_is_left_out_and_the_others_go_on(cluster: World):
    """Without it a deletion would leave packages behind."""
    declared = cluster.read()
    cluster.delete()  # nobody holds it, so it is gone
    cluster.fleet.write("by-hand.yaml", BY_HAND)
    cluster.fleet.remove("policy.yaml")
    cluster.apply()
    both = cluster.read()
    mixed = replace(both, policies=declared.policies)
    held = cluster.finalizers.add_missing(mixed)
    assert [it.metadata.name for it in held.policies] == []
    assert [it.metadata.name for it in held.variants] == ["oslo"]
    assert [(it.kind, it.name) for it in held.left_out] == [("UpstreamPolicy", "monitoring")]
    assert "fanout.dev/removal cannot be added" in str(held.faults[-1])


def test_without_the_right_to_patch_nothing_is_written(cluster: World):
    reader = RemovalFinalizers(open_connection(cluster.server.kubeconfig, "carol"))
    held = reader.add_missing(cluster.read())
    assert held.policies == ()
    [fault] = [str(it) for it in held.faults if FINALIZER in str(it)]
    assert 'cannot get resource "upstreampolicies" in API group "fanout.dev"' in fault

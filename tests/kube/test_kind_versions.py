"""Versions of kinds: each policy reads the version that it names, whatever others name."""

from collections.abc import Collection, Mapping
from typing import Any

from fanout.api.object_meta import GROUP
from fanout.declared.declared_objects import DeclaredObjects, key_of
from fanout.kube.api_inventory import ApiInventory
from fanout.kube.object_sources import ListedKind
from fanout.kube.resource_discovery import ResourceType, ServedKinds
from fanout.selection.cluster_objects import ObjectsByName, VersionedKind
from fanout.selection.target_selection import TargetInventory, select_targets

OWN = ("Repository", "UpstreamPolicy", "PackageVariant", "PromotionPolicy")
OWN_TYPES = [ResourceType(GROUP, "v1alpha1", it, it.lower(), is_namespaced=True) for it in OWN]
INFRA = "infra.example.com"
CLUSTER = (INFRA, "Cluster")
HEALTH = (INFRA, "Health")


def infra_types(kind: str, *versions: str) -> list[ResourceType]:
    return [ResourceType(INFRA, it, kind, kind.lower(), is_namespaced=True) for it in versions]


class PlayedServer:
    """An API server that serves kinds in several versions, and converts their objects."""

    def __init__(self, *policies: dict[str, Any]) -> None:
        self.policies = policies
        self.types = [*infra_types("Cluster", "v1", "v1beta1"), *infra_types("Health", "v1")]
        self.listed: list[str] = []
        self.expected: Collection[VersionedKind] = ()
        self.tier = "dev"
        self.number = 0

    def version(self) -> int:
        return self.number

    def served(self) -> ServedKinds:
        return ServedKinds([*OWN_TYPES, *self.types])

    def objects(self, kind: ListedKind) -> ObjectsByName:
        resource_type = kind.resource_type
        if resource_type.group == GROUP:
            policies = self.policies if resource_type.kind == "UpstreamPolicy" else ()
            return {(it["metadata"]["namespace"], it["metadata"]["name"]): it for it in policies}
        self.listed.append(f"{resource_type.kind} {resource_type.version}")
        return {(it, "ams"): self.build_cluster(it, resource_type) for it in ("one", "two")}

    def build_cluster(self, namespace: str, resource_type: ResourceType) -> dict[str, Any]:
        return {
            "apiVersion": resource_type.api_version,
            "kind": resource_type.kind,
            "metadata": {"namespace": namespace, "name": "ams", "labels": {"tier": self.tier}},
            "spec": {"fieldsOf": resource_type.version},
        }

    def retain(self, kinds: Collection[ListedKind]) -> None:
        pass

    def expect(self, kinds: Collection[VersionedKind]) -> None:
        self.expected = kinds


def inventory_of(server: PlayedServer) -> ApiInventory:
    return ApiInventory(server)  # type: ignore[arg-type]  # it has what the inventory asks of both


def policy(name: str, *versions: str, namespace: str = "one", created: int = 1, **template: Any):
    """Return a policy that chooses Clusters in these versions."""
    meta = {
        "name": name,
        "namespace": namespace,
        "creationTimestamp": f"2026-03-0{created}T09:00:00Z",
    }
    spec = {
        "upstream": {"repository": "up", "package": "web", "revision": {"semver": ">=1"}},
        "targets": [
            {
                "objectSelector": {"apiVersion": f"{INFRA}/{version}", "kind": "Cluster"},
                "template": {"stage": "dev", **template},
            }
            for version in versions
        ],
        "stages": [{"name": "dev"}],
    }
    api_version = f"{GROUP}/v1alpha1"
    return {"apiVersion": api_version, "kind": "UpstreamPolicy", "metadata": meta, "spec": spec}


def read_versions(declared: DeclaredObjects) -> Mapping[str, set[str]]:
    """Return the versions in which each policy sees its targets, by its name."""
    inventory = TargetInventory({}, declared.objects)
    return {
        f"{it.metadata.namespace}/{it.metadata.name}": {
            target.object["spec"]["fieldsOf"] for target in select_targets(it, inventory)[0]
        }
        for it in declared.policies
    }


def list_problems(declared: DeclaredObjects) -> list[str]:
    return [f"{it.where}: {it.problem}" for it in declared.faults if "serve" in it.problem]


def test_each_policy_sees_the_version_that_it_names():
    older = policy("older", "v1beta1")
    newer = policy("newer", "v1", created=2)
    others = policy("web", "v1", namespace="two", created=3)
    server = PlayedServer(older, newer, others)
    assert read_versions(inventory_of(server).read()) == {
        "one/older": {"v1beta1"},
        "one/newer": {"v1"},
        "two/web": {"v1"},
    }
    assert server.listed == ["Cluster v1", "Cluster v1beta1"]


def test_a_reference_without_a_version_refuses_nobody():
    injectors = [{"kind": "Cluster", "group": INFRA, "name": "ams"}]
    both = policy("both", "v1beta1", injectors=injectors)
    declared = inventory_of(PlayedServer(both)).read()
    assert read_versions(declared) == {"one/both": {"v1beta1"}}
    preferred = declared.objects.get(*CLUSTER, "one", "ams")
    assert preferred is not None
    assert preferred["apiVersion"] == f"{INFRA}/v1", "an injector without a version reads this one"


def test_a_kind_is_listed_once_where_one_version_is_named():
    server = PlayedServer(policy("first", "v1beta1"), policy("second", "v1beta1", created=2))
    declared = inventory_of(server).read()
    assert server.listed == ["Cluster v1beta1"]
    assert len(declared.objects) == 2


def test_a_version_that_is_not_served_holds_who_names_it_alone():
    server = PlayedServer(policy("lost", "v1alpha1"), policy("web", "v1", namespace="two"))
    declared = inventory_of(server).read()
    assert read_versions(declared) == {"two/web": {"v1"}}
    assert [it.name for it in declared.left_out] == ["lost"]
    [problem] = list_problems(declared)
    place = "UpstreamPolicy/one/lost: spec.targets[0].objectSelector.apiVersion: "
    served = "the API server serves kind Cluster of group infra.example.com as v1 or v1beta1"
    assert problem == f"{place}{served}, not as v1alpha1"
    assert server.expected == [(*CLUSTER, "v1alpha1")]
    [web] = declared.policies
    assert [*declared.find_unusable_targets(web)] == [], "all its targets were read"


def test_a_kind_without_a_group_that_is_not_served_is_expected():
    injectors = [{"kind": "Site", "name": "ams"}]
    server = PlayedServer(policy("web", "v1", injectors=injectors))
    inventory = inventory_of(server)
    assert inventory.read().policies == ()
    assert server.expected == [("", "Site", "")]
    server.types += infra_types("Site", "v1")
    server.number = 1
    assert len(inventory.read().policies) == 1
    assert server.expected == []


def test_a_changed_object_is_a_change_in_each_version_that_is_read():
    server = PlayedServer(policy("older", "v1beta1"), policy("newer", "v1", created=2))
    inventory = inventory_of(server)
    before = inventory.read().objects
    server.tier, server.number = "prod", 1
    after = inventory.read().objects
    changes = [*after.find_changes(before)]
    assert {it.kind for it in changes} == {CLUSTER}
    assert {it.present["apiVersion"] for it in changes if it.present} == {
        f"{INFRA}/v1",
        f"{INFRA}/v1beta1",
    }
    server.number = 2
    assert [*inventory.read().objects.find_changes(after)] == []


def test_an_open_injector_with_a_version_reads_that_version():
    """It names no kind, so that only the package tells which are injected."""
    injectors = [{"version": "v1beta1", "name": "ams"}, {"name": "ber"}]
    server = PlayedServer(policy("web", "v1beta1", injectors=injectors))
    server.types += infra_types("Health", "v1", "v1beta1")
    inventory = inventory_of(server)
    [web] = inventory.read().policies
    injected = {key_of(web): [CLUSTER, HEALTH]}
    assert inventory.require(injected)
    objects = inventory.read().objects
    for kind in (CLUSTER, HEALTH):
        for version in ("v1", "v1beta1"):
            value = objects.get(*kind, "one", "ams", version)
            assert value is not None
            assert value["spec"] == {"fieldsOf": version}
    assert not inventory.require(injected), "both have been read"

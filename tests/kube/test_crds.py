"""The CustomResourceDefinitions on a real kube-apiserver, as kubectl and its users see them."""

from collections.abc import Iterator

import pytest
import yaml
from kube.samples import KINDS, ROOT, read_samples
from kube_server import KubeError, KubeServer

pytestmark = pytest.mark.kube

PORCH_CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: packagevariants.config.porch.kpt.dev}
spec:
  group: config.porch.kpt.dev
  scope: Namespaced
  names: {kind: PackageVariant, plural: packagevariants, singular: packagevariant}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


def read_example(file: str, namespace: str):
    manifest = yaml.safe_load((ROOT / "tests/api/examples" / file).read_text(encoding="utf-8"))
    return in_namespace(manifest, namespace)


def in_namespace(manifest, namespace: str):
    """Return a copy in the namespace. Records in files need no name; there the server makes it."""
    meta = {"generateName": "sample-", **manifest.get("metadata", {}), "namespace": namespace}
    return {**manifest, "metadata": meta}


def read_identities(server: KubeServer) -> dict[str, tuple[int, str]]:
    return {
        crd["metadata"]["name"]: (crd["metadata"]["generation"], crd["metadata"]["resourceVersion"])
        for crd in server.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        if crd["spec"]["group"] == "fanout.dev"
    }


@pytest.mark.parametrize("option", ["--server-side=false", "--server-side=true"])
def test_definitions_that_are_applied_again_stay_as_they_are(
    server: KubeServer, printed_crds: str, option: str
):
    apply = ("apply", option, "-f", "-")
    server.kubectl(*apply, stdin=printed_crds)
    before = read_identities(server)
    assert len(before) == len(KINDS)
    server.kubectl(*apply, stdin=printed_crds)
    assert read_identities(server) == before


def test_definitions_are_established_and_structural(server: KubeServer):
    for crd in server.list("apiextensions.k8s.io/v1", "CustomResourceDefinition"):
        conditions = {it["type"]: it["status"] for it in crd["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}, crd["metadata"]


def test_every_sample_object_is_accepted(server: KubeServer, kube_namespace: str):
    samples = read_samples()
    assert len(samples) > 100
    assert {manifest["kind"] for _, manifest in samples} == KINDS
    refusals = []
    for file, manifest in samples:
        try:
            server.create(in_namespace(manifest, kube_namespace), dry_run=True)
        except KubeError as error:
            refusals.append((file, error.message))
    assert refusals == []


def test_kubectl_explains_fields(server: KubeServer):
    lines = server.kubectl("explain", "upstreampolicy.spec.stages").stdout.splitlines()
    assert lines[:6] == [
        "GROUP:      fanout.dev",
        "KIND:       UpstreamPolicy",
        "VERSION:    v1alpha1",
        "",
        "FIELD: stages <[]Object>",
        "",
    ]
    assert "  name\t<string> -required-" in lines


def test_kubectl_lists_all_kinds_by_their_category(server: KubeServer, kube_namespace: str):
    server.create(read_example("repository.yaml", kube_namespace))
    server.create(read_example("upstream-policy.yaml", kube_namespace))
    listed = server.kubectl("get", "fanout", "-o", "name", namespace=kube_namespace).stdout
    assert sorted(listed.splitlines()) == [
        "repository.fanout.dev/edge-eu",
        "upstreampolicy.fanout.dev/monitoring",
    ]


@pytest.fixture
def porch(server: KubeServer) -> Iterator[str]:
    """The kind of Porch that has the name of ours, for one test."""
    name = "packagevariants.config.porch.kpt.dev"
    server.kubectl("apply", "-f", "-", stdin=PORCH_CRD)
    server.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=60s")
    yield name
    server.kubectl("delete", "-f", "-", stdin=PORCH_CRD)


def test_porch_s_package_variants_are_beside_ours(
    server: KubeServer, kube_namespace: str, porch: str
):
    server.create(read_example("package-variant.yaml", kube_namespace))
    porch_variant = {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"name": "porch", "namespace": kube_namespace},
        "spec": {"upstream": {"repo": "blueprints", "package": "base", "revision": 1}},
    }
    server.create(porch_variant)

    def list_names(resource: str) -> list[str]:
        listed = server.kubectl("get", resource, "-o", "name", namespace=kube_namespace)
        return listed.stdout.splitlines()

    ours = ["packagevariant.fanout.dev/site"]
    assert list_names("packagevariants.fanout.dev") == ours
    assert list_names("pvar") == ours
    assert list_names("fanout") == ours
    theirs = ["packagevariant.config.porch.kpt.dev/porch"]
    assert list_names(porch) == theirs
    # As the page about migrating from Porch says: kubectl takes the first group by name.
    assert list_names("packagevariants") == theirs

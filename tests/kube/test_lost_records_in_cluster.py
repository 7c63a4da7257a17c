"""Records of a cluster that are lost, without a backup."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kube.twin import Twin, open_twin
from kube_server import KubeServer

from fanout.git.mirror import create_bare

pytestmark = pytest.mark.kube


@pytest.fixture
def twin(server: KubeServer, tmp_path: Path) -> Iterator[Twin]:
    with open_twin(server, tmp_path) as twin:
        yield twin


def test_a_sweep_over_exported_objects_begins_records_again(twin: Twin, tmp_path: Path):
    records = twin.fleet.records().path
    twin.fleet.run("sweep", "-n", twin.namespace)
    before = twin.ask("plan").out
    shutil.rmtree(records)
    for caches in ("state", "other"):  # else they know records that are missing now
        shutil.rmtree(twin.fleet.root / caches)
    create_bare(records)
    lost = twin.ask("plan")
    assert "run `fanout sweep --new-records --drafts-only -f EXPORTED_OBJECTS -n " in lost.err
    exported = tmp_path / "exported"
    exported.mkdir()
    kinds = "repositories.fanout.dev,upstreampolicies,promotionpolicies,clusters,configmaps"
    text = twin.server.kubectl("get", kinds, "-o", "yaml", namespace=twin.namespace).stdout
    (exported / "objects.yaml").write_text(text)
    own = twin.server.kubectl(
        *("get", "packagevariants.fanout.dev", "-o", "yaml"),
        *("--field-selector", "spec.policyRef.name="),
        namespace=twin.namespace,
    ).stdout
    (exported / "variants.yaml").write_text(own)
    begun = twin.fleet.run(
        "sweep", "--new-records", "--drafts-only", "-f", str(exported), "--records", str(records),
        files=False,
    )  # fmt: skip
    assert begun.code == 0, begun.err
    after = twin.ask("plan")
    assert (after.code, after.out) == (0, before)


def test_variants_without_a_policy_are_exported_alone(server: KubeServer, kube_namespace: str):
    def variant(name: str, **policy: object) -> dict[str, object]:
        spec = {
            "upstream": {"repository": "blueprints", "package": "web", "revision": {"tag": "v1"}},
            "downstream": {"repository": "edge", "package": name},
            **policy,
        }
        meta = {"name": name, "namespace": kube_namespace}
        return {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "PackageVariant",
            "metadata": meta,
            "spec": spec,
        }

    server.create(variant("own"))
    server.create(variant("made", policyRef={"name": "web"}))
    names = server.kubectl(
        *("get", "packagevariants.fanout.dev", "-o", "name"),
        *("--field-selector", "spec.policyRef.name="),
        namespace=kube_namespace,
    ).stdout
    assert names.split() == ["packagevariant.fanout.dev/own"]

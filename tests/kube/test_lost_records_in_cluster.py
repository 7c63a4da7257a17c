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
def twin(kube_server: KubeServer, crds: str, tmp_path: Path) -> Iterator[Twin]:
    with open_twin(kube_server, tmp_path) as twin:
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
    print(lost.err)
    assert "--new-records" in lost.err
    exported = tmp_path / "exported"
    exported.mkdir()
    kinds = "repositories.fanout.dev,upstreampolicies,promotionpolicies,clusters,configmaps"
    text = twin.server.kubectl("get", kinds, "-o", "yaml", namespace=twin.namespace).stdout
    (exported / "objects.yaml").write_text(text)
    begun = twin.fleet.run(
        "sweep", "--new-records", "--drafts-only", "-f", str(exported), "--records", str(records),
        files=False,
    )  # fmt: skip
    assert begun.code == 0, begun.err
    after = twin.ask("plan")
    assert (after.code, after.out) == (0, before)

"""Fixtures for tests on a real kube-apiserver."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kube_server import KubeServer, running_kube_server

if TYPE_CHECKING:
    from kube.record_fleet import Company


@pytest.fixture(scope="session")
def printed_crds() -> str:
    """Return what `fanout crds` prints."""
    command = [sys.executable, "-m", "fanout", "crds"]
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


@pytest.fixture(scope="session")
def crds(kube_server: KubeServer, printed_crds: str) -> KubeServer:
    """Return the server with the CustomResourceDefinitions installed."""
    kube_server.kubectl("apply", "-f", "-", stdin=printed_crds)
    kube_server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    return kube_server


@pytest.fixture(scope="session")
def record_server(
    tmp_path_factory: pytest.TempPathFactory, printed_crds: str
) -> Iterator[KubeServer]:
    """A server of its own with admission policies, which are for all namespaces.

    They are in force after a second in place of a minute; what lies before is refused all the same.
    """
    # Imported here because it loads fanout, which reads the environment.
    from kube.record_fleet import install

    from fanout.kube import admission_check

    with (
        running_kube_server(tmp_path_factory.mktemp("records") / "kubernetes") as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(admission_check, "IN_FORCE_AFTER", timedelta(seconds=1))
        install(server, printed_crds)
        yield server


@pytest.fixture
def company(record_server: KubeServer, tmp_path: Path) -> Iterator["Company"]:
    """A fleet with records in a namespace of its own; the records of others are deleted."""
    from kube.record_fleet import KINDS, Company

    meta = {"generateName": "test-"}
    created = record_server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    yield Company(record_server, created["metadata"]["name"], tmp_path)
    for kind in KINDS:
        for item in record_server.list("fanout.dev/v1alpha1", kind):
            record_server.delete({**item, "apiVersion": "fanout.dev/v1alpha1", "kind": kind})

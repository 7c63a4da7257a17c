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
    from kube.tenants import BeginController, CreateTenant


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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, printed_crds: str) -> Iterator[KubeServer]:
    """A server for the tests of one module, with fanout's kinds and that of the targets.

    A pass evaluates the policies of all namespaces, and a test may stop the server.
    """
    from kube.twin import CLUSTERS, DECLARED

    with running_kube_server(tmp_path_factory.mktemp("module") / "kubernetes") as server:
        server.kubectl("apply", "-f", "-", stdin=printed_crds + "---\n" + CLUSTERS)
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        # Lists of a new kind are refused for a moment, which kubectl waits for.
        server.kubectl("get", DECLARED, "--all-namespaces")
        yield server


@pytest.fixture(scope="module")
def base_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeServer]:
    """A server for one module with the base, where the controller has the rights of the base.

    It may also read Clusters and ConfigMaps.
    """
    from kube.tenants import install_base

    with running_kube_server(tmp_path_factory.mktemp("base") / "kubernetes") as server:
        install_base(server)
        yield server


@pytest.fixture
def tenant(base_server: KubeServer, tmp_path: Path) -> Iterator["CreateTenant"]:
    """Return a function that makes a fleet in a namespace of its own."""
    from kube.tenants import open_tenants

    with open_tenants(base_server, tmp_path) as create:
        yield create


@pytest.fixture
def begin(tenant: "CreateTenant") -> Iterator["BeginController"]:
    """Return a function that starts a controller with the records of a fleet."""
    from kube.tenants import run_controllers

    with run_controllers() as begin:
        yield begin


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

"""Fixtures for tests on a real kube-apiserver: one for all of them, in one of two states.

Its kinds, the roles of the base and the kind of the targets are installed once. The admission
policies are for all namespaces, so that a module asks for a server with them or without. Whatever
else a module or a test installs for the whole cluster it removes.
"""

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

# Fixtures import what they use because that loads fanout, which reads the environment.


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests that need admission policies come last: they are installed once."""
    items.sort(key=lambda it: "admission_server" in getattr(it, "fixturenames", ()))


@pytest.fixture(scope="session")
def printed_crds() -> str:
    """Return what `fanout crds` prints."""
    command = [sys.executable, "-m", "fanout", "crds"]
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


@pytest.fixture(scope="session")
def installed_server(kube_server: KubeServer) -> KubeServer:
    """Return the server of the session with the Kustomize base and the kind of the targets."""
    from kube.tenants import install_base

    install_base(kube_server)
    return kube_server


@pytest.fixture(scope="module")
def server(installed_server: KubeServer) -> KubeServer:
    """Return the server without admission policies: administrators write variants and records."""
    from kube.record_fleet import remove_admission

    remove_admission(installed_server)
    return installed_server


@pytest.fixture(scope="module")
def admission_server(installed_server: KubeServer) -> KubeServer:
    """Return the server with the base alone, whose admission policies are in force."""
    from kube.record_fleet import install_admission

    install_admission(installed_server)
    return installed_server


@pytest.fixture(scope="module")
def base_server(admission_server: KubeServer) -> Iterator[KubeServer]:
    """The server with the base, where the controller may read Clusters and ConfigMaps, too."""
    from kube.tenants import granted_tenants

    with granted_tenants(admission_server):
        yield admission_server


@pytest.fixture
def kube_namespace(kube_server: KubeServer) -> Iterator[str]:
    """The name of a new namespace. Afterwards the server is without objects of tests."""
    from kube.objects import open_namespace

    with open_namespace(kube_server) as namespace:
        yield namespace


@pytest.fixture(scope="module")
def empty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeServer]:
    """A server for one module of installations: before them nothing of fanout is there."""
    with running_kube_server(tmp_path_factory.mktemp("empty") / "kubernetes") as server:
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


@pytest.fixture(scope="module")
def record_server(admission_server: KubeServer) -> Iterator[KubeServer]:
    """The server where all users may record, by rights alone.

    In this process the policies are in force after a second in place of a minute; what lies before
    is refused all the same.
    """
    from kube.record_fleet import WRITER, await_age, granted

    from fanout.kube import pending_records

    with (
        granted(admission_server, WRITER, "create", "decisions.fanout.dev"),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(pending_records, "IN_FORCE_AFTER", timedelta(seconds=1))
        await_age(admission_server)
        yield admission_server


@pytest.fixture
def company(record_server: KubeServer, kube_namespace: str, tmp_path: Path) -> "Company":
    """Return a fleet with records in a namespace of its own."""
    from kube.record_fleet import Company

    return Company(record_server, kube_namespace, tmp_path)

"""Fixtures for tests on a real kube-apiserver."""

import subprocess
import sys

import pytest
from kube_server import KubeServer


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

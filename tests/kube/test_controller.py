"""`fanout controller` as a process on a real kube-apiserver."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kube.twin import Twin, open_twin
from kube_server import KubeServer, running_kube_server
from run_process import PLAIN, Running, run_processes

pytestmark = pytest.mark.kube


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, printed_crds: str) -> Iterator[KubeServer]:
    """A server of its own: a test stops it."""
    with running_kube_server(tmp_path_factory.mktemp("controller") / "kubernetes") as server:
        server.kubectl("apply", "-f", "-", stdin=printed_crds)
        yield server


@pytest.fixture
def twin(server: KubeServer, tmp_path: Path) -> Iterator[Twin]:
    with open_twin(server, tmp_path) as twin:
        yield twin


Start = Callable[..., Running]


@pytest.fixture
def start(twin: Twin) -> Iterator[Start]:
    with run_processes(FANOUT_NOW="") as begin:

        def begin_controller(*options: str, by: str = "admin") -> Running:
            shared = ["--kubeconfig", str(twin.server.kubeconfig), "--context", by]
            shared += ["--records", str(twin.fleet.root / "records.git"), "-n", twin.namespace]
            return begin(twin.fleet, *shared, *options, program=PLAIN, verb=("controller",))

        yield begin_controller


def annotate(twin: Twin, kind: str, name: str, value: str) -> None:
    twin.server.kubectl(
        "annotate",
        kind,
        name,
        f"reconcile.fanout.dev/requestedAt={value}",
        namespace=twin.namespace,
    )


def test_objects_become_drafts_and_a_changed_object_another_one(twin: Twin, start: Start):
    controller = start("--interval", "1h")
    edge = twin.fleet.repos["edge"]
    controller.until(lambda: len(edge.drafts()) == 2)
    before = edge.refs("refs/heads/drafts")
    meta = {"name": "ams", "namespace": twin.namespace}
    changed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    twin.server.patch(changed, {"data": {"retention": "30d"}})
    controller.until(lambda: edge.refs("refs/heads/drafts") != before)
    assert controller.end() == 0

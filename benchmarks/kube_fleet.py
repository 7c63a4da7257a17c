"""Fleet of the benchmarks of a cluster, with the same objects in files and in an API server."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import inputs
from benchmarks.inputs import Size
from fanout.kube.api_connection import ApiConnection, open_connection
from fanout.package.manifest import Manifest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))  # for the server

from kube_server import ADMIN, KubeServer

CONNECTIONS = 8  # to the API server at the same time
CLUSTERS = f"/apis/infra.example.com/v1/namespaces/{inputs.NAMESPACE}/clusters"
CONFIG_MAPS = f"/api/v1/namespaces/{inputs.NAMESPACE}/configmaps"
VARIANTS = f"/apis/fanout.dev/v1alpha1/namespaces/{inputs.NAMESPACE}/packagevariants"
# Lists of all kinds that fanout reads, in all namespaces.
LISTS = (
    *(
        f"/apis/fanout.dev/v1alpha1/{plural}"
        for plural in ("repositories", "upstreampolicies", "packagevariants", "promotionpolicies")
    ),
    "/apis/infra.example.com/v1/clusters",
    "/api/v1/configmaps",
)
_CLUSTER_CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusters.infra.example.com}
spec:
  group: infra.example.com
  scope: Namespaced
  names: {kind: Cluster, plural: clusters}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@dataclass(frozen=True, slots=True)
class KubeFleet:
    """Fleet whose objects are in files below `directory` and in an API server."""

    server: KubeServer
    directory: Path
    size: Size
    repeat: int  # runs of each command
    minutes: float  # duration of the heartbeats

    def clear(self) -> None:
        """Delete all variants, and replace the repositories with new ones."""
        remotes = self.directory / inputs.REMOTES
        inputs.copy_seed(self.directory / "seed.git", remotes, self.size.repositories)
        connection = self.connect()
        paths = [f"{VARIANTS}/{name}" for name in list_names(connection, VARIANTS)]
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            list(threads.map(lambda it: connection.send("DELETE", it), paths))

    @property
    def options(self) -> list[str]:
        """Options of fanout for the API server."""
        return ["--kubeconfig", str(self.server.kubeconfig), "--context", ADMIN]

    def fanout(self, *arguments: str) -> list[str]:
        """Return a command line of fanout."""
        return [sys.executable, "-m", "fanout", *arguments, "--now", inputs.NOW]

    def connect(self) -> ApiConnection:
        """Open a connection as an administrator."""
        return open_connection(self.server.kubeconfig, ADMIN)


def list_names(connection: ApiConnection, path: str) -> list[str]:
    """Return the names of all objects of a list."""
    return [it["metadata"]["name"] for it in connection.get(path)["items"]]


def create_objects(fleet: KubeFleet) -> None:
    """Create repositories and files, and their objects in the API server, and list every kind.

    The first list of a kind makes the API server load it, and can fail with status 429 until then.
    """
    directory, size, server = fleet.directory, fleet.size, fleet.server
    inputs.make_upstream(directory / inputs.UPSTREAM)
    inputs.make_seed(directory / "seed.git")
    inputs.copy_seed(directory / "seed.git", directory / inputs.REMOTES, size.repositories)
    inputs.write_objects(directory / "policies", size, str(directory))
    crds = subprocess.run(fleet.fanout("crds")[:-2], check=True, capture_output=True, text=True)
    server.kubectl("apply", "-f", "-", stdin=f"{crds.stdout}\n---\n{_CLUSTER_CRD}")
    server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    server.kubectl("create", "namespace", inputs.NAMESPACE)
    connection = fleet.connect()
    objects = _read_objects(directory / "policies")
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        while batch := list(islice(objects, 500)):
            list(threads.map(lambda it: connection.send("POST", _collection_path(it), it), batch))
    for path in LISTS:
        connection.get(path)


def _read_objects(directory: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(directory.glob("*.yaml")):
        for document in Manifest.parse_valid(path.read_bytes(), path.name).documents:
            yield document.value


def _collection_path(item: dict[str, Any]) -> str:
    plural = item["kind"].lower().removesuffix("y") + ("ies" if item["kind"][-1] == "y" else "s")
    group = "/apis/" if "/" in item["apiVersion"] else "/api/"
    return f"{group}{item['apiVersion']}/namespaces/{inputs.NAMESPACE}/{plural}"

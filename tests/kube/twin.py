"""A fleet of which the same objects are in files and in an API server."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from fleet import Fleet, Result
from kube.objects import open_namespace
from kube.record_fleet import wait_until
from kube_server import KubeServer

from fanout.declared.declared_objects import DeclaredObjects
from fanout.git.mirror import create_bare
from fanout.kube.api_connection import open_connection
from fanout.kube.api_inventory import ApiInventory
from fanout.kube.object_sources import ListedObjects

CLUSTERS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusters.infra.example.com}
spec:
  group: infra.example.com
  scope: Namespaced
  names: {kind: Cluster, plural: clusters, singular: cluster}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources: {status: {}}
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources: {status: {}}
"""


Sites = dict[str, tuple[str, str]] | None  # stage and repository by name; None: three


class Twin:
    """A fleet whose objects are in files and in the namespace of an API server."""

    def __init__(self, server: KubeServer, namespace: str, root: Path, sites: Sites = None) -> None:
        self.server, self.namespace = server, namespace
        self.fleet = Fleet.build(root, sites)
        self.move()
        self.apply()

    def move(self) -> None:
        """Write the namespace into all objects of the files."""
        for path in (self.fleet.root / "policies").glob("*.yaml"):
            documents = list(yaml.safe_load_all(path.read_text()))
            for document in documents:
                document["metadata"]["namespace"] = self.namespace
            path.write_text(yaml.safe_dump_all(documents))

    def apply(self) -> None:
        """Make the objects of the API server those of the files."""
        for path in sorted((self.fleet.root / "policies").glob("*.yaml")):
            for document in yaml.safe_load_all(path.read_text()):
                meta = {"namespace": self.namespace, **document["metadata"]}
                self.server.apply({**document, "metadata": meta})

    def ask(self, *line: str, by: str = "admin", records: bool = True) -> Result:
        """Run a command on the objects of the API server."""
        shared = [
            "--state-dir",
            str(self.fleet.root / "other"),
            "--now",
            self.fleet.now.isoformat(),
        ]
        shared += ["--kubeconfig", str(self.server.kubeconfig), "--context", by]
        if records:
            path = self.fleet.records().path
            if not path.exists():
                create_bare(path)
            shared += ["--records", str(path)]
        return self.fleet.run(*line, *shared, "-n", self.namespace, files=False)

    def show(self, *line: str) -> Result:
        """Run a command on the objects in the files."""
        return self.fleet.run(*line, "-n", self.namespace)

    def read(self, by: str = "admin") -> DeclaredObjects:
        """Read what the objects of the API server declare."""
        connection = open_connection(self.server.kubeconfig, by)
        return ApiInventory(ListedObjects(connection)).read()

    def grant(self, role: str, user: str) -> None:
        """Bind a user to a role with a right to Clusters, and wait until the server has noticed."""
        for document in yaml.safe_load_all(role):
            meta = {"namespace": self.namespace, **document["metadata"]}
            self.server.apply({**document, "metadata": meta})
        may = partial(self.server.may, user, "list", "clusters.infra.example.com", self.namespace)
        wait_until(may, f"{user} has no rights")

    def write_status(self, name: str, status: dict[str, Any]) -> None:
        """Write the status of a Cluster, as its controller does."""
        meta = {"name": name, "namespace": self.namespace}
        cluster = {"apiVersion": "infra.example.com/v1", "kind": "Cluster", "metadata": meta}
        self.server.apply({**cluster, "status": status}, subresource="status")


def install_clusters(server: KubeServer) -> None:
    """Install the kind of the targets, and wait until it is served."""
    server.kubectl("apply", "-f", "-", stdin=CLUSTERS)
    server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    # Lists of a new kind are refused for a moment, which kubectl waits for.
    server.kubectl("get", "clusters.infra.example.com", "--all-namespaces")


@contextmanager
def open_twin(server: KubeServer, root: Path, sites: Sites = None) -> Iterator[Twin]:
    """A twin in a namespace of its own. Afterwards the server is without objects of tests."""
    with open_namespace(server) as namespace:
        yield Twin(server, namespace, root, sites)

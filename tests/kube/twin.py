"""A fleet of which the same objects are in files and in an API server."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from fleet import Fleet, Result
from kube_server import KubeServer

from fanout.declared.declared_objects import DeclaredObjects
from fanout.git.mirror import create_bare
from fanout.kube.api_connection import open_connection
from fanout.kube.api_inventory import ApiInventory
from fanout.kube.object_listing import ListedObjects

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


# What people declare, as kubectl names it: with the group where Porch, whose objects a test
# installs, has a kind of that name.
DECLARED = (
    "upstreampolicies,packagevariants.fanout.dev,promotionpolicies,repositories.fanout.dev,"
    "clusters,configmaps"
)

Sites = dict[str, tuple[str, str]] | None  # stage and repository by name; None: three


class Twin:
    """A fleet whose objects are in files and in the namespace of an API server."""

    def __init__(self, server: KubeServer, namespace: str, root: Path, sites: Sites = None) -> None:
        self.server, self.namespace = server, namespace
        self.fleet = Fleet.build(root, sites)
        self.install_clusters()
        self.move()
        self.apply()

    def install_clusters(self) -> None:
        """Install the CustomResourceDefinition of the targets."""
        self.server.kubectl("apply", "-f", "-", stdin=CLUSTERS)
        condition = "--for=condition=Established"
        self.server.kubectl("wait", condition, "crd", "--all", "--timeout=60s")

    def move(self) -> None:
        """Write the namespace into all objects of the files."""
        for path in (self.fleet.root / "policies").glob("*.yaml"):
            documents = list(yaml.safe_load_all(path.read_text()))
            for document in documents:
                document["metadata"]["namespace"] = self.namespace
            path.write_text(yaml.safe_dump_all(documents))

    def apply(self) -> None:
        """Make the objects of the API server those of the files."""
        directory = str(self.fleet.root / "policies")
        self.server.kubectl("apply", "-f", directory, namespace=self.namespace)

    def drop_finalizers(self) -> None:
        """Let all objects go when they are deleted; no controller runs any more."""
        for kind in ("UpstreamPolicy", "PackageVariant"):
            for item in self.server.list("fanout.dev/v1alpha1", kind, self.namespace):
                manifest = {"apiVersion": "fanout.dev/v1alpha1", "kind": kind, **item}
                self.server.patch(manifest, {"metadata": {"finalizers": None}})

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
        self.server.kubectl("apply", "-f", "-", stdin=role, namespace=self.namespace)
        question = ("auth", "can-i", "list", "clusters.infra.example.com")
        end = time.monotonic() + 60
        while self.server.kubectl(
            *question, by=user, namespace=self.namespace, check=False
        ).returncode:
            assert time.monotonic() < end, f"{user} has no rights"
            time.sleep(0.05)

    def write_status(self, name: str, status: dict[str, Any]) -> None:
        """Write the status of a Cluster, as its controller does."""
        meta = {"name": name, "namespace": self.namespace}
        cluster = {"apiVersion": "infra.example.com/v1", "kind": "Cluster", "metadata": meta}
        self.server.apply({**cluster, "status": status}, subresource="status")


@contextmanager
def open_twin(server: KubeServer, root: Path, sites: Sites = None) -> Iterator[Twin]:
    """A twin in a namespace of its own, whose objects are deleted at the end."""
    meta = {"generateName": "test-"}
    created = server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    made = Twin(server, created["metadata"]["name"], root, sites)
    try:
        yield made
    finally:
        made.drop_finalizers()
        # Objects with errors are faults of every plan.
        policies = str(made.fleet.root / "policies")
        options = ("--ignore-not-found", "--wait=false", "-f", policies)
        server.kubectl("delete", *options, namespace=made.namespace, check=False)
        made.drop_finalizers()

"""Objects of our kinds as an API server gets them, and namespaces that are emptied."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kube_server import KubeError, KubeServer

from fanout.api.kind_registry import CUSTOM_RESOURCES

API_VERSION = "fanout.dev/v1alpha1"
KINDS = tuple(model.__name__ for model in CUSTOM_RESOURCES)
Named = tuple[str, dict[str, Any]]


def sent(data: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return the object as JSON in the namespace; files may leave names of records out."""
    written = json.loads(json.dumps(data, default=lambda instant: instant.isoformat()))
    meta = {**written.get("metadata", {}), "namespace": namespace}
    if written.get("kind") in ("Evidence", "Approval", "Decision"):
        meta.setdefault("generateName", "r-")
    return {**written, "metadata": meta}


def refusal_of(server: KubeServer, manifest: dict[str, Any]) -> str:
    try:
        server.create(manifest, dry_run=True)
    except KubeError as error:
        return error.message
    except KeyError:
        return "there is no such kind"
    return ""


@contextmanager
def open_namespace(server: KubeServer) -> Iterator[str]:
    """Yield the name of a new namespace; at the end nothing of any test is left on the server."""
    try:
        yield create_namespace(server)
    finally:
        clear_objects(server)


def create_namespace(server: KubeServer) -> str:
    """Create a namespace; return its name."""
    meta = {"generateName": "test-"}
    created = server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    return str(created["metadata"]["name"])


def clear_objects(server: KubeServer) -> None:
    """Delete the objects of all tests.

    In all namespaces, whoever created them: a controller, and a pass, reads all of them.
    """
    server.clear("coordination.k8s.io/v1", "Lease")  # those of the server itself are made again
    used = [server.clear(API_VERSION, kind) for kind in KINDS]
    used.append(server.clear("infra.example.com/v1", "Cluster"))
    for namespace in set().union(*used):
        server.ask("DELETE", f"/api/v1/namespaces/{namespace}/configmaps")

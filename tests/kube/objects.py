"""Objects of our kinds as an API server gets them."""

import json
from typing import Any

from kube_server import KubeError, KubeServer

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

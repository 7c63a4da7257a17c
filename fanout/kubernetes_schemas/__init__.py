"""Schemas of the built-in Kubernetes kinds, one file per Kubernetes version, shipped with fanout.

They are loaded when a pipeline asks for them. `tools/kubernetes_schemas.py` generates them from
what Kubernetes publishes.
"""

import gzip
import json
from importlib.resources import files

from fanout.variants.function_requests import Response, ResponseError, SchemaRequest
from fanout.variants.schema_validation import KindSchemas

_SUFFIX = ".json.gz"


def list_versions() -> tuple[str, ...]:
    """Return the Kubernetes versions with schemas, oldest first."""
    names = (item.name for item in files(__package__).joinpath("schemas").iterdir())
    versions = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
    return tuple(sorted(versions, key=lambda text: [int(part) for part in text.split(".")]))


def read_schemas(request: SchemaRequest) -> Response:
    """Return the schemas of one version (default: the newest), or a ResponseError without any."""
    available = list_versions()
    version = request.version or available[-1]
    if version not in available:
        return ResponseError(
            f"there are no schemas for Kubernetes {version}",
            f"use a version from {available[0]} to {available[-1]}",
        )
    file = files(__package__).joinpath("schemas", f"{version}{_SUFFIX}")
    data = json.loads(gzip.decompress(file.read_bytes()))
    return KindSchemas(version, data["kinds"], data["definitions"])

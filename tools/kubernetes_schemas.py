"""Writer of `fanout/kubernetes_schemas/schemas/` from the OpenAPI definitions of Kubernetes.

    python tools/kubernetes_schemas.py DIRECTORY

The directory is the one that the wheel of `kubernetes-validate` ships as `kubernetes-json-schema`.
Descriptions and keywords that no check reads are omitted, so that a version takes a few kilobytes
instead of megabytes. The source is the strict schemas; the others only lack
`additionalProperties: false`.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "fanout" / "kubernetes_schemas" / "schemas"
KEPT = ("type", "properties", "required", "items", "additionalProperties", "enum", "oneOf", "$ref")
KINDS = "x-kubernetes-group-version-kind"
PREFIX = "#/$defs/"

Definitions = dict[str, dict[str, Any]]


def reduce_schema(schema: Any) -> Any:
    """Return the schema with the keywords that the checks read."""
    if not isinstance(schema, dict):
        return schema
    reduced = {key: schema[key] for key in KEPT if key in schema}
    if "properties" in reduced:
        reduced["properties"] = {
            name: reduce_schema(it) for name, it in reduced["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if key in reduced:
            reduced[key] = reduce_schema(reduced[key])
    if "oneOf" in reduced:
        reduced["oneOf"] = [reduce_schema(it) for it in reduced["oneOf"]]
    if "$ref" in reduced:
        reduced["$ref"] = reduced["$ref"].removeprefix(PREFIX)
    return reduced


def index_kinds(definitions: Definitions) -> dict[str, str]:
    """Return the names of definitions by kind, as `apps/v1/Deployment`.

    Definitions of several kinds, such as DeleteOptions, are omitted.
    """
    names = {}
    for name, schema in definitions.items():
        kinds = schema.get(KINDS, [])
        if len(kinds) == 1:
            [kind] = kinds
            version = f"{kind['group']}/{kind['version']}" if kind["group"] else kind["version"]
            names[f"{version}/{kind['kind']}"] = name
    return dict(sorted(names.items()))


def pack_version(source: Path) -> bytes:
    """Return the shipped file of one Kubernetes version."""
    definitions: Definitions = json.loads(source.read_bytes())["$defs"]
    data = {
        "kinds": index_kinds(definitions),
        "definitions": {name: reduce_schema(it) for name, it in sorted(definitions.items())},
    }
    text = json.dumps(data, separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), mtime=0)


def main(directory: Path) -> None:
    """Write a file for each version in the directory, and remove all earlier files."""
    TARGET.mkdir(exist_ok=True)
    for old in TARGET.glob("*.json.gz"):
        old.unlink()
    for source in sorted(directory.glob("v*-local-strict/_definitions.json")):
        version = ".".join(source.parent.name.removeprefix("v").split(".")[:2])
        (TARGET / f"{version}.json.gz").write_bytes(pack_version(source))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Writes `fanout/kubernetes_schemas/schemas/` from the OpenAPI definitions of Kubernetes.

    python tools/kubernetes_schemas.py DIRECTORY

The directory is the one that the wheel of `kubernetes-validate` ships as `kubernetes-json-schema`.
What people read (descriptions) and what nothing here asks for is left out, so that a version takes
a few kilobytes instead of megabytes. The strict schemas are taken: the others are the same without
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


def reduced(schema: Any) -> Any:
    """The schema with what the checks ask for."""
    if not isinstance(schema, dict):
        return schema
    found = {key: schema[key] for key in KEPT if key in schema}
    if "properties" in found:
        found["properties"] = {name: reduced(one) for name, one in found["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in found:
            found[key] = reduced(found[key])
    if "oneOf" in found:
        found["oneOf"] = [reduced(one) for one in found["oneOf"]]
    if "$ref" in found:
        found["$ref"] = found["$ref"].removeprefix(PREFIX)
    return found


def kinds_of(definitions: Definitions) -> dict[str, str]:
    """`apps/v1/Deployment` → the definition's name; what is of all kinds is of none."""
    found = {}
    for name, schema in definitions.items():
        said = schema.get(KINDS, [])
        if len(said) == 1:
            row = said[0]
            version = f"{row['group']}/{row['version']}" if row["group"] else row["version"]
            found[f"{version}/{row['kind']}"] = name
    return dict(sorted(found.items()))


def packed(source: Path) -> bytes:
    """One version, as it is shipped."""
    definitions: Definitions = json.loads(source.read_bytes())["$defs"]
    data = {
        "kinds": kinds_of(definitions),
        "definitions": {name: reduced(one) for name, one in sorted(definitions.items())},
    }
    text = json.dumps(data, separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), mtime=0)


def main(directory: Path) -> None:
    """Write a file for each version that is there, and remove those of others."""
    TARGET.mkdir(exist_ok=True)
    for old in TARGET.glob("*.json.gz"):
        old.unlink()
    for source in sorted(directory.glob("v*-local-strict/_definitions.json")):
        version = ".".join(source.parent.name.removeprefix("v").split(".")[:2])
        (TARGET / f"{version}.json.gz").write_bytes(packed(source))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""JSON Schemas of the kinds, so that an editor checks and completes what people write."""

from collections.abc import Mapping
from typing import Any

from fanout.api.kinds import KINDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schemas() -> Mapping[str, dict[str, Any]]:
    """A JSON Schema (draft 2020-12) by kind. What only the rules know is not in them."""
    return {name: _schema(name) for name in KINDS}


def _schema(name: str) -> dict[str, Any]:
    schema = KINDS[name].model_json_schema(by_alias=True, mode="validation")
    required = {"apiVersion", "kind"} | set(schema.get("required", ()))
    ordered = [field for field in schema["properties"] if field in required]
    return {"$schema": DIALECT} | schema | {"required": ordered}

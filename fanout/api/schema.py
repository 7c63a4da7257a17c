"""JSON Schemas: of the kinds, so that an editor checks what people write, and of the views."""

from collections.abc import Mapping
from typing import Any

from fanout.api.kinds import KINDS
from fanout.api.meta import Model
from fanout.api.simulation import PLAYED
from fanout.api.views import VIEWS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schemas() -> Mapping[str, dict[str, Any]]:
    """A JSON Schema (draft 2020-12) by kind. What only the rules know is not in them."""
    schemas = {name: _schema(model) for name, model in KINDS.items()}
    return schemas | {view.__name__: _schema(view) for view in (*VIEWS, *PLAYED)}


def _schema(model: type[Model]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True, mode="validation")
    required = {"apiVersion", "kind"} | set(schema.get("required", ()))
    ordered = [field for field in schema["properties"] if field in required]
    return {"$schema": DIALECT} | schema | {"required": ordered}

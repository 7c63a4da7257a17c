"""JSON Schemas for editors, and the descriptions that they and the pages are made of."""

import json

import pytest

from fanout.api.crd_schemas import build_json_schemas
from fanout.api.kind_registry import KINDS, unwrap_model

SCHEMAS = build_json_schemas()


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_json_and_closed(kind):
    schema = json.loads(json.dumps(SCHEMAS[kind]))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    assert {"apiVersion", "kind"} <= set(schema["required"])
    assert schema["properties"]["kind"]["const"] == kind


def models(model, seen):
    if model in seen:
        return
    seen.append(model)
    for field in model.model_fields.values():
        if inner := unwrap_model(field.annotation):
            models(inner, seen)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described(kind):
    seen = []
    models(KINDS[kind], seen)
    bare = [
        f"{model.__name__}.{name}"
        for model in seen
        for name, field in model.model_fields.items()
        if not field.description
    ]
    assert bare == []

"""Schemas of the kinds, and their reference pages, generated from the models.

Structural: no references, no alternatives of types, no closed objects (the API server
prunes unknown fields). Rules that cannot be expressed that way are left to validation.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fanout.api import durations
from fanout.api.field_errors import FieldPath
from fanout.api.kind_registry import CUSTOM_RESOURCES, KINDS
from fanout.api.object_meta import GROUP, VERSION, KRMObject, Model
from fanout.api.output_views import SCENARIO_RESULTS, VIEWS
from fanout.api.publication_view import HISTORY_VIEWS
from fanout.api.validators.unsupported_fields import (
    UNSUPPORTED_FIELDS,
    UnsupportedField,
    is_unsupported,
)
from fanout.values import frozen

# keywords with the same meaning in a structural schema
_STRUCTURAL_KEYWORDS = (
    "type",
    "description",
    "format",
    "pattern",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
)

_AGE = ("Age", "date", ".metadata.creationTimestamp")
_READY = ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status')
_REASON = ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason')
_SUBJECT_COLUMNS = (("Policy", "string", ".spec.policy"), ("Stage", "string", ".spec.stage"))
_COLUMNS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "Repository": (_READY, ("URL", "string", ".spec.url"), ("Branch", "string", ".spec.branch")),
    "UpstreamPolicy": (
        _READY,
        _REASON,
        ("Upstream", "string", ".spec.upstream.package"),
        ("Suspended", "boolean", ".spec.suspend"),
    ),
    "PackageVariant": (
        _READY,
        _REASON,
        ("Repository", "string", ".spec.downstream.repository"),
        ("Package", "string", ".spec.downstream.package"),
        ("Stage", "string", ".spec.stage"),
    ),
    "PromotionPolicy": (
        _READY,
        ("Schedule", "string", ".spec.schedule"),
        ("Zone", "string", ".spec.timeZone"),
    ),
    "Evidence": (
        *_SUBJECT_COLUMNS,
        ("Check", "string", ".spec.check"),
        ("Status", "string", ".spec.status"),
        ("Revision", "string", ".spec.revision"),
    ),
    "Approval": (
        *_SUBJECT_COLUMNS,
        ("Check", "string", ".spec.check"),
        ("Revision", "string", ".spec.revision"),
    ),
    "Decision": (
        *_SUBJECT_COLUMNS,
        ("Action", "string", ".spec.action"),
        ("Revision", "string", ".spec.revision"),
        ("Reason", "string", ".spec.reason"),
    ),
}


def build_crds() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions (v1) of all kinds but the configuration."""
    return [_build_crd(model) for model in CUSTOM_RESOURCES]


def _build_crd(model: type[KRMObject]) -> dict[str, Any]:
    kind, plural = model.__name__, model.PLURAL
    names: dict[str, Any] = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        "categories": ["fanout"],
    }
    if model.SHORT_NAMES:
        names["shortNames"] = list(model.SHORT_NAMES)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": names,
            "versions": [_build_version(model)],
        },
    }


def _build_version(model: type[KRMObject]) -> dict[str, Any]:
    columns = (*_COLUMNS[model.__name__], _AGE)
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object_schema(model)},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path} for name, kind, path in columns
        ],
    }


def _object_schema(model: type[KRMObject]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True, mode="validation")
    structural_schema = to_structural(schema, schema.get("$defs", {}))
    # the API server has its own schema of these three and refuses another
    for field in ("apiVersion", "kind"):
        structural_schema["properties"][field] = {"type": "string"}
    structural_schema["properties"]["metadata"] = {"type": "object"}
    structural_schema["properties"]["status"]["x-kubernetes-preserve-unknown-fields"] = True
    # The API server itself requires apiVersion, kind and metadata, which are replaced above.
    structural_schema["required"] = ["spec"]
    return structural_schema


def to_structural(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a JSON Schema of pydantic to a structural one. `definitions` are its `$defs`."""
    resolved = _resolve_schema(schema, definitions)
    result = {key: resolved[key] for key in _STRUCTURAL_KEYWORDS if key in resolved}
    # Kubernetes refuses a `type` beside int-or-string, so the alternatives are not merged either.
    if resolved.get("x-kubernetes-int-or-string"):
        result.pop("type", None)
        return result | {"x-kubernetes-int-or-string": True}
    if "const" in resolved:
        result["enum"] = [resolved["const"]]
    if "exclusiveMinimum" in resolved:
        result |= {"minimum": resolved["exclusiveMinimum"], "exclusiveMinimum": True}
    # Scalars only: the API server would write defaults of lists and objects into every stored
    # object.
    default = resolved.get("default")
    if isinstance(default, (str, int)) and default != "":  # "" is as if absent
        result["default"] = default
    if "items" in resolved:
        result["items"] = to_structural(resolved["items"], definitions)
    for values in _map_value_schemas(resolved):
        result["additionalProperties"] = to_structural(values, definitions)
    if "properties" in resolved:
        result["properties"] = {
            name: to_structural(field, definitions)
            for name, field in resolved["properties"].items()
        }
        if resolved.get("required"):
            result["required"] = list(resolved["required"])
    return result


def _map_value_schemas(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schema of a map's values. Kubernetes cannot express a pattern for its keys."""
    if isinstance(schema.get("additionalProperties"), Mapping):
        return [schema["additionalProperties"]]
    return list(schema.get("patternProperties", {}).values())[:1]


def _resolve_schema(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without references and without `or null`. Keywords beside these win."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_resolve_schema(definitions[name], definitions), **siblings}
    if "anyOf" in schema and not schema.get("x-kubernetes-int-or-string"):
        choices = [_resolve_schema(choice, definitions) for choice in schema["anyOf"]]
        siblings = {key: value for key, value in schema.items() if key != "anyOf"}
        return {
            **_join_choices([item for item in choices if item.get("type") != "null"]),
            **siblings,
        }
    return dict(schema)


def _join_choices(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """Join alternatives of text types into one schema; they have no pattern in common."""
    if len(choices) == 1:
        return choices[0]
    assert all(choice.get("type") == "string" for choice in choices), choices
    return {"type": "string"}


JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def build_json_schemas() -> Mapping[str, dict[str, Any]]:
    """Return a JSON Schema (draft 2020-12) by kind or view. Rules across fields are not in them."""
    schemas = {name: _build_json_schema(model) for name, model in KINDS.items()}
    return schemas | {
        view.__name__: _build_json_schema(view)
        for view in (*VIEWS, *HISTORY_VIEWS, *SCENARIO_RESULTS)
    }


def _build_json_schema(model: type[Model]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True, mode="validation")
    # The models have defaults for these two, but in a file they must be written.
    required = {"apiVersion", "kind"} | set(schema.get("required", ()))
    ordered = [field for field in schema["properties"] if field in required]
    return {"$schema": JSON_SCHEMA_DIALECT} | schema | {"required": ordered}


_TABLE_HEAD = ("| field | type | default | description |", "|---|---|---|---|")
# the page of another kind has their fields
_DOCUMENTED_ELSEWHERE = {("Scenario", ("spec", "stages", 0)), ("Scenario", ("spec", "promotion"))}
_COMMON_FIELDS = ("apiVersion", "kind", "metadata", "status")  # alike in all kinds


def build_kind_page(kind: str) -> str:
    """Return the page of a kind: the supported fields, then the unsupported ones."""
    model = KINDS[kind]
    schema = model.model_json_schema(by_alias=True, mode="validation")
    root_schema = to_structural(schema, schema.get("$defs", {}))
    lines = [f"# {kind}", "", root_schema["description"], "", "```yaml"]
    lines += ["apiVersion: fanout.dev/v1alpha1", f"kind: {kind}", "```", ""]
    if model.SHORT_NAMES:
        lines += [f"Short name: `{'`, `'.join(model.SHORT_NAMES)}`.", ""]
    lines += ["## Fields", "", *_TABLE_HEAD]
    own_fields = {
        name: field
        for name, field in root_schema["properties"].items()
        if name not in _COMMON_FIELDS
    }
    lines += _FieldTable(kind).rows(root_schema | {"properties": own_fields}, ())
    return "\n".join([*lines, *_unsupported_sections(kind)]) + "\n"


@frozen
class _FieldTable:
    """Table of the supported fields of a kind."""

    kind: str

    def rows(self, schema: Mapping[str, Any], path: FieldPath) -> Iterator[str]:
        """Yield one row for each field below an object, followed by rows of inner fields."""
        for name, field in schema["properties"].items():
            field_path: FieldPath = (*path, name)
            if is_unsupported(self.kind, field_path):
                continue
            default = "required" if name in schema.get("required", ()) else _format_default(field)
            description = field["description"].replace("|", "\\|")
            yield (
                f"| `{_format_reference_path(field_path)}` | {self.type_name(field, field_path)}"
                f" | {default} | {description} |"
            )
            # Entries of a list have no row of their own: the walk goes down to their fields at
            # once.
            while "items" in field:
                field_path, field = (*field_path, 0), field["items"]  # noqa: PLW2901 - one step down
            if "properties" in field and (self.kind, field_path) not in _DOCUMENTED_ELSEWHERE:
                yield from self.rows(field, field_path)

    def type_name(self, field: Mapping[str, Any], path: FieldPath) -> str:
        """Return the type of a field in a word, or its allowed values."""
        if field.get("x-kubernetes-int-or-string"):
            return "number or percentage"
        if "enum" in field:
            usable = [
                value for value in field["enum"] if not is_unsupported(self.kind, path, value)
            ]
            return ", ".join(f"`{_format_schema_value(value)}`" for value in usable)
        if field["type"] == "array":
            return f"list of {self.type_name(field['items'], (*path, 0))}"
        if "additionalProperties" in field:
            return f"map of {self.type_name(field['additionalProperties'], path)}"
        return (
            "duration" if field.get("pattern") == durations.DURATION_PATTERN else str(field["type"])
        )


def _format_reference_path(path: FieldPath) -> str:
    return ".".join("[]" if part == 0 else str(part) for part in path).replace(".[]", "[]")


def _format_default(field: Mapping[str, Any]) -> str:
    return f"`{_format_schema_value(field['default'])}`" if "default" in field else ""


def _format_schema_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unsupported_sections(kind: str) -> list[str]:
    lines: list[str] = []
    for heading, is_former in (("Not supported yet", False), ("Not supported any more", True)):
        rows = [
            row for row in UNSUPPORTED_FIELDS if row.kind == kind and row.is_former is is_former
        ]
        if rows:
            introduction = "Refused by name wherever they are written."
            lines += ["", f"## {heading}", "", introduction, "", *_unsupported_items(rows)]
    return lines


def _unsupported_items(rows: Iterable[UnsupportedField]) -> Iterator[str]:
    for row in rows:
        values = ", ".join(f"`{value}`" for value in row.values)
        remedy = f"; {row.remedy}" if row.is_former else ""
        yield f"* `{row.path}`{f': {values}' if values else ''} ({row.explanation}{remedy})"

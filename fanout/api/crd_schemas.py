"""Schemas of the kinds, generated from the models.

Structural: no references, no alternatives of types, no closed objects (the API server
prunes unknown fields). Rules that cannot be expressed that way are left to validation.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api import durations
from fanout.api.crd_rules import SchemaRule, build_rules, duration_rule
from fanout.api.field_errors import FieldPath
from fanout.api.kind_registry import CUSTOM_RESOURCES, KINDS
from fanout.api.object_meta import GROUP, VERSION, KRMObject
from fanout.api.object_statuses import build_resource_schema
from fanout.api.output_views import SCENARIO_RESULTS, VIEWS
from fanout.api.publication_view import HISTORY_VIEWS
from fanout.api.validators.unsupported_fields import is_unsupported
from fanout.api.view_base import build_view_schema

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
    "minProperties",
    "maxProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
)

_STATUS_BOUNDS = {"maxItems": 1_000, "maxProperties": 1_000, "maxLength": 32_768}
_AGE = ("Age", ".metadata.creationTimestamp")
_READY = ("Ready", '.status.conditions[?(@.type=="Ready")].status')
_REASON = ("Reason", '.status.conditions[?(@.type=="Ready")].reason')
_MESSAGE = ("Message", '.status.conditions[?(@.type=="Ready")].message')
_SUSPENDED = ("Suspended", '.status.conditions[?(@.type=="Suspended")].status')
_SUBJECT_COLUMNS = (("Policy", ".spec.policy"), ("Stage", ".spec.stage"))
# Of a record the reasons alone tell all: `Recorded` or why it is not, `Effective` or why it is not.
_RECORD_STATE = (
    ("State", '.status.conditions[?(@.type=="Recorded")].reason'),
    ("Effect", '.status.conditions[?(@.type=="Effective")].reason'),
)
_RECORD_DETAILS = (
    ("Record", ".status.record"),
    ("Message", '.status.conditions[?(@.type=="Recorded")].message'),
)
_COLUMNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Repository": (_READY, _REASON, ("URL", ".spec.url"), ("Branch", ".spec.branch")),
    "UpstreamPolicy": (_READY, _REASON, ("Upstream", ".spec.upstream.package"), _SUSPENDED),
    "PackageVariant": (
        _READY,
        _REASON,
        ("Repository", ".spec.downstream.repository"),
        ("Package", ".spec.downstream.package"),
        ("Stage", ".spec.stage"),
        ("State", ".status.state"),
        ("Published", ".status.published.revision"),
        ("Draft", ".status.draft.revision"),
    ),
    "PromotionPolicy": (
        _READY,
        _REASON,
        ("Schedule", ".spec.schedule"),
        ("Zone", ".spec.timeZone"),
    ),
    "Evidence": (
        *_SUBJECT_COLUMNS,
        ("Check", ".spec.check"),
        ("Status", ".spec.status"),
        ("Revision", ".spec.revision"),
        *_RECORD_STATE,
    ),
    "Approval": (
        *_SUBJECT_COLUMNS,
        ("Check", ".spec.check"),
        ("Revision", ".spec.revision"),
        *_RECORD_STATE,
    ),
    "Decision": (
        *_SUBJECT_COLUMNS,
        ("Action", ".spec.action"),
        ("Revision", ".spec.revision"),
        *_RECORD_STATE,
        ("Reason", ".spec.reason"),
    ),
}
# Columns of `kubectl get -o wide` alone.
_WIDE_COLUMNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Repository": (_MESSAGE,),
    "UpstreamPolicy": (_MESSAGE,),
    "PackageVariant": (("Branch", ".status.draft.branch"), _MESSAGE),
    "PromotionPolicy": (_MESSAGE,),
    **dict.fromkeys(("Evidence", "Approval", "Decision"), _RECORD_DETAILS),
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
    columns = [*_COLUMNS[kind], _AGE, *_WIDE_COLUMNS[kind]]
    first_wide = len(_COLUMNS[kind]) + 1
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object_schema(model)},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {
                "name": name,
                "type": "date" if name == "Age" else "string",
                "jsonPath": path,
                **({"priority": 1} if place >= first_wide else {}),
            }
            for place, (name, path) in enumerate(columns)
        ],
    }
    if model.SELECTABLE:
        version["selectableFields"] = [{"jsonPath": f".{model.SELECTABLE}"}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _object_schema(model: type[KRMObject]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True, mode="validation")
    structural_schema = to_structural(schema, schema.get("$defs", {}))
    # the API server has its own schema of these three and refuses another
    for field in ("apiVersion", "kind"):
        structural_schema["properties"][field] = {"type": "string"}
    structural_schema["properties"]["metadata"] = {"type": "object"}
    structural_schema["properties"]["status"] = build_status_schema(model)
    # The API server itself requires apiVersion, kind and metadata, which are replaced above.
    structural_schema["required"] = ["spec"]
    for path, node in _walk_schema(structural_schema, ()):
        if "enum" in node:
            node["enum"] = [
                it for it in node["enum"] if not is_unsupported(model.__name__, path, it)
            ]
    for rule in build_rules(model):
        _add_rule(structural_schema, rule)
    for path, node in _walk_schema(structural_schema, ()):
        if node.get("pattern") == durations.DURATION_PATTERN:
            dotted = ".".join("[*]" if part == 0 else str(part) for part in path)
            _add_rule(structural_schema, duration_rule(dotted.replace(".[*]", "[*]")))
    return structural_schema


def build_status_schema(model: type[KRMObject]) -> dict[str, Any]:
    """Return the schema of a status. fanout alone writes it, so its bounds are general ones."""
    schema = build_resource_schema(model.__name__)
    status = to_structural(schema, schema.get("$defs", {}))
    for _, node in _walk_schema(status, ()):
        node.pop("default", None)  # what fanout did not write is not known
        if "pattern" not in node:
            node.pop("format", None)  # of instants in views, which were texts
        for keyword, is_meant in (
            ("maxItems", node.get("type") == "array"),
            ("maxProperties", "additionalProperties" in node),
            ("maxLength", node.get("type") == "string" and not {"enum", "format"} & node.keys()),
        ):
            if is_meant:
                node.setdefault(keyword, _STATUS_BOUNDS[keyword])
    return status


def _walk_schema(
    schema: dict[str, Any], path: FieldPath
) -> Iterator[tuple[FieldPath, dict[str, Any]]]:
    """Yield every schema inside a structural one with its path; entries of lists have index 0."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from _walk_schema(field, (*path, name))
    if "items" in schema:
        yield from _walk_schema(schema["items"], (*path, 0))
    if "additionalProperties" in schema:
        yield from _walk_schema(schema["additionalProperties"], (*path, "*"))


def _add_rule(schema: dict[str, Any], rule: SchemaRule) -> None:
    node = schema
    for step in filter(None, rule.path.replace("[*]", ".[*]").split(".")):
        node = node["items"] if step == "[*]" else node["properties"][step]
    entry = {"rule": rule.expression, "message": rule.message}
    node.setdefault("x-kubernetes-validations", []).append(entry)
    for field in rule.fields:
        node["properties"][field].pop("default", None)


def to_structural(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a JSON Schema of pydantic to a structural one. `definitions` are its `$defs`."""
    resolved = _resolve_schema(schema, definitions)
    result = {key: resolved[key] for key in _STRUCTURAL_KEYWORDS if key in resolved}
    # Kubernetes refuses a `type` beside int-or-string, so the alternatives are not merged either.
    if resolved.get("x-kubernetes-int-or-string"):
        result.pop("type", None)
        bounds = {
            key: value
            for choice in resolved["anyOf"]
            for key, value in choice.items()
            if key in ("minimum", "pattern", "maxLength")
        }
        return result | bounds | {"x-kubernetes-int-or-string": True}
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
    # The schema of a map's values. Kubernetes cannot express a pattern for its keys.
    values = resolved.get("additionalProperties")
    if not isinstance(values, Mapping):
        values = next(iter(resolved.get("patternProperties", {}).values()), None)
    if values is not None:
        result["additionalProperties"] = to_structural(values, definitions)
    # The API server drops an empty mapping, and `kubectl apply --server-side` would then conflict.
    if resolved.get("properties"):
        result["properties"] = {
            name: to_structural(field, definitions)
            for name, field in resolved["properties"].items()
        }
        if resolved.get("required"):
            result["required"] = list(resolved["required"])
    return result


def _resolve_schema(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without references and without `or null`. Keywords beside these win."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_resolve_schema(definitions[name], definitions), **siblings}
    if "anyOf" in schema and not schema.get("x-kubernetes-int-or-string"):
        choices = [_resolve_schema(choice, definitions) for choice in schema["anyOf"]]
        siblings = {key: value for key, value in schema.items() if key != "anyOf"}
        alternatives = [item for item in choices if item.get("type") != "null"]
        if len(alternatives) == 1:
            return {**alternatives[0], **siblings}
        # Types of text: they have no pattern in common.
        assert all(item.get("type") == "string" for item in alternatives), alternatives
        return {"type": "string", **siblings}
    return dict(schema)


JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def build_json_schemas() -> Mapping[str, dict[str, Any]]:
    """Return a JSON Schema (draft 2020-12) by kind or view. Rules across fields are not in them."""
    schemas = {
        name: _complete_schema(model.model_json_schema(by_alias=True, mode="validation"))
        for name, model in KINDS.items()
    }
    return schemas | {
        view.__name__: _complete_schema(build_view_schema(view))
        for view in (*VIEWS, *HISTORY_VIEWS, *SCENARIO_RESULTS)
    }


def _complete_schema(schema: dict[str, Any]) -> dict[str, Any]:
    # The classes have defaults for these two, but in a file they must be written.
    required = {"apiVersion", "kind"} | set(schema.get("required", ()))
    ordered = [field for field in schema["properties"] if field in required]
    return {"$schema": JSON_SCHEMA_DIALECT} | schema | {"required": ordered}

"""The kinds as CustomResourceDefinitions, with the structural schemas that Kubernetes wants.

Structural: no references, no alternatives of types, no closed objects (the API server prunes what
it does not know). What cannot be said that way is left to validation.
"""

from collections.abc import Mapping
from typing import Any

from fanout.api.kinds import CUSTOM_RESOURCES
from fanout.api.meta import GROUP, VERSION, KRMObject

# keywords with the same meaning in a structural schema
_KEPT = (
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
_ABOUT = (("Policy", "string", ".spec.policy"), ("Stage", "string", ".spec.stage"))
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
        *_ABOUT,
        ("Check", "string", ".spec.check"),
        ("Status", "string", ".spec.status"),
        ("Revision", "string", ".spec.revision"),
    ),
    "Approval": (
        *_ABOUT,
        ("Check", "string", ".spec.check"),
        ("Revision", "string", ".spec.revision"),
    ),
    "Decision": (
        *_ABOUT,
        ("Action", "string", ".spec.action"),
        ("Revision", "string", ".spec.revision"),
        ("Reason", "string", ".spec.reason"),
    ),
}


def crds() -> list[dict[str, Any]]:
    """CustomResourceDefinitions (apiextensions.k8s.io/v1) of all kinds but the configuration."""
    return [_crd(model) for model in CUSTOM_RESOURCES]


def _crd(model: type[KRMObject]) -> dict[str, Any]:
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
            "versions": [_version(model)],
        },
    }


def _version(model: type[KRMObject]) -> dict[str, Any]:
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
    whole = structural(schema, schema.get("$defs", {}))
    # the API server has its own schema of these three and refuses another
    for field in ("apiVersion", "kind"):
        whole["properties"][field] = {"type": "string"}
    whole["properties"]["metadata"] = {"type": "object"}
    whole["properties"]["status"]["x-kubernetes-preserve-unknown-fields"] = True
    whole["required"] = ["spec"]
    return whole


def structural(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema of pydantic as a structural one; `definitions` are its ``$defs``."""
    whole = _resolved(schema, definitions)
    result = {key: whole[key] for key in _KEPT if key in whole}
    if whole.get("x-kubernetes-int-or-string"):
        result.pop("type", None)
        return result | {"x-kubernetes-int-or-string": True}
    if "const" in whole:
        result["enum"] = [whole["const"]]
    if "exclusiveMinimum" in whole:
        result |= {"minimum": whole["exclusiveMinimum"], "exclusiveMinimum": True}
    default = whole.get("default")
    if isinstance(default, (str, int)) and default != "":  # "" is as if absent
        result["default"] = default
    if "items" in whole:
        result["items"] = structural(whole["items"], definitions)
    for values in _values(whole):
        result["additionalProperties"] = structural(values, definitions)
    if "properties" in whole:
        result["properties"] = {
            name: structural(field, definitions) for name, field in whole["properties"].items()
        }
        if whole.get("required"):
            result["required"] = list(whole["required"])
    return result


def _values(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The schema of a map's values; Kubernetes has no way to say what its keys look like."""
    if isinstance(schema.get("additionalProperties"), Mapping):
        return [schema["additionalProperties"]]
    return list(schema.get("patternProperties", {}).values())[:1]


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without reference and without `or null`; what stands beside these wins."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_resolved(definitions[name], definitions), **beside}
    if "anyOf" in schema and not schema.get("x-kubernetes-int-or-string"):
        choices = [_resolved(choice, definitions) for choice in schema["anyOf"]]
        beside = {key: value for key, value in schema.items() if key != "anyOf"}
        return {**_joined([item for item in choices if item.get("type") != "null"]), **beside}
    return dict(schema)


def _joined(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """One schema for texts of several kinds: a name or nothing has no pattern in common."""
    if len(choices) == 1:
        return choices[0]
    assert all(choice.get("type") == "string" for choice in choices), choices
    return {"type": "string"}

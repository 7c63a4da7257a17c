"""Base of views and statuses: values that become plain data, and the parts that all share."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import Verdict
from fanout.api.object_meta import API_VERSION, yaml_name
from fanout.values import Instant, Value, build_schema, doc, field, list_fields, write_json


class ConditionStatus(StrEnum):
    """Status of a condition, as in Kubernetes."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


def status_of(*, is_true: bool) -> ConditionStatus:
    """Return the status of a condition that is known to hold, or not to."""
    return ConditionStatus.TRUE if is_true else ConditionStatus.FALSE


# Schemas list values in the order of meaning; derived ones would be in that of the alphabet.
ConditionStatuses = Annotated[ConditionStatus, doc(type="string", enum=[*ConditionStatus])]


def label_verdict(verdict: Verdict) -> str:
    """Return the verdict as output shows it; files and records have it in lower case."""
    return verdict.name.capitalize()


INTERNAL = doc(internal=True)
"""Marks a field of a view that no output shows."""


class ViewModel(Value, rename=yaml_name, forbid_unknown_fields=True):
    """Base of views and their parts: snake_case attributes, camelCase on the wire."""


def dump_view(view: ViewModel, *, nulls: bool = False) -> dict[str, Any]:
    """Return a view as plain data; fields that are None are left out, unless `nulls`."""
    data = {}
    for name, shown in _list_shown(view.__class__):
        value = getattr(view, name)
        if value is not None or nulls:
            data[shown] = value if value.__class__ in _PLAIN else _dump(value, nulls=nulls)
    return data


def dump_views(views: Iterable[ViewModel]) -> list[dict[str, Any]]:
    """Return several views as plain data."""
    return list(map(dump_view, views))


# Most values of a view: lists of a large fleet have some hundred thousand of them.
_PLAIN = frozenset({str, int, bool, NoneType})


def _dump(value: Any, *, nulls: bool) -> Any:
    match value:
        case _ if value.__class__ in _PLAIN:
            return value
        case ViewModel():
            return dump_view(value, nulls=nulls)
        case tuple() | list():
            return [_dump(item, nulls=nulls) for item in value]
        case dict():
            return {str(key): _dump(item, nulls=nulls) for key, item in value.items()}
        case Verdict():
            return label_verdict(value)
        case datetime():
            return format_instant(value)
    return str(value)  # of an enumeration


@cache
def _list_shown(model: type[ViewModel]) -> tuple[tuple[str, str], ...]:
    """Return the fields of a class that views show, each with its name on the wire."""
    return tuple(
        (it.name, it.encode_name)
        for it in list_fields(model)
        if INTERNAL not in getattr(it.type, "__metadata__", ())
    )


_VERDICT_SCHEMA: Mapping[str, Any] = {
    "description": "Verdict as output shows it; files and records have it in lower case.",
    "type": "string",
    "enum": list(map(label_verdict, Verdict)),
}


_REFERENCE = re.compile(r'"#/\$defs/(\w+)"')


def build_view_schema(view: type[ViewModel]) -> dict[str, Any]:
    """Return the JSON Schema of a view; classes of its fields are in `$defs`."""
    schema = build_schema(view)
    classes = schema["$defs"]
    for node in (schema, *classes.values()):
        fields = node.get("properties", {})
        for name in [it for it, kept in fields.items() if "internal" in kept]:
            del fields[name]
        if "required" in node:
            node["required"] = [it for it in node["required"] if it in fields]
    if "Verdict" in classes:
        classes["Verdict"] = _VERDICT_SCHEMA
    # Classes of fields that no output shows are left out.
    while unnamed := classes.keys() - set(_REFERENCE.findall(write_json(schema).decode())):
        schema["$defs"] = classes = {key: it for key, it in classes.items() if key not in unnamed}
    return schema


class RequestView(ViewModel):
    """Pull request with drafts."""

    repository: Annotated[str, doc("Name of the downstream Repository object.")]
    number: Annotated[int, doc("Number of the pull request.")]
    url: Annotated[str, doc("Address of its page on the forge.")]
    state: Annotated[str, doc("State of the pull request: `open`, `closed` or `merged`.")]


class ViewMeta(ViewModel):
    """Name, namespace and labels of a view."""

    name: Annotated[str, doc("Name of the view, unique in its list.")]
    namespace: Annotated[str, doc("Namespace of the policy.")]
    labels: Annotated[
        dict[str, str],
        doc(
            "Labels of the object that is shown (the target's object, the draft's"
            " variant, the stage's policy), and those of fanout: `fanout.dev/policy`,"
            " `fanout.dev/stage`, `fanout.dev/repository`."
        ),
    ] = field(default_factory=dict)


class DraftMeta(ViewMeta):
    """Name, namespace, labels and time of the commit of a draft."""

    creation_timestamp: Annotated[
        Instant | None,
        doc(
            "Time of the draft's commit, in RFC 3339: that of the upstream commit,"
            " or of the branch's head if that is later; null before it is written."
        ),
    ] = None


class View(ViewModel, kw_only=True):
    """Base of all views of a policy's parts; subclasses add `spec` and `status`."""

    api_version: Annotated[
        Literal["fanout.dev/v1alpha1"], doc("Version of the API; always `fanout.dev/v1alpha1`.")
    ] = API_VERSION
    metadata: Annotated[ViewMeta, doc("Name, namespace and labels of the view.")]


class TargetReference(ViewModel):
    """Target of a policy, and the names by which commands accept it."""

    policy: Annotated[
        str, doc("Name of the UpstreamPolicy; empty for a manually written PackageVariant.")
    ]
    target: Annotated[str, doc("Key of the target within the policy.")]
    target_name: Annotated[
        str,
        doc(
            "Shortest name of the target that is unique in the policy; commands"
            " accept it in place of the variant's name."
        ),
    ]


class VariantReference(TargetReference):
    """Variant of a target, and its stage."""

    variant: Annotated[str, doc("Name of the variant.")]
    stage: Annotated[str, doc("Name of the stage that the variant is assigned to.")]

"""Base of views and statuses: values that become plain data, and the parts that all share."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Annotated, Any

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import Verdict
from fanout.api.object_meta import API_VERSION, yaml_name
from fanout.api.table_column import TableColumn
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
    constants, fields = _list_shown(view.__class__)
    data: dict[str, Any] = dict(constants)
    for name, shown in fields:
        if (value := getattr(view, name)) is not None or nulls:
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
def _list_shown(model: type[ViewModel]) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """Return what all of a class show alike, and its shown fields with their names on the wire."""
    return (
        {"apiVersion": API_VERSION, "kind": model.__name__} if issubclass(model, View) else {},
        tuple(
            (it.name, it.encode_name)
            for it in list_fields(model)
            if INTERNAL not in getattr(it.type, "__metadata__", ())
        ),
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
    if issubclass(view, View):
        constants = {
            "apiVersion": ("Version of the API", API_VERSION),
            "kind": ("Kind of the object", view.__name__),
        }
        shared = {
            name: {"description": f"{noun}; always `{text}`.", "enum": [text], "default": text}
            for name, (noun, text) in constants.items()
        }
        schema["properties"] = {**shared, **schema["properties"]}
    return schema


class View(ViewModel):
    """Base of what is printed as an object: the name of the class is its `kind`."""


# Fields that several views have.
Candidate = Annotated[
    str, doc("Name of the revision that the stage is to take next, or has taken.")
]
InputDigest = Annotated[str, doc("Digest of the inputs that the package was rendered from.")]
NextChange = Annotated[
    Instant | None,
    doc("Next time when the state can change without action, in RFC 3339; null if there is none."),
]
PackagePath = Annotated[str, doc("Path of the package, relative to the root of the repository.")]
PolicyName = Annotated[
    str, doc("Name of the UpstreamPolicy; empty for a manually written PackageVariant.")
]
RepositoryName = Annotated[str, doc("Name of the downstream Repository object.")]
RevisionName = Annotated[str, doc("Name of the upstream revision.")]
StageName = Annotated[str, doc("Name of the stage.")]
StateCounts = Annotated[dict[str, int], doc("Number of variants in each state, by state.")]
VariantStateName = Annotated[
    str,
    doc(
        "State of the variant: `Drafted`, `Released`, `Proposed`, `Verifying`,"
        " `Ready`, `Failed`, `Suspended`, `Held` or `Skipped`."
    ),
]
VerdictsByRevision = Annotated[
    dict[str, Verdict], doc("Verdict of the stage for each revision, by name of the revision.")
]


class RequestView(ViewModel):
    """Pull request with drafts."""

    repository: RepositoryName
    number: Annotated[int, doc("Number of the pull request.")]
    url: Annotated[str, doc("Address of its page on the forge.")]
    state: Annotated[str, doc("State of the pull request: `open`, `closed` or `merged`.")]


REQUEST_COLUMN = TableColumn(
    "PULL REQUEST",  # the addresses of those with the drafts of a stage, or with one draft
    lambda item: ",".join(
        str(it["url"])
        for it in item["status"].get("requests") or [item["status"].get("request")]
        if it
    ),
    wide=True,
)


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


PartMeta = Annotated[ViewMeta, doc("Name, namespace and labels of the view.")]


class TargetReference(ViewModel):
    """Target of a policy, and the names by which commands accept it."""

    policy: PolicyName
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

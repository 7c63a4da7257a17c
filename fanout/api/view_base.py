"""Parts that all views share: metadata, holds, conditions, and words for verdicts."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import Verdict
from fanout.api.object_meta import API_VERSION, yaml_name
from fanout.api.text_fields import LABEL_VALUE
from fanout.values import Value, build_schema, doc, field, list_fields


class VerdictLabel(StrEnum):
    """Verdict as output shows it; files and records have it in lower case."""

    PASSED = "Passed"
    FAILED = "Failed"
    PENDING = "Pending"


class ConditionStatus(StrEnum):
    """Status of a condition, as in Kubernetes."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


# Schemas list values in the order of meaning; derived ones would be in that of the alphabet.
Verdicts = Annotated[VerdictLabel, doc(type="string", enum=[*VerdictLabel])]
ConditionStatuses = Annotated[ConditionStatus, doc(type="string", enum=[*ConditionStatus])]


def label_verdict(verdict: Verdict) -> VerdictLabel:
    """Return the verdict as output shows it."""
    return VerdictLabel[verdict.name]


INTERNAL = doc(internal=True)
"""Marks a field of a view that no output shows."""


class ViewModel(Value, rename=yaml_name, forbid_unknown_fields=True):
    """Base of views and their parts: snake_case attributes, camelCase on the wire."""


def dump_view(view: ViewModel) -> dict[str, Any]:
    """Return a view as plain data; fields that are None are left out."""
    return {
        shown: _dump(value)
        for name, shown in _list_shown(view.__class__)
        if (value := getattr(view, name)) is not None
    }


def _dump(value: Any) -> Any:
    match value:
        case ViewModel():
            return dump_view(value)
        case datetime():
            return format_instant(value)
        case Mapping():
            return {str(key): _dump(item) for key, item in value.items()}
        case tuple() | list():
            return [_dump(item) for item in value]
        case StrEnum():
            return value.value
    return value


@cache
def _list_shown(model: type[ViewModel]) -> tuple[tuple[str, str], ...]:
    """Return the fields of a class that views show, each with its name on the wire."""
    return tuple(
        (it.name, it.encode_name)
        for it in list_fields(model)
        if INTERNAL not in getattr(it.type, "__metadata__", ())
    )


def build_view_schema(view: type[ViewModel]) -> dict[str, Any]:
    """Return the JSON Schema of a view; classes of its fields are in `$defs`."""
    schema = build_schema(view)
    for node in (schema, *schema["$defs"].values()):
        node["properties"] = {
            name: it for name, it in node.get("properties", {}).items() if "internal" not in it
        }
    return schema


class ViewCondition(ViewModel):
    """One condition, in the form of Kubernetes."""

    type: Annotated[
        str,
        doc(
            "Type of the condition: `Ready`, `Reconciling`, `Stalled` or another one of fanout.",
            pattern=LABEL_VALUE,
            max_length=63,
        ),
    ]
    status: Annotated[
        ConditionStatuses,
        doc("Whether the condition holds: `True`, `False` or `Unknown`."),
    ]
    reason: Annotated[
        str, doc("Reason as one CamelCase word; the index of reasons lists all values.")
    ]
    message: Annotated[str, doc("Explanation of the reason as one sentence.")] = ""
    last_transition_time: Annotated[
        str | None,
        doc(
            "Time since which the reason is on record, in RFC 3339; null if no record or commit"
            " has it."
        ),
    ] = None
    observed_generation: Annotated[
        int | None,
        doc(
            "Generation of the object that the condition is about; absent for objects that no"
            " API server stored."
        ),
    ] = None


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
        str | None,
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

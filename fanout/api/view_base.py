"""Parts that all views share: metadata, holds, conditions, and words for verdicts."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from fanout.api.gate_vocabulary import Verdict
from fanout.api.object_meta import API_VERSION, yaml_name
from fanout.api.text_fields import LABEL_VALUE
from fanout.values import Value, as_data, doc, field


class VerdictLabel(StrEnum):
    """Verdict as output shows it; files and records have it in lower case."""

    PASSED = "Passed"
    FAILED = "Failed"
    PENDING = "Pending"


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


# Schemas list values in the order of meaning; derived ones would be in that of the alphabet.
Verdicts = Annotated[VerdictLabel, doc(type="string", enum=[*VerdictLabel])]
ConditionStatuses = Annotated[ConditionStatus, doc(type="string", enum=[*ConditionStatus])]


def label_verdict(verdict: Verdict) -> VerdictLabel:
    """Return the verdict as output shows it."""
    return VerdictLabel[verdict.name]


class ViewModel(Value, rename=yaml_name, forbid_unknown_fields=True):
    """Base of views and their parts: snake_case attributes, camelCase on the wire."""


def dump_view(view: ViewModel) -> dict[str, Any]:
    """Return a view as plain data; fields that are None are left out."""
    data: dict[str, Any] = _without_none(as_data(view))
    return data


def _without_none(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _without_none(it) for name, it in data.items() if it is not None}
    return [_without_none(it) for it in data] if isinstance(data, list | tuple) else data


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


class HoldView(ViewModel):
    """Reason why a stage, target or draft is blocked."""

    reason: Annotated[
        str, doc("Reason as one CamelCase word; the index of reasons lists all values.")
    ]
    message: Annotated[str, doc("Explanation of the reason as one sentence.")]
    who: Annotated[str, doc("Person or group that can resolve it.")] = ""
    since: Annotated[str | None, doc("Time since which it applies, in RFC 3339.")] = None
    until: Annotated[
        str | None, doc("Time when it ends without action, in RFC 3339; null if it needs action.")
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

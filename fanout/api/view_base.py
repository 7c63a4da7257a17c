"""Parts that all views share: metadata, holds, conditions, and words for verdicts."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from fanout.api.gate_vocabulary import Verdict
from fanout.api.object_meta import API_VERSION, Model


class VerdictLabel(StrEnum):
    """Verdict as output shows it; files and records have it in lower case."""

    PASSED = "Passed"
    FAILED = "Failed"
    PENDING = "Pending"


def label_verdict(verdict: Verdict) -> VerdictLabel:
    """Return the verdict as output shows it."""
    return VerdictLabel[verdict.name]


class HoldView(Model):
    """Reason why a stage, target or draft is blocked."""

    reason: str = Field(
        description="Reason as one CamelCase word; the index of reasons lists all values."
    )
    message: str = Field(description="Explanation of the reason as one sentence.")
    who: str = Field(default="", description="Person or group that can resolve it.")
    since: str | None = Field(default=None, description="Time since which it applies, in RFC 3339.")
    until: str | None = Field(
        default=None,
        description="Time when it ends without action, in RFC 3339; null if it needs action.",
    )


class RequestView(Model):
    """Pull request with drafts."""

    repository: str = Field(description="Name of the downstream Repository object.")
    number: int = Field(description="Number of the pull request.")
    url: str = Field(description="Address of its page on the forge.")
    state: str = Field(description="State of the pull request: `open`, `closed` or `merged`.")


class ViewMeta(Model):
    """Name, namespace and labels of a view."""

    name: str = Field(description="Name of the view, unique in its list.")
    namespace: str = Field(description="Namespace of the policy.")
    labels: dict[str, str] = Field(
        default={},
        description="Labels of the object that is shown (the target's object, the draft's"
        " variant, the stage's policy), and those of fanout: `fanout.dev/policy`,"
        " `fanout.dev/stage`, `fanout.dev/repository`.",
    )


class DraftMeta(ViewMeta):
    """Name, namespace, labels and time of the commit of a draft."""

    creation_timestamp: str | None = Field(
        default=None,
        description="Time of the draft's commit, in RFC 3339: that of the upstream commit,"
        " or of the branch's head if that is later; null before it is written.",
    )


class View(Model):
    """Base of all views of a policy's parts; subclasses add `spec` and `status`."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(
        default=API_VERSION, description="Version of the API; always `fanout.dev/v1alpha1`."
    )
    metadata: ViewMeta = Field(description="Name, namespace and labels of the view.")

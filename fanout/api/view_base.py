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

    reason: str = Field(description="Why, in one CamelCase word of a closed list.")
    message: str = Field(description="Why, in a sentence.")
    who: str = Field(default="", description="Who can do something about it.")
    since: str | None = Field(default=None, description="Since when; RFC 3339.")
    until: str | None = Field(default=None, description="When it ends by itself; RFC 3339.")


class ViewMeta(Model):
    """Name, namespace and labels of a view."""

    name: str = Field(description="A name for people, unique in its list.")
    namespace: str = Field(description="The namespace of the policy.")
    labels: dict[str, str] = Field(
        default={},
        description="Those of what it shows: the target's object, the draft's variant, the stage's"
        " policy; and fanout's own: `fanout.dev/policy`, `fanout.dev/stage`,"
        " `fanout.dev/repository`.",
    )


class DraftMeta(ViewMeta):
    """Name, namespace, labels and time of the commit of a draft."""

    creation_timestamp: str | None = Field(
        default=None,
        description="The time of its commit, RFC 3339: that of upstream's commit, or of the"
        " branch's head if it is later. Left out before it is written.",
    )


class View(Model):
    """Base of all views of a policy's parts; subclasses add `spec` and `status`."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    metadata: ViewMeta = Field(description="Name, namespace and labels.")

"""Records: evidence, approvals and decisions of people and machines.

Kept for ever, never changed.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field
from pydantic.config import JsonDict

from fanout.api.durations import Instant
from fanout.api.gate_vocabulary import Action, ConflictWinner, OverridableGate, Verdict
from fanout.api.object_meta import (
    KRMObject,
    Model,
    ObjectStatus,
    ObservedStatus,
    RecordMeta,
    kind_field,
    listed,
    optional,
)
from fanout.api.text_fields import (
    MAX_ENTRIES,
    MAX_NAMES,
    CommitId,
    ConflictKey,
    Distinct,
    Link,
    Name,
    OptionalName,
    RecordName,
    RevisionName,
)

IMMUTABLE: JsonDict = {
    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "a record never changes"}]
}


class RecordSubject(Model):
    """Subject of a record: a policy and its stage, or variants that were written by hand."""

    policy: OptionalName = optional(
        "Name of the UpstreamPolicy; empty if the variants were written manually.", default=""
    )
    stage: OptionalName = optional("Name of the stage of the policy.", default="")
    variants: Distinct[Name] = listed(
        "Names of the variants; default: all of the stage.", MAX_NAMES
    )


class EvidenceSpec(RecordSubject):
    """Result of a check, for one revision or commit."""

    check: Name = Field(description="Name of the check.")
    status: Verdict = Field(description="Result of the check.")
    revision: RevisionName | None = optional(
        "Upstream revision that the evidence is about; excludes `commit`."
    )
    commit: CommitId | None = optional(
        "Downstream commit that the evidence is about; excludes `revision`."
    )
    link: Link = optional("URL with more information.", default="", max_length=2048)


class ApprovalSpec(RecordSubject):
    """Approval of drafts, or of removals, by one person and by their trees."""

    check: Name = Field(description="Name of an approval check under `requires` of the stage.")
    revision: RevisionName | None = optional(
        "Upstream revision of the approved drafts; default: none, if removals are approved."
    )
    trees: Distinct[CommitId] = listed(
        "Git trees of the approved drafts; of removals, the root trees of the heads of"
        " their branches.",
        MAX_NAMES,
    )
    revokes: RecordName = optional("Name of an earlier Approval that this one revokes.", default="")


class DecisionSpec(RecordSubject):
    """Decision of a person, with its reason."""

    action: Action = Field(description="Action to perform.")
    revision: RevisionName | None = optional("Upstream revision that the decision is about.")
    overrides: Distinct[OverridableGate] = listed(
        "Gates that a `Publish` overrides; a `Rollback` can override `window` only.", MAX_ENTRIES
    )
    trees: Distinct[CommitId] = listed(
        "For `Publish`: Git trees of the drafts; default: none, if there was no"
        " draft of the revision yet. For `ConfirmRemoval`: trees of packages and commits of"
        " drafts with edits that may be deleted.",
        MAX_NAMES,
    )
    accept_conflicts: bool = optional(
        "For `Publish`: whether the drafts of the named variants are published"
        " as they are, with undecided merge conflicts.",
        default=False,
    )
    choices: Mapping[ConflictKey, ConflictWinner] = optional(
        "For `Resolve`: side whose value is taken, by key of the conflict;"
        " default: all drafts are accepted as they are.",
        default={},
        max_length=MAX_NAMES,
    )
    reason: str = optional(
        "Reason for the decision, for later readers.", default="", max_length=4096
    )
    expires: Instant = optional("Time when the decision expires, in RFC 3339.")
    withdraws: RecordName = optional(
        "Name of an earlier Decision or Evidence that this decision withdraws.", default=""
    )


def is_expired(expires: datetime | None, at: datetime) -> bool:
    """Return whether a decision that expires then, or never (None), has no effect at the instant.

    A decision that has none at its own instant is refused: by the command that makes it, and as an
    object by the instant of its creation.
    """
    return expires is not None and expires <= at


class Record(KRMObject):
    """Base of the three kinds of records."""

    # Those that wait are listed, and not those of a week.
    SELECTABLE: ClassVar[str] = "status.record"

    metadata: RecordMeta = optional(
        "Name and namespace; the name is assigned when the record is stored if absent.",
        default=RecordMeta.model_construct(),
    )
    status: ObservedStatus = ObjectStatus.model_construct()


class Evidence(Record):
    """Result of a check: passed, failed or pending, for one revision or commit."""

    PLURAL: ClassVar[str] = "evidences"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("evid",)

    kind: Literal["Evidence"] = kind_field("Evidence")
    spec: EvidenceSpec = Field(
        description="Result of a check for one revision or commit.", json_schema_extra=IMMUTABLE
    )


class Approval(Record):
    """Approval of drafts or removals by one person."""

    PLURAL: ClassVar[str] = "approvals"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("appr",)

    kind: Literal["Approval"] = kind_field("Approval")
    spec: ApprovalSpec = Field(
        description="Approval of drafts or removals by one person, by their Git trees.",
        json_schema_extra=IMMUTABLE,
    )


class Decision(Record):
    """Decision of a person: publish, suspend, resume and the like."""

    PLURAL: ClassVar[str] = "decisions"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("deci",)

    kind: Literal["Decision"] = kind_field("Decision")
    spec: DecisionSpec = Field(
        description="Decision of a person, and the reason for it.", json_schema_extra=IMMUTABLE
    )


RECORD_MODELS: tuple[type[Record], ...] = (Evidence, Approval, Decision)

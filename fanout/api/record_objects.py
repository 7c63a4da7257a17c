"""Records: evidence, approvals and decisions of people and machines.

Kept for ever, never changed.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field
from pydantic.config import JsonDict

from fanout.api.durations import Instant
from fanout.api.gate_vocabulary import Action, OverridableGate, Verdict
from fanout.api.object_meta import KRMObject, Model, ObjectStatus, RecordMeta
from fanout.api.text_fields import (
    CommitId,
    ConflictKey,
    Distinct,
    Link,
    Name,
    RecordName,
    RevisionName,
)

IMMUTABLE: JsonDict = {
    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "a record never changes"}]
}


class ConflictWinner(StrEnum):
    """Side whose value resolves a merge conflict."""

    UPSTREAM = "upstream"
    LOCAL = "local"


class RecordSubject(Model):
    """Subject of a record: a policy and its stage, or variants that were written by hand."""

    policy: Name | Literal[""] = Field(
        default="", description="The policy; empty: the variants were written by hand."
    )
    stage: Name | Literal[""] = Field(default="", description="The stage of the policy.")
    variants: Distinct[Name] = Field(
        default=(), description="The variants; none: all of the stage."
    )


class EvidenceSpec(RecordSubject):
    """Result of a check, for one revision or commit."""

    check: Name = Field(description="The name of the check.")
    status: Verdict = Field(description="The answer.")
    revision: RevisionName | None = Field(
        default=None, description="The upstream revision that it is about."
    )
    commit: CommitId | None = Field(
        default=None, description="The downstream commit that it is about, instead."
    )
    link: Link = Field(default="", max_length=2048, description="Where people can read more.")


class ApprovalSpec(RecordSubject):
    """Approval of drafts by one person, by the trees of the drafts."""

    check: Name = Field(description="The name of the check under `requires`.")
    revision: RevisionName = Field(description="The upstream revision of the drafts.")
    trees: Distinct[CommitId] = Field(
        default=(), description="The trees of the drafts that were approved."
    )
    revokes: RecordName = Field(
        default="", description="The name of an earlier approval that is taken back."
    )


class DecisionSpec(RecordSubject):
    """Decision of a person, with its reason."""

    action: Action = Field(description="What is to happen.")
    revision: RevisionName | None = Field(
        default=None, description="The upstream revision that it is about."
    )
    overrides: Distinct[OverridableGate] = Field(
        default=(),
        description="What a Publish lifts, or a Rollback of the window; nothing else.",
    )
    trees: Distinct[CommitId] = Field(
        default=(),
        description="The trees of the drafts that a Publish is about; none: there was no draft of"
        " the revision yet. Of a ConfirmRemoval: people's work that may go, by the trees of its"
        " packages and the commits of its drafts.",
    )
    accept_conflicts: bool = Field(
        default=False,
        description="A Publish takes the drafts of the variants that it names as they stand, merge"
        " conflicts included.",
    )
    choices: Mapping[ConflictKey, ConflictWinner] = Field(
        default={},
        description="Whose value wins, by the conflict's key; a Resolve without any decides the"
        " drafts as they stand.",
    )
    reason: str = Field(default="", max_length=4096, description="Why, for those who ask later.")
    expires: Instant = Field(default=None, description="When the decision ends, RFC 3339.")
    withdraws: RecordName = Field(
        default="",
        description="The name of an earlier decision, or of evidence, that is taken back.",
    )


class Record(KRMObject):
    """Base of the three kinds of records."""

    metadata: RecordMeta = Field(
        default=RecordMeta(), description="Name and namespace; the name may come later."
    )
    status: ObjectStatus = Field(default=ObjectStatus(), description="What fanout says about it.")


class Evidence(Record):
    """Result of a check: passed, failed or pending, for one revision or commit."""

    PLURAL: ClassVar[str] = "evidences"

    kind: Literal["Evidence"] = Field(default="Evidence", description="Evidence.")
    spec: EvidenceSpec = Field(
        description="The answer to a check, for one revision or commit.",
        json_schema_extra=IMMUTABLE,
    )


class Approval(Record):
    """Approval of drafts by one person."""

    PLURAL: ClassVar[str] = "approvals"

    kind: Literal["Approval"] = Field(default="Approval", description="Approval.")
    spec: ApprovalSpec = Field(
        description="One person's yes to drafts, by their trees.", json_schema_extra=IMMUTABLE
    )


class Decision(Record):
    """Decision of a person: publish, suspend, resume and the like."""

    PLURAL: ClassVar[str] = "decisions"

    kind: Literal["Decision"] = Field(default="Decision", description="Decision.")
    spec: DecisionSpec = Field(
        description="What a person decided, and why.", json_schema_extra=IMMUTABLE
    )

"""Views of `fanout history`: publications of variants, and revisions of stages over time."""

from typing import Literal

from pydantic import Field

from fanout.api.object_meta import API_VERSION, Model
from fanout.api.view_base import VerdictLabel, ViewMeta


class HistoryMeta(ViewMeta):
    """Name, labels and time of an entry of a history."""

    creation_timestamp: str = Field(description="When it came into force; RFC 3339.")


class AdmissionView(Model):
    """Admission of a publication: the objects and the person that let it in."""

    type: Literal[
        "Automatic",
        "Promoted",
        "RolledBack",
        "Pinned",
        "Merged",
        "OutOfBand",
        "Unchanged",
        "Unknown",
    ] = Field(
        description="Automatic: by PromotionPolicies; Promoted, RolledBack: by a Decision; Pinned:"
        " by `spec.stages.pin`; Merged: by a person on the forge, with open gates; OutOfBand: by a"
        " person, without the gates; Unchanged: the package is the one from before; Unknown: not"
        " on record."
    )
    by: str = Field(default="", description="The person: `name <email>`; empty: none, or unknown.")
    decision: str = Field(default="", description="The name of the Decision.")
    reason: str = Field(default="", description="The reason that the Decision gives.")
    overrides: tuple[str, ...] = Field(default=(), description="The gates that it overrides.")
    promotion_policies: tuple[str, ...] = Field(
        default=(), description="The PromotionPolicies that switched automatic promotion on."
    )
    message: str = Field(description="The same in a phrase.")


class ApprovalView(Model):
    """Approval of exactly this package, before it was published."""

    by: str = Field(description="The person.")
    check: str = Field(default="", description="The check; empty: not on record.")
    at: str | None = Field(default=None, description="When; RFC 3339.")
    record: str = Field(default="", description="The name of the record; empty: a review.")


class EvidenceView(Model):
    """Answer to a check about a publication."""

    check: str = Field(description="The check.")
    result: VerdictLabel = Field(description="The answer.")
    at: str = Field(description="When it was recorded; RFC 3339.")
    by: str = Field(default="", description="Who reported it; empty: a machine check.")
    record: str = Field(default="", description="The name of the record; empty: a machine check.")
    link: str = Field(default="", description="A link to more.")


class PublicationSpec(Model):
    """Package that was published, and its place."""

    policy: str = Field(description="The UpstreamPolicy; empty for a variant written by hand.")
    stage: str = Field(default="", description="The stage of the variant at the time.")
    variant: str = Field(description="The variant; it may not exist any more.")
    repository: str = Field(description="The Repository, or its URL if none is declared for it.")
    path: str = Field(description="The package's path from the repository's root.")
    revision: str = Field(description="The upstream revision.")
    upstream_commit: str = Field(description="The upstream commit.")


class PublicationStatus(Model):
    """Record of a publication: its Git objects, its admission and its checks."""

    state: Literal["InForce", "Replaced", "Removed"] = Field(description="What became of it.")
    until: str | None = Field(default=None, description="When it ended; RFC 3339.")
    tag: str = Field(default="", description="Its tag; empty: none.")
    commit: str = Field(default="", description="The commit on the branch.")
    tree: str = Field(description="The tree of the package.")
    digest: str = Field(description="The digest of what it was rendered from.")
    admission: AdmissionView = Field(description="What let it in.")
    approvals: tuple[ApprovalView, ...] = Field(default=(), description="Its approvals.")
    evidence: tuple[EvidenceView, ...] = Field(default=(), description="Answers to its checks.")
    dropped: tuple[str, ...] = Field(
        default=(), description="Values that were dropped in merge conflicts, key by key."
    )
    recovered: bool = Field(
        default=False, description="Read from its repository, because no record has it."
    )


class PublicationView(Model):
    """One publication of a variant."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    kind: Literal["PublicationView"] = Field(
        default="PublicationView", description="PublicationView."
    )
    metadata: HistoryMeta = Field(description="Name, namespace, labels and time.")
    spec: PublicationSpec = Field(description="What was published, and where.")
    status: PublicationStatus = Field(description="What is on record about it.")


class StageRevisionSpec(Model):
    """Revision that a stage took."""

    policy: str = Field(description="The UpstreamPolicy.")
    stage: str = Field(description="The stage.")
    revision: str = Field(description="The upstream revision.")


class StageRevisionStatus(Model):
    """Progress of a revision in a stage, with its times."""

    state: Literal["InForce", "Ended"] = Field(
        description="InForce: at least one variant of the stage has it."
    )
    passed: str | None = Field(default=None, description="When the stage passed it; RFC 3339.")
    ended: str | None = Field(default=None, description="When no variant had it any more.")
    variants: int = Field(description="How many variants took it.")
    publications: int = Field(description="How many publications that were.")
    dropped: int = Field(default=0, description="How many values merge conflicts dropped.")
    admissions: tuple[AdmissionView, ...] = Field(
        default=(), description="What let its publications in, each once."
    )


class StageRevisionView(Model):
    """One stretch in which variants of a stage took a revision."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    kind: Literal["StageRevisionView"] = Field(
        default="StageRevisionView", description="StageRevisionView."
    )
    metadata: HistoryMeta = Field(description="Name, namespace, labels, and when it began.")
    spec: StageRevisionSpec = Field(description="The stage and the revision.")
    status: StageRevisionStatus = Field(description="How far it came, and when.")


HISTORY_VIEWS: tuple[type[Model], ...] = (PublicationView, StageRevisionView)

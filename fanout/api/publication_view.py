"""Views of `fanout history`: publications of variants, and revisions of stages over time."""

from typing import Literal

from pydantic import Field

from fanout.api.object_meta import API_VERSION, Model
from fanout.api.view_base import VerdictLabel, ViewMeta


class HistoryMeta(ViewMeta):
    """Name, labels and time of an entry of a history."""

    creation_timestamp: str = Field(description="Time when it came into force, in RFC 3339.")


class AdmissionView(Model):
    """Admission of a publication: the objects and the person that released it."""

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
        description="`Automatic`: by PromotionPolicies; `Promoted`, `RolledBack`: by a"
        " Decision; `Pinned`: by `spec.stages[].pin`; `Merged`: by a person on the forge, with"
        " open gates; `OutOfBand`: by a person, without the gates; `Unchanged`: the package did"
        " not change; `Unknown`: not on record."
    )
    by: str = Field(
        default="",
        description="Person that admitted it, as `name <email>`; empty if there was none or"
        " it is not known.",
    )
    decision: str = Field(
        default="", description="Name of the Decision that admitted it; empty if there was none."
    )
    reason: str = Field(default="", description="Reason that the Decision gives.")
    overrides: tuple[str, ...] = Field(default=(), description="Gates that the Decision overrides.")
    promotion_policies: tuple[str, ...] = Field(
        default=(), description="Names of the PromotionPolicies that enabled automatic promotion."
    )
    message: str = Field(description="Summary of the admission as a phrase.")


class ApprovalView(Model):
    """Approval of exactly this package, before it was published."""

    by: str = Field(description="Person that approved.")
    check: str = Field(
        default="", description="Name of the approval check; empty if not on record."
    )
    at: str | None = Field(default=None, description="Time of the approval, in RFC 3339.")
    record: str = Field(
        default="", description="Name of the Approval record; empty for a review on the forge."
    )


class EvidenceView(Model):
    """Answer to a check about a publication."""

    check: str = Field(description="Name of the check.")
    result: VerdictLabel = Field(description="Result of the check.")
    at: str = Field(description="Time when the result was recorded, in RFC 3339.")
    by: str = Field(
        default="",
        description="Person or account that reported it; empty for a check that fanout runs"
        " itself.",
    )
    record: str = Field(
        default="",
        description="Name of the Evidence record; empty for a check that fanout runs itself.",
    )
    link: str = Field(default="", description="URL with more information; empty if none was given.")


class PublicationSpec(Model):
    """Package that was published, and its place."""

    policy: str = Field(
        description="Name of the UpstreamPolicy; empty for a manually written PackageVariant."
    )
    stage: str = Field(default="", description="Name of the stage of the variant at that time.")
    variant: str = Field(description="Name of the variant, which may have been removed since.")
    repository: str = Field(
        description="Name of the Repository, or its URL if no Repository is declared for it."
    )
    path: str = Field(description="Path of the package, relative to the root of the repository.")
    revision: str = Field(description="Name of the upstream revision.")
    upstream_commit: str = Field(description="Upstream commit that the revision refers to.")


class PublicationStatus(Model):
    """Record of a publication: its Git objects, its admission and its checks."""

    state: Literal["InForce", "Replaced", "Removed"] = Field(
        description="`InForce`: it is the current publication; `Replaced`: a later one"
        " replaced it; `Removed`: the package was removed."
    )
    until: str | None = Field(
        default=None,
        description="Time when it was replaced or removed, in RFC 3339; null while it is in force.",
    )
    tag: str = Field(default="", description="Tag of the publication; empty if there is none.")
    commit: str = Field(default="", description="Commit on the downstream branch.")
    tree: str = Field(description="Git tree of the package.")
    digest: str = Field(description="Digest of the inputs that the package was rendered from.")
    admission: AdmissionView = Field(
        description="Admission: the decision or automation by which it was published."
    )
    approvals: tuple[ApprovalView, ...] = Field(
        default=(), description="Approvals that were given for it."
    )
    evidence: tuple[EvidenceView, ...] = Field(
        default=(), description="Results of the checks about it."
    )
    dropped: tuple[str, ...] = Field(
        default=(),
        description="Values that were dropped in merge conflicts, one entry for each conflict.",
    )
    recovered: bool = Field(
        default=False,
        description="Whether it was recovered from its repository because it has no record.",
    )


class PublicationView(Model):
    """One publication of a variant."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(
        default=API_VERSION, description="Version of the API; always `fanout.dev/v1alpha1`."
    )
    kind: Literal["PublicationView"] = Field(
        default="PublicationView", description="Kind of the object; always `PublicationView`."
    )
    metadata: HistoryMeta = Field(
        description="Name, namespace, labels, and time of the publication."
    )
    spec: PublicationSpec = Field(description="Package that was published, and its location.")
    status: PublicationStatus = Field(
        description="Git objects, admission and checks of the publication."
    )


class StageRevisionSpec(Model):
    """Revision that a stage took."""

    policy: str = Field(description="Name of the UpstreamPolicy.")
    stage: str = Field(description="Name of the stage.")
    revision: str = Field(description="Name of the upstream revision.")


class StageRevisionStatus(Model):
    """Progress of a revision in a stage, with its times."""

    state: Literal["InForce", "Ended"] = Field(
        description="`InForce`: at least one variant of the stage has the revision;"
        " `Ended`: none has it."
    )
    passed: str | None = Field(
        default=None,
        description="Time when the stage passed the revision, in RFC 3339; null if it did not.",
    )
    ended: str | None = Field(
        default=None,
        description="Time when the last variant left the revision, in RFC 3339; null while"
        " it is in force.",
    )
    variants: int = Field(description="Number of variants that took the revision.")
    publications: int = Field(description="Number of publications of the revision.")
    dropped: int = Field(
        default=0, description="Number of values that were dropped in merge conflicts."
    )
    admissions: tuple[AdmissionView, ...] = Field(
        default=(), description="Distinct admissions of the publications."
    )


class StageRevisionView(Model):
    """One stretch in which variants of a stage took a revision."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(
        default=API_VERSION, description="Version of the API; always `fanout.dev/v1alpha1`."
    )
    kind: Literal["StageRevisionView"] = Field(
        default="StageRevisionView", description="Kind of the object; always `StageRevisionView`."
    )
    metadata: HistoryMeta = Field(
        description="Name, namespace, labels, and time of the first publication."
    )
    spec: StageRevisionSpec = Field(description="Stage and revision.")
    status: StageRevisionStatus = Field(
        description="Progress and times of the revision in the stage."
    )


HISTORY_VIEWS: tuple[type[Model], ...] = (PublicationView, StageRevisionView)

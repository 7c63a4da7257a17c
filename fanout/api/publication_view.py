"""Views of `fanout history`: publications of variants, and revisions of stages over time."""

from enum import StrEnum
from typing import Annotated, Literal

from fanout.api.gate_vocabulary import Verdict
from fanout.api.view_base import (
    InputDigest,
    PackagePath,
    PolicyName,
    RevisionName,
    StageName,
    View,
    ViewMeta,
    ViewModel,
)
from fanout.values import Instant, doc


class HistoryMeta(ViewMeta, kw_only=True):
    """Name, labels and time of an entry of a history."""

    creation_timestamp: Annotated[Instant, doc("Time when it came into force, in RFC 3339.")]


class AdmissionType(StrEnum):
    """Way by which a publication came into force."""

    AUTOMATIC = "Automatic"
    PROMOTED = "Promoted"
    ROLLED_BACK = "RolledBack"
    PINNED = "Pinned"
    MERGED = "Merged"
    OUT_OF_BAND = "OutOfBand"
    UNCHANGED = "Unchanged"
    UNKNOWN = "Unknown"


class Admission(ViewModel, kw_only=True):
    """Admission of a publication: the objects and the person that released it."""

    type: Annotated[
        AdmissionType,
        doc(
            "`Automatic`: by PromotionPolicies; `Promoted`, `RolledBack`: by a"
            " Decision; `Pinned`: by `spec.stages[].pin`; `Merged`: by a person on the forge, with"
            " open gates; `OutOfBand`: by a person, without the gates; `Unchanged`: the package did"
            " not change; `Unknown`: not on record."
        ),
    ]
    by: Annotated[
        str,
        doc(
            "Person that admitted it, as `name <email>`; empty if there was none or it is not"
            " known."
        ),
    ] = ""
    decision: Annotated[
        str, doc("Name of the Decision that admitted it; empty if there was none.")
    ] = ""
    reason: Annotated[str, doc("Reason that the Decision gives.")] = ""
    overrides: Annotated[tuple[str, ...], doc("Gates that the Decision overrides.")] = ()
    promotion_policies: Annotated[
        tuple[str, ...], doc("Names of the PromotionPolicies that enabled automatic promotion.")
    ] = ()
    message: Annotated[str, doc("Summary of the admission as a phrase.")]


class ApprovalView(ViewModel):
    """Approval of exactly this package, before it was published."""

    by: Annotated[str, doc("Person that approved.")]
    check: Annotated[str, doc("Name of the approval check; empty if not on record.")] = ""
    at: Annotated[Instant | None, doc("Time of the approval, in RFC 3339.")] = None
    record: Annotated[str, doc("Name of the Approval record; empty for a review on the forge.")] = (
        ""
    )


class EvidenceView(ViewModel):
    """Answer to a check about a publication."""

    check: Annotated[str, doc("Name of the check.")]
    result: Annotated[Verdict, doc("Result of the check.")]
    at: Annotated[Instant, doc("Time when the result was recorded, in RFC 3339.")]
    by: Annotated[
        str, doc("Person or account that reported it; empty for a check that fanout runs itself.")
    ] = ""
    record: Annotated[
        str, doc("Name of the Evidence record; empty for a check that fanout runs itself.")
    ] = ""
    link: Annotated[str, doc("URL with more information; empty if none was given.")] = ""


class PublicationSpec(ViewModel, kw_only=True):
    """Package that was published, and its place."""

    policy: PolicyName
    stage: Annotated[str, doc("Name of the stage of the variant at that time.")] = ""
    variant: Annotated[str, doc("Name of the variant, which may have been removed since.")]
    repository: Annotated[
        str, doc("Name of the Repository, or its URL if no Repository is declared for it.")
    ]
    path: PackagePath
    revision: RevisionName
    upstream_commit: Annotated[str, doc("Upstream commit that the revision refers to.")]


class PublicationStatus(ViewModel, kw_only=True):
    """Record of a publication: its Git objects, its admission and its checks."""

    state: Annotated[
        Literal["InForce", "Replaced", "Removed"],
        doc(
            "`InForce`: it is the current publication; `Replaced`: a later one"
            " replaced it; `Removed`: the package was removed."
        ),
    ]
    until: Annotated[
        Instant | None,
        doc("Time when it was replaced or removed, in RFC 3339; null while it is in force."),
    ] = None
    tag: Annotated[str, doc("Tag of the publication; empty if there is none.")] = ""
    commit: Annotated[str, doc("Commit on the downstream branch.")] = ""
    tree: Annotated[str, doc("Git tree of the package.")]
    digest: InputDigest
    admission: Annotated[
        Admission, doc("Admission: the decision or automation by which it was published.")
    ]
    approvals: Annotated[tuple[ApprovalView, ...], doc("Approvals that were given for it.")] = ()
    evidence: Annotated[tuple[EvidenceView, ...], doc("Results of the checks about it.")] = ()
    dropped: Annotated[
        tuple[str, ...],
        doc("Values that were dropped in merge conflicts, one entry for each conflict."),
    ] = ()
    recovered: Annotated[
        bool, doc("Whether it was recovered from its repository because it has no record.")
    ] = False


class PublicationView(View):
    """One publication of a variant."""

    metadata: Annotated[HistoryMeta, doc("Name, namespace, labels, and time of the publication.")]
    spec: Annotated[PublicationSpec, doc("Package that was published, and its location.")]
    status: Annotated[
        PublicationStatus, doc("Git objects, admission and checks of the publication.")
    ]


class StageRevisionSpec(ViewModel):
    """Revision that a stage took."""

    policy: Annotated[str, doc("Name of the UpstreamPolicy.")]
    stage: StageName
    revision: RevisionName


class StageRevisionStatus(ViewModel, kw_only=True):
    """Progress of a revision in a stage, with its times."""

    state: Annotated[
        Literal["InForce", "Ended"],
        doc("`InForce`: at least one variant of the stage has the revision; `Ended`: none has it."),
    ]
    passed: Annotated[
        Instant | None,
        doc("Time when the stage passed the revision, in RFC 3339; null if it did not."),
    ] = None
    ended: Annotated[
        Instant | None,
        doc(
            "Time when the last variant left the revision, in RFC 3339; null while it is in force."
        ),
    ] = None
    variants: Annotated[int, doc("Number of variants that took the revision.")]
    publications: Annotated[int, doc("Number of publications of the revision.")]
    dropped: Annotated[int, doc("Number of values that were dropped in merge conflicts.")] = 0
    admissions: Annotated[
        tuple[Admission, ...], doc("Distinct admissions of the publications.")
    ] = ()


class StageRevisionView(View):
    """One stretch in which variants of a stage took a revision."""

    metadata: Annotated[
        HistoryMeta, doc("Name, namespace, labels, and time of the first publication.")
    ]
    spec: Annotated[StageRevisionSpec, doc("Stage and revision.")]
    status: Annotated[StageRevisionStatus, doc("Progress and times of the revision in the stage.")]


HISTORY_VIEWS: tuple[type[ViewModel], ...] = (PublicationView, StageRevisionView)

"""Types of the conditions of each kind, and when each is true. A closed list.

A test compares it with the code that builds conditions: people select and wait by these words.
"""

from collections.abc import Mapping
from enum import StrEnum


class ConditionType(StrEnum):
    """Type of a condition; some are named as the reason that they always have."""

    ADMISSION_MISSING = "AdmissionMissing"
    BROKEN = "Broken"
    CONFLICTS_DECIDED = "ConflictsDecided"
    DRAFT_LEFT = "DraftLeft"
    EDITED = "Edited"
    EFFECTIVE = "Effective"
    EXPRESSION_ERROR = "ExpressionError"
    MERGE_CONFLICT = "MergeConflict"
    NOT_ENFORCED = "NotEnforced"
    OUT_OF_BAND = "OutOfBand"
    PASSED = "Passed"
    READY = "Ready"
    RECONCILING = "Reconciling"
    RECORDED = "Recorded"
    RECORDS_UNREADABLE = "RecordsUnreadable"
    REVERTED = "Reverted"
    STALLED = "Stalled"
    SUSPENDED = "Suspended"
    TAG_MISSING = "TagMissing"
    TAG_MOVED = "TagMoved"


_RECONCILING = "it is not ready, and fanout continues by itself"
_STALLED = "it is not ready, and a person must correct something"
_INVALID = "it has an error that a person must correct"
_UNENFORCED = (
    "branch protection of {} does not require the commit status of fanout; unknown if its rules"
    " cannot be read"
)
_RECORD_CONDITIONS: Mapping[ConditionType, str] = {
    ConditionType.RECORDED: "it is in the records repository",
    ConditionType.READY: "it is in the records repository; false while it waits, or was refused",
    ConditionType.STALLED: "it was refused, because it has errors or nothing proves its author",
    ConditionType.EFFECTIVE: "it counts for its policy or variant",
}

CONDITIONS_BY_KIND: Mapping[str, Mapping[ConditionType, str]] = {
    "Repository": {
        ConditionType.READY: "the last pass of each policy that uses it could list it, or none"
        " uses it",
        ConditionType.RECONCILING: _RECONCILING,
        ConditionType.STALLED: _STALLED,
        ConditionType.NOT_ENFORCED: _UNENFORCED.format("the repository"),
    },
    "UpstreamPolicy": {
        ConditionType.READY: "all its variants are ready, or it selects no target",
        ConditionType.RECONCILING: _RECONCILING,
        ConditionType.STALLED: _STALLED,
        ConditionType.SUSPENDED: "its spec or a decision suspends it",
        ConditionType.ADMISSION_MISSING: "the admission policies are not in force, so that no"
        " record is accepted",
        ConditionType.RECORDS_UNREADABLE: "its records cannot be read any more; the pass knew"
        " those that were read last",
        ConditionType.NOT_ENFORCED: _UNENFORCED.format("a downstream repository"),
        ConditionType.EXPRESSION_ERROR: "a template of its pull requests yields no text",
    },
    "PackageVariant": {
        ConditionType.READY: "its candidate is published, and its checks have passed",
        ConditionType.RECONCILING: _RECONCILING,
        ConditionType.STALLED: _STALLED,
        ConditionType.MERGE_CONFLICT: "its draft has undecided merge conflicts",
        ConditionType.CONFLICTS_DECIDED: "merge conflicts of its draft or package were decided",
        ConditionType.EDITED: "its package or draft has edits of people",
        ConditionType.OUT_OF_BAND: "a person merged its draft before its gates were open",
        ConditionType.REVERTED: "a person reverted its publication",
        ConditionType.TAG_MISSING: "the tag of its publication, or that of upstream, is missing",
        ConditionType.TAG_MOVED: "the tag of its publication names another commit",
        ConditionType.DRAFT_LEFT: "the branch of its published draft was not deleted",
        ConditionType.BROKEN: "its published package has invalid files",
    },
    "PromotionPolicy": {
        ConditionType.READY: "it is valid, and all that it names exists",
        ConditionType.STALLED: _INVALID,
    },
    "Evidence": _RECORD_CONDITIONS,
    "Approval": _RECORD_CONDITIONS,
    "Decision": _RECORD_CONDITIONS,
}

STAGE_CONDITIONS: Mapping[ConditionType, str] = {
    ConditionType.PASSED: "the stage has passed its candidate; false if it failed, else unknown",
    ConditionType.MERGE_CONFLICT: "drafts of the stage have undecided merge conflicts",
}
"""Conditions of a stage in the status of an UpstreamPolicy."""

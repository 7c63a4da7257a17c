"""Reasons of the events that fanout writes about policies in a cluster. A closed list, sorted."""

from enum import StrEnum

from fanout.api.notifications import NotificationEvent


class EventReason(StrEnum):
    """Reason of an event; `meaning` explains it in a line, `is_warning` is its type."""

    meaning: str
    is_warning: bool

    def __new__(cls, value: str, meaning: str, type_: str) -> "EventReason":
        """Create a member whose text is the word; `type_` is that of the event."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        member.is_warning = type_ == "Warning"
        return member

    APPROVAL_AWAITED = "ApprovalAwaited", NotificationEvent.APPROVAL_AWAITED.meaning, "Normal"
    DRAFTS_WRITTEN = "DraftsWritten", "drafts were written or replaced", "Normal"
    MERGE_CONFLICT = "MergeConflict", NotificationEvent.MERGE_CONFLICT.meaning, "Warning"
    PACKAGES_REMOVED = "PackagesRemoved", "packages were removed", "Normal"
    POLICY_STOPPED = "PolicyStopped", NotificationEvent.POLICY_STOPPED.meaning, "Warning"
    PUBLISHED = "Published", "drafts were published", "Normal"
    PUSH_FAILED = (
        "PushFailed",
        "an action on drafts or packages failed",
        "Warning",
    )
    REQUESTS_MERGED = "RequestsMerged", "pull requests were merged", "Normal"
    ROLLOUT_DONE = "RolloutDone", NotificationEvent.ROLLOUT_DONE.meaning, "Normal"
    STAGE_HALTED = "StageHalted", NotificationEvent.STAGE_HALTED.meaning, "Warning"
    STAGE_PASSED = "StagePassed", NotificationEvent.STAGE_PASSED.meaning, "Normal"
    VARIANT_FAILED = "VariantFailed", NotificationEvent.VARIANT_FAILED.meaning, "Warning"

"""Reasons of the events that fanout writes about policies in a cluster. A closed list, sorted."""

from fanout.api.notifications import NotificationEvent
from fanout.api.reasons import ExplainedValue


class EventReason(ExplainedValue):
    """Reason of an event; `meaning` explains it in a line."""

    APPROVAL_AWAITED = "ApprovalAwaited", NotificationEvent.APPROVAL_AWAITED.meaning
    DRAFTS_WRITTEN = "DraftsWritten", "drafts were written or replaced"
    MERGE_CONFLICT = "MergeConflict", NotificationEvent.MERGE_CONFLICT.meaning
    PACKAGES_REMOVED = "PackagesRemoved", "packages were removed"
    POLICY_STOPPED = "PolicyStopped", NotificationEvent.POLICY_STOPPED.meaning
    PUBLISHED = "Published", "drafts were published"
    PUSH_FAILED = "PushFailed", "an action on drafts or packages failed"
    REQUESTS_MERGED = "RequestsMerged", "pull requests were merged"
    ROLLOUT_DONE = "RolloutDone", NotificationEvent.ROLLOUT_DONE.meaning
    STAGE_HALTED = "StageHalted", NotificationEvent.STAGE_HALTED.meaning
    STAGE_PASSED = "StagePassed", NotificationEvent.STAGE_PASSED.meaning
    VARIANT_FAILED = "VariantFailed", NotificationEvent.VARIANT_FAILED.meaning

    @property
    def is_warning(self) -> bool:
        """True if an event of this reason has the type Warning, and not Normal."""
        return self in _WARNINGS


_WARNINGS = frozenset(
    {
        EventReason.MERGE_CONFLICT,
        EventReason.POLICY_STOPPED,
        EventReason.PUSH_FAILED,
        EventReason.STAGE_HALTED,
        EventReason.VARIANT_FAILED,
    }
)

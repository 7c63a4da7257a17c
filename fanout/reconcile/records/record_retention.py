"""Retention of the objects of records: how long they stay in a cluster when they are on record."""

from datetime import UTC, datetime, timedelta

from fanout.ports import PendingRecords
from fanout.values import Value

# Those on record may be many, and nothing waits for their deletion.
_INTERVAL = timedelta(minutes=10)
_FIRST_DELETION = datetime(1970, 1, 1, tzinfo=UTC)
MAX_DELETIONS = 500  # the rest follows in the next round


class DeletionResult(Value):
    """Result of deleting objects that have been on record for their retention."""

    problems: tuple[str, ...] = ()  # sentences for the log, sorted
    has_more: bool = False  # there are more than one call deletes


class RecordRetention:
    """Deletes the objects of a cluster that have been on record for the retention."""

    def __init__(self, pending: PendingRecords, retention: timedelta | None) -> None:
        """Delete objects of `pending`, `retention` after they were recorded; None: never."""
        self._pending = pending
        self._retention = retention
        self._next_deletion = _FIRST_DELETION

    def delete_expired(self, now: datetime) -> DeletionResult:
        """Delete the expired objects, every ten minutes, at most MAX_DELETIONS in a call.

        Raises Denied and Unavailable if they cannot be listed.
        """
        if self._retention is None or now < self._next_deletion:
            return DeletionResult()
        expired = [
            item
            for item in self._pending.read_recorded()
            if item.state.at is not None and item.state.at + self._retention <= now
        ]
        errors = self._pending.delete(expired[:MAX_DELETIONS])
        has_more = len(expired) > MAX_DELETIONS and not errors
        self._next_deletion = now if has_more else now + _INTERVAL
        problems = (f"{it} could not be deleted: {errors[it]!s}" for it in errors)
        return DeletionResult(tuple(sorted(problems)), has_more)

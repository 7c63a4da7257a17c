"""Retention of the objects of records: how long they stay in a cluster when they are on record."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fanout.ports import PendingRecords
from fanout.values import Value

# Those on record may be many, and nothing waits for their deletion.
_INTERVAL = timedelta(minutes=10)
MAX_DELETIONS = 500  # the rest follows in the next round


class DeletionResult(Value):
    """Result of deleting objects that have been on record for their retention."""

    problems: tuple[str, ...] = ()  # sentences for the log, sorted
    has_more: bool = False  # there are more than one call deletes


@dataclass(slots=True)
class RecordRetention:
    """Deletes the objects of a cluster that have been on record for the retention."""

    pending: PendingRecords
    retention: timedelta | None  # None: they stay
    _next_deletion: datetime = datetime(1970, 1, 1, tzinfo=UTC)

    def delete_expired(self, now: datetime) -> DeletionResult:
        """Delete the expired objects, every ten minutes, at most MAX_DELETIONS in a call.

        Raises Denied and Unavailable if they cannot be listed.
        """
        if self.retention is None or now < self._next_deletion:
            return DeletionResult()
        expired = [
            item
            for item in self.pending.read_recorded()
            if item.state.at is not None and item.state.at + self.retention <= now
        ]
        errors = self.pending.delete(expired[:MAX_DELETIONS])
        has_more = len(expired) > MAX_DELETIONS and not errors
        self._next_deletion = now if has_more else now + _INTERVAL
        problems = (f"{it} could not be deleted: {errors[it]!s}" for it in errors)
        return DeletionResult(tuple(sorted(problems)), has_more)

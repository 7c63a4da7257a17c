"""History of a revision in one stage: the stretches in which it was ready there, and its soak.

A stretch begins with the latest instant that the stage's verdict rests on, and again when the stage
is ready with the revision after it had moved on. It ends when the stage moves on.

The soak is the longest of all stretches, until evidence is withdrawn: then none counts. While it is
shorter than the soak that a later stage requires, that stage is held.
"""

from datetime import datetime, timedelta

from fanout.values import Instant, Value


class RevisionHistory(Value, forbid_unknown_fields=True):
    """History of one revision in one stage, kept in the status.

    The first stretch in which the revision is ready begins when the verdict passes. It ends when
    the stage moves on; when the stage is ready with the revision again, another stretch begins.
    """

    passed: Instant | None = None  # when the stage passed; None: it has not
    left: Instant | None = None  # end of the last stretch; None: one is open, or none began
    soaked: timedelta = timedelta(0)  # the longest of the stretches that are over
    since: Instant | None = None  # start of the open stretch, if not the first

    @property
    def stretch_start(self) -> datetime | None:
        """Return when the present stretch began, or the last one if the stage has moved on."""
        return self.since or self.passed


NO_HISTORY = RevisionHistory()


def end_stretch(history: RevisionHistory, at: datetime) -> RevisionHistory:
    """Return the history of a revision from which the stage moves on at that instant."""
    assert history.stretch_start is not None, "only an open stretch can end"
    return RevisionHistory(history.passed, at, max(history.soaked, at - history.stretch_start))


def begin_stretch(history: RevisionHistory, at: datetime) -> RevisionHistory:
    """Return the history of a revision with which the stage is ready again."""
    return RevisionHistory(history.passed, None, history.soaked, at)


def withdraw_history(history: RevisionHistory) -> RevisionHistory:
    """Return the history of a revision whose evidence was withdrawn: its soak is lost."""
    # That the stage moved on stays on record, or an old revision would be offered again.
    return RevisionHistory(left=history.left)


def compute_soak(history: RevisionHistory, now: datetime) -> timedelta:
    """Return the longest time that the revision was ready without a break, as of `now`."""
    if history.stretch_start is None:
        return timedelta(0)
    if history.left is not None:
        return history.soaked
    # Never negative: a history may have been written by a machine whose clock runs ahead.
    return max(history.soaked, now - history.stretch_start, timedelta(0))


def soak_ends_at(history: RevisionHistory, soak: timedelta) -> datetime | None:
    """Return when the running stretch will be as long as `soak`; None if none runs."""
    if history.stretch_start is None or history.left is not None:
        return None
    return history.stretch_start + soak

"""History of a revision in one stage: the stretches in which it was ready there.

A stretch begins with the latest instant that the stage's verdict rests on, and again when the
stage is ready with the revision after it had moved on. It ends when the stage moves on.
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

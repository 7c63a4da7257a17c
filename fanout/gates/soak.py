"""How long a revision has been ready in a stage: the longest unbroken time, as a pure clock.

The clock starts when the stage's verdict is first seen to be passed, starts anew when evidence was
withdrawn, and ends when the stage moves on. What it showed then stands. (Design §6, "Soak".)
"""

from datetime import datetime, timedelta

from fanout.gates.facts import StageHistory

NEVER = StageHistory()


def soaked(history: StageHistory, now: datetime) -> timedelta:
    """The time the revision has been ready, as of now."""
    if history.passed is None:
        return timedelta(0)
    if history.left is not None:
        return history.soaked
    return max(history.soaked, now - history.passed, timedelta(0))


def over_at(history: StageHistory, soak: timedelta) -> datetime | None:
    """When a running clock will have shown that much; None when no clock runs."""
    if history.passed is None or history.left is not None:
        return None
    return history.passed + soak


def left(history: StageHistory, at: datetime) -> StageHistory:
    """The history of a revision from which the stage moved on at that instant."""
    assert history.passed is not None
    return StageHistory(history.passed, at, max(history.soaked, at - history.passed))


def withdrawn(history: StageHistory) -> StageHistory:
    """The history of a revision whose evidence was withdrawn: nothing it has earned is left."""
    return StageHistory(left=history.left)

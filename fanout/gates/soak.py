"""Soak of a revision in one stage: the longest unbroken time that it was ready there.

A stretch begins when the stage's verdict is first seen to be passed, and again when the stage is
ready with the revision after it had moved on. It ends when the stage moves on. The longest of all
stretches counts, until evidence is withdrawn: then nothing is left. (Design §6, "Soak".)
"""

from datetime import datetime, timedelta

from fanout.gates.facts import StageHistory

NEVER = StageHistory()


def soaked(history: StageHistory, now: datetime) -> timedelta:
    """Return the longest time that the revision has been ready without a break, as of now."""
    if history.begun is None:
        return timedelta(0)
    if history.left is not None:
        return history.soaked
    return max(history.soaked, now - history.begun, timedelta(0))


def over_at(history: StageHistory, soak: timedelta) -> datetime | None:
    """Return when the running stretch will be that long; None if none runs."""
    if history.begun is None or history.left is not None:
        return None
    return history.begun + soak


def through_since(history: StageHistory, soak: timedelta) -> datetime | None:
    """Return since when the running stretch and those before it are enough; None if none runs."""
    if history.left is None and history.soaked >= soak:
        return history.begun
    return over_at(history, soak)


def left(history: StageHistory, at: datetime) -> StageHistory:
    """Return the history of a revision from which the stage moves on at that instant."""
    assert history.begun is not None, "only a stretch that runs can end"
    return StageHistory(history.passed, at, max(history.soaked, at - history.begun))


def begun_again(history: StageHistory, at: datetime) -> StageHistory:
    """Return the history of a revision with which the stage is ready again from that instant."""
    return StageHistory(history.passed, None, history.soaked, at)


def withdrawn(history: StageHistory) -> StageHistory:
    """Return the history of a revision whose evidence was withdrawn: nothing it earned is left."""
    return StageHistory(left=history.left)

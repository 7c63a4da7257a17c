"""Soak of a revision in one stage: the longest unbroken time that it was ready there.

A stretch begins with the latest instant that the stage's verdict rests on, and again when the
stage is ready with the revision after it had moved on. It ends when the stage moves on.
The longest of all stretches counts, until evidence is withdrawn: then none does.
(Design §6, "Soak".)
"""

from datetime import datetime, timedelta

from fanout.gates.gate_facts import RevisionHistory

NO_HISTORY = RevisionHistory()


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


def soaked_since(history: RevisionHistory, soak: timedelta) -> datetime | None:
    """Return since when the stretches up to the running one suffice for `soak`.

    None if none runs.
    """
    if history.left is None and history.soaked >= soak:
        return history.stretch_start
    return soak_ends_at(history, soak)


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

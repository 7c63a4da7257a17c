"""Soak of a revision in one stage: the longest unbroken time that it was ready there.

The longest of all stretches counts, until evidence is withdrawn: then none does. While it is
shorter than the soak that a later stage requires, that stage is held (docs/concepts/gates.md).
"""

from datetime import datetime, timedelta

from fanout.gates.revision_history import RevisionHistory


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
    """Return since when the stretches up to the running one suffice for `soak`, or None."""
    if history.left is None and history.soaked >= soak:
        return history.stretch_start
    return soak_ends_at(history, soak)

"""Soak of a revision in one stage: the longest unbroken time that it was ready there.

The longest of all stretches counts, until evidence is withdrawn: then none does. While it is
shorter than the soak that a later stage requires, that stage is held.
(Design §6, "Soak".)
"""

from datetime import datetime, timedelta

from fanout.api.durations import format_duration
from fanout.api.gate_vocabulary import Verdict
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates import gate_wording
from fanout.gates.gate_wording import label_stage
from fanout.gates.revision_history import RevisionHistory
from fanout.gates.stage_verdicts import UpstreamStage


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


def soak_hold(
    stage: str,
    soak: timedelta,
    revision: str,
    upstream_stage: UpstreamStage,
    ready_at: datetime | None,
) -> tuple[Hold, bool]:
    """Build the hold for a soak that is not over.

    The boolean says whether it can still complete.
    """
    verdict = upstream_stage.verdicts.verdict(revision)
    history = upstream_stage.verdicts.history(revision)
    # No end is promised before a sweep has recorded when the soak began.
    if revision in upstream_stage.verdicts.unrecorded:
        sentence = (
            f"{revision} is ready in {label_stage(stage)}; its soak of {format_duration(soak)}"
            " starts with the next sweep"
        )
        return Hold(Reason.SOAK_RUNNING, sentence, gate_wording.NEXT_SWEEP), True
    until = soak_ends_at(history, soak)
    if until is not None and history.stretch_start is not None:
        sentence = f"{revision} soaks in {label_stage(stage)} for {format_duration(soak)}"
        since, actor = history.stretch_start, gate_wording.TIME_ALONE
        return Hold(Reason.SOAK_RUNNING, sentence, actor, since, until), True
    if verdict is not Verdict.PASSED:
        sentence = (
            f"{revision} is not ready in {label_stage(stage)}; its soak of {format_duration(soak)}"
            " has not started"
        )
        possible = verdict is Verdict.PENDING and upstream_stage.reachable
        return Hold(Reason.AFTER_PENDING, sentence, upstream_stage.who, until=ready_at), possible
    ended = (
        f"soak of {revision} in {label_stage(stage)} ended after {format_duration(history.soaked)}"
        f" of {format_duration(soak)}"
    )
    if upstream_stage.returning:
        sentence = f"{ended}; it restarts when the stage is ready again"
        return Hold(Reason.SOAK_RUNNING, sentence, upstream_stage.who, history.left, ready_at), True
    sentence, actor = f"{ended}; {revision} can no longer pass", gate_wording.MAY_OVERRIDE_SOAK
    return Hold(Reason.SOAK_CUT_SHORT, sentence, actor, history.left), False

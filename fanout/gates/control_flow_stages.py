"""Control-flow stages, which have no targets and forward verdicts and clocks.

The verdict for a revision is the stage's own gate. The stage is ready from the instant
at which its gate opened, soak included, until the upstream stages that are still
at the revision no longer suffice; so soaks along a path add up. When they suffice
again, another stretch begins (docs/concepts/gates.md).
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from fanout.api.gate_vocabulary import Verdict
from fanout.gates.after_gate import AfterGate, compute_quorum
from fanout.gates.gate_rules import StageRule
from fanout.gates.revision_history import (
    NO_HISTORY,
    RevisionHistory,
    begin_stretch,
    end_stretch,
    withdraw_history,
)
from fanout.gates.soak import soaked_since
from fanout.gates.stage_verdicts import StageVerdicts


def forward_verdicts(
    stage_rule: StageRule,
    gate_of: Callable[[str], AfterGate],
    upstream_verdicts: Mapping[str, StageVerdicts],
    histories: Mapping[str, RevisionHistory],
    revisions: Iterable[str],
    now: datetime,
) -> StageVerdicts:
    """Compute the verdicts of a control-flow stage; `gate_of` evaluates its gate."""
    by_revision: dict[str, Verdict] = {}
    new_histories: dict[str, RevisionHistory] = {}
    # Revisions on record too: one that the rule no longer allows may still soak downstream.
    for revision in dict.fromkeys([*revisions, *histories]):
        history, gate = histories.get(revision, NO_HISTORY), gate_of(revision)
        by_revision[revision] = gate.verdict
        new_histories[revision] = (
            _forward_history(stage_rule, gate, upstream_verdicts, revision, history, now)
            if gate.verdict is Verdict.PASSED
            else withdraw_history(history)
        )
    return StageVerdicts.of_pass(by_revision, histories, new_histories, now)


def _forward_history(
    stage_rule: StageRule,
    gate: AfterGate,
    upstream_verdicts: Mapping[str, StageVerdicts],
    revision: str,
    history: RevisionHistory,
    now: datetime,
) -> RevisionHistory:
    """Return the history of a revision whose gate is open: its present stretch, or its end."""
    assert stage_rule.after is not None, "validation refuses other stages without targets"
    quorum, soak = compute_quorum(stage_rule.after), stage_rule.after.soak_time
    # Since when, and until when, each stage that counts as passed now suffices for the gate; None:
    # always, as far as is known.
    spans: list[tuple[datetime | None, datetime | None]] = []
    for step in gate.steps:
        upstream_history = upstream_verdicts[step.stage].history(revision)
        if step.verdict is not Verdict.PASSED or upstream_history.passed is None:
            continue
        since = soaked_since(upstream_history, soak)
        # An overridden soak counts as none.
        if since is not None and since > now:
            since = upstream_history.stretch_start
        spans.append((since, upstream_history.left))

    def count_at(at: datetime) -> int:
        return sum(
            (since is None or since <= at) and (until is None or until > at)
            for since, until in spans
        )

    # Since when enough suffice, or `now` where that is unknown. Those that have left are not part
    # of a stretch that is open now.
    present = sorted(since or now for since, until in spans if until is None or until > now)
    quorum_since = min(present[quorum - 1], now) if len(present) >= quorum else now
    new_history = history
    if history.passed is None:
        new_history = RevisionHistory(passed=quorum_since)
    start = new_history.stretch_start
    if new_history.left is None and start is not None:
        # The number that suffices can drop only where a span ends; the other instants need no look.
        ends = [until for _, until in spans if until is not None]
        moments = sorted({start, *(end for end in ends if end > start)}) if ends else []
        shortages = (moment for moment in moments if count_at(moment) < quorum)
        if (ended_at := next(shortages, None)) is not None:
            new_history = end_stretch(new_history, ended_at)
    if new_history.left is not None and count_at(now) >= quorum:
        return begin_stretch(new_history, max(quorum_since, new_history.left))
    return new_history

"""Control-flow stages, which have no targets and forward verdicts and clocks.

The verdict for a revision is the stage's own gate. The stage is ready from the instant
at which its gate opened, soak included, until the upstream stages that are still
at the revision no longer suffice; so soaks along a path add up. When they suffice
again, another stretch begins. (Design §6, "Soak".)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    presence = _UpstreamPresence(spans)
    new_history = history
    if history.passed is None:
        new_history = RevisionHistory(passed=presence.quorum_since(quorum, now))
    if new_history.left is None and new_history.stretch_start is not None:
        ended_at = presence.first_shortage(quorum, new_history.stretch_start)
        if ended_at is not None:
            new_history = end_stretch(new_history, ended_at)
    if new_history.left is not None and presence.count_at(now) >= quorum:
        again_since = max(presence.quorum_since(quorum, now), new_history.left)
        return begin_stretch(new_history, again_since)
    return new_history


class _UpstreamPresence:
    """Upstream stages that are at the revision and suffice for the gate, by instant."""

    def __init__(self, spans: Sequence[tuple[datetime | None, datetime | None]]) -> None:
        self._spans = spans

    def count_at(self, at: datetime) -> int:
        """Return how many upstream stages suffice at the instant."""
        return sum(
            (since is None or since <= at) and (until is None or until > at)
            for since, until in self._spans
        )

    def quorum_since(self, quorum: int, now: datetime) -> datetime:
        """Return since when enough upstream stages suffice, or `now` where that is unknown."""
        # Those that have left are not part of a stretch that is open now.
        present = [since or now for since, until in self._spans if until is None or until > now]
        return min(sorted(present)[quorum - 1], now) if len(present) >= quorum else now

    def first_shortage(self, quorum: int, stretch_start: datetime) -> datetime | None:
        """Return when in the stretch so many stages had moved on that too few suffice, or None."""
        ends = [until for _, until in self._spans if until is not None]
        if not ends:
            return None
        # The number that suffices can drop only where a span ends; the other instants need no look.
        moments = sorted({stretch_start, *(end for end in ends if end > stretch_start)})
        return next((moment for moment in moments if self.count_at(moment) < quorum), None)

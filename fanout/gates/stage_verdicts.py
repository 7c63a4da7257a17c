"""Verdicts of a stage for each revision, and the history to remember of it.

Passed when every variant that counts is ready, but for tolerated failures; failed as
soon as more have failed; else pending. A passed verdict stays until evidence is
withdrawn (docs/concepts/gates.md).
"""

from collections.abc import Mapping
from datetime import datetime

from fanout.api.gate_vocabulary import Verdict
from fanout.gates.revision_history import (
    NO_HISTORY,
    RevisionHistory,
    begin_stretch,
    end_stretch,
    withdraw_history,
)
from fanout.gates.stage_tally import RevisionTally, StageTally
from fanout.values import Value, field

_EMPTY_TALLY = RevisionTally()


class StageVerdicts(Value):
    """Verdict and history of every revision in one stage."""

    by_revision: Mapping[str, Verdict] = field(default_factory=dict)
    histories: Mapping[str, RevisionHistory] = field(default_factory=dict)
    unrecorded: frozenset[str] = frozenset()  # ready from this pass on, which no sweep recorded yet

    @classmethod
    def of_pass(
        cls,
        by_revision: Mapping[str, Verdict],
        recorded: Mapping[str, RevisionHistory],
        histories: Mapping[str, RevisionHistory],
        now: datetime,
    ) -> "StageVerdicts":
        """Return the verdicts of a pass with the `histories` that follow the `recorded` ones."""
        unrecorded = (
            revision
            for revision, history in histories.items()
            if history.left is None
            and history.stretch_start == now
            and recorded.get(revision, NO_HISTORY).stretch_start != now
        )
        kept = {name: history for name, history in histories.items() if history != NO_HISTORY}
        return cls(by_revision, kept, frozenset(unrecorded))

    def verdict(self, revision: str) -> Verdict:
        """Return the verdict for the revision; unknown revisions are pending."""
        return self.by_revision.get(revision, Verdict.PENDING)

    def history(self, revision: str) -> RevisionHistory:
        """Return the history of the revision."""
        return self.histories.get(revision, NO_HISTORY)

    def is_in_force(self, revision: str) -> bool:
        """Return whether the revision has passed and the stage has not moved on from it."""
        return self.verdict(revision) is Verdict.PASSED and self.history(revision).left is None


def compute_stage_verdicts(
    tally: StageTally, histories: Mapping[str, RevisionHistory], now: datetime, candidate: str = ""
) -> StageVerdicts:
    """Compute the verdicts of one stage; failures before publication fail the candidate."""
    by_revision: dict[str, Verdict] = {}
    new_histories: dict[str, RevisionHistory] = {}
    for revision in {*tally.published, *histories, *([candidate] if candidate else [])}:
        history = histories.get(revision, NO_HISTORY)
        early_failures = tally.early_failure_count(revision) if revision == candidate else 0
        revision_tally = tally.published.get(revision, _EMPTY_TALLY)
        failed, tolerated = revision_tally.failed, tally.tolerated_failures(revision)
        if history.passed is not None:
            # The cheap count first: the exact one goes through all variants of the stage.
            is_withdrawn = (
                failed > tolerated and tally.count_withdrawn(revision, history) > tolerated
            )
            verdict = Verdict.FAILED if is_withdrawn else Verdict.PASSED
        elif failed + early_failures > tolerated:
            verdict = Verdict.FAILED
        else:
            counted = tally.count_for(revision)
            finished = counted and revision_tally.ready + failed + early_failures == counted
            verdict = Verdict.PASSED if finished else Verdict.PENDING
        by_revision[revision] = verdict
        new_histories[revision] = _advance_history(
            tally, revision, history, verdict, now, early_failures
        )
    return StageVerdicts.of_pass(by_revision, histories, new_histories, now)


def _advance_history(
    tally: StageTally,
    revision: str,
    history: RevisionHistory,
    verdict: Verdict,
    now: datetime,
    early_failures: int,
) -> RevisionHistory:
    if verdict is Verdict.FAILED:
        return withdraw_history(history)
    if verdict is Verdict.PENDING:
        return history
    if history.passed is None:
        first = RevisionHistory(passed=tally.ready_since(revision, now))
        # A variant that does not count may have taken another revision later than that; no
        # instant is known at which it stopped to count, and the stretch begins with this pass.
        is_over = tally.moved_on_at(revision, first, now) is not None
        return RevisionHistory(passed=now) if is_over else first
    new_history = history
    if history.left is None:
        moved_on_at = tally.moved_on_at(revision, history, now)
        if moved_on_at is not None:
            new_history = end_stretch(history, moved_on_at)
    if new_history.left is not None and tally.is_finished(revision, early_failures):
        again = begin_stretch(new_history, max(tally.ready_since(revision, now), new_history.left))
        if tally.moved_on_at(revision, again, now) is not None:
            again = begin_stretch(new_history, now)
        # A variant that counts again may have moved on already. A stretch that ends as it begins
        # would add a status line in every pass.
        if tally.moved_on_at(revision, again, now) is None:
            return again
    return new_history

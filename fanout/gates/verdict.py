"""A stage's verdict for each revision, and what is to be remembered of it.

Passed when every variant that counts is ready, but for as many failed ones as the stage bears;
failed as soon as more have failed; else pending. A verdict once passed stands until evidence is
withdrawn. (Design §6, "Stage verdict", "What counts".)
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from fanout.gates.census import Census, Tally
from fanout.gates.facts import StageHistory
from fanout.gates.rules import Verdict
from fanout.gates.soak import NEVER, begun_again, left, withdrawn
from fanout.values import frozen

_NONE = Tally()


@frozen
class Ledger:
    """How every revision stands in one stage."""

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    history: Mapping[str, StageHistory] = field(default_factory=dict)
    unrecorded: frozenset[str] = frozenset()  # seen to be ready for the first time: no clock yet

    def verdict(self, revision: str) -> Verdict:
        """Nothing known is pending."""
        return self.verdicts.get(revision, Verdict.PENDING)

    def past(self, revision: str) -> StageHistory:
        """What is remembered of the revision."""
        return self.history.get(revision, NEVER)

    def stays(self, revision: str) -> bool:
        """Has it passed, and has the stage not moved on from it?"""
        return self.verdict(revision) is Verdict.PASSED and self.past(revision).left is None


def judge(
    census: Census, history: Mapping[str, StageHistory], now: datetime, candidate: str = ""
) -> Ledger:
    """The verdicts of one stage. What failed before publication fails the candidate, if named."""
    verdicts: dict[str, Verdict] = {}
    remembered: dict[str, StageHistory] = {}
    unrecorded: set[str] = set()
    for revision in {*census.published, *history, *([candidate] if candidate else [])}:
        past = history.get(revision, NEVER)
        failing = census.failing(revision) if revision == candidate else 0
        verdict = _verdict(census, revision, past, failing)
        verdicts[revision] = verdict
        present = _history(census, revision, past, verdict, now, failing)
        if present != NEVER:
            remembered[revision] = present
        if present.begun not in (None, past.begun) and present.left is None:
            unrecorded.add(revision)
    return Ledger(verdicts, remembered, frozenset(unrecorded))


def _verdict(census: Census, revision: str, past: StageHistory, failing: int) -> Verdict:
    tally = census.published.get(revision, _NONE)
    counting = census.counting(revision)
    borne = census.borne(revision)
    if past.passed is not None:
        withdrawn_now = tally.failed > borne and census.withdrawing(revision, past) > borne
        return Verdict.FAILED if withdrawn_now else Verdict.PASSED
    if tally.failed + failing > borne:
        return Verdict.FAILED
    finished = counting and tally.ready + tally.failed + failing == counting
    return Verdict.PASSED if finished else Verdict.PENDING


def _history(
    census: Census,
    revision: str,
    past: StageHistory,
    verdict: Verdict,
    now: datetime,
    failing: int,
) -> StageHistory:
    if verdict is Verdict.FAILED:
        return withdrawn(past)
    if verdict is Verdict.PENDING:
        return past
    if past.passed is None:
        return StageHistory(passed=now)
    present = past
    if past.left is None:
        moved = census.moved_on(revision, past, now)
        if moved is not None:
            present = left(past, moved)
    if present.left is not None and census.finished(revision, failing):
        again = begun_again(present, now)
        if census.moved_on(revision, again, now) is None:
            return again
    return present

"""A stage without targets: it joins others, and forwards their verdicts and clocks.

Its verdict for a revision is its own gate's. It is ready from the instant its gate, soak included,
was seen to hold, until the upstreams that are still at the revision are no longer enough for it; so
soaks along a path add. When they are enough again, another stretch begins. (Design §6, "Soak".)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from fanout.gates.after import Gate, needed
from fanout.gates.facts import StageHistory
from fanout.gates.rules import StageRule, Verdict
from fanout.gates.soak import NEVER, begun_again, left, through_since, withdrawn
from fanout.gates.verdict import Ledger


def forward(
    rule: StageRule,
    ask: Callable[[str], Gate],
    upstreams: Mapping[str, Ledger],
    history: Mapping[str, StageHistory],
    revisions: Iterable[str],
    now: datetime,
) -> Ledger:
    """How every revision stands in the stage; `ask` is its gate."""
    verdicts: dict[str, Verdict] = {}
    remembered: dict[str, StageHistory] = {}
    unrecorded: set[str] = set()
    for revision in dict.fromkeys([*revisions, *history]):
        past, gate = history.get(revision, NEVER), ask(revision)
        verdicts[revision] = gate.verdict
        if gate.verdict is not Verdict.PASSED:
            present = withdrawn(past)
        else:
            present = _stretch(rule, gate, upstreams, revision, past, now)
        if present.begun not in (None, past.begun) and present.left is None:
            unrecorded.add(revision)
        if present != NEVER:
            remembered[revision] = present
    return Ledger(verdicts, remembered, frozenset(unrecorded))


def _stretch(
    rule: StageRule,
    gate: Gate,
    upstreams: Mapping[str, Ledger],
    revision: str,
    past: StageHistory,
    now: datetime,
) -> StageHistory:
    """The history of a revision whose gate holds: its present stretch, or that it is over."""
    assert rule.after is not None, "validation admits no other stage without targets"
    wanted, soak = needed(rule.after), rule.after.soak
    there = _Presence(
        [
            (_since(pasts, soak, now), pasts.left)
            for step in gate.steps
            if step.verdict is Verdict.PASSED
            and (pasts := upstreams[step.stage].past(revision)).passed is not None
        ]
    )
    present = past if past.passed is not None else StageHistory(passed=now)
    if present.left is None and present.begun is not None:
        ended = there.too_few_at(wanted, present.begun)
        if ended is not None:
            present = left(present, ended)
    if present.left is not None and there.at(now) >= wanted:
        return begun_again(present, now)
    return present


def _since(past: StageHistory, soak: timedelta, now: datetime) -> datetime | None:
    """Since when a stage before is enough for the gate; a soak that was lifted is none.

    None: always, as far as anybody knows. It is asked only of what counts as passed now.
    """
    since = through_since(past, soak)
    return past.begun if since is not None and since > now else since


class _Presence:
    """Which of the stages before are at the revision, and enough for the gate, at an instant."""

    def __init__(self, spans: Sequence[tuple[datetime | None, datetime | None]]) -> None:
        self._spans = spans

    def at(self, when: datetime) -> int:
        """How many are."""
        return sum(
            (since is None or since <= when) and (until is None or until > when)
            for since, until in self._spans
        )

    def too_few_at(self, wanted: int, begun: datetime) -> datetime | None:
        """Return the first instant since then at which too few are, because some moved on."""
        ends = [until for _, until in self._spans if until is not None]
        if not ends:
            return None
        moments = sorted({begun, *(end for end in ends if end > begun)})
        return next((moment for moment in moments if self.at(moment) < wanted), None)

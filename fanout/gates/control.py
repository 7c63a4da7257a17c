"""A stage without targets: it joins others, and forwards their verdicts and clocks.

Its verdict for a revision is its own gate's. It is ready from the instant its gate, soak included,
was seen to hold, until the upstreams that are still at the revision are no longer enough for it; so
soaks along a path add. (Design §6, "Soak".)
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from fanout.gates.after import Gate, needed
from fanout.gates.facts import StageHistory
from fanout.gates.rules import StageRule, Verdict
from fanout.gates.soak import NEVER, left, withdrawn
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
        past = history.get(revision, NEVER)
        verdict = ask(revision).verdict
        verdicts[revision] = verdict
        if verdict is not Verdict.PASSED:
            present = withdrawn(past)
        elif past.passed is None:
            present = StageHistory(passed=now)
            unrecorded.add(revision)
        else:
            present = past
        ended = _ended(rule, upstreams, revision)
        if present.passed is not None and present.left is None and ended is not None:
            present = left(present, max(ended, present.passed))
        if present != NEVER:
            remembered[revision] = present
    return Ledger(verdicts, remembered, frozenset(unrecorded))


def _ended(rule: StageRule, upstreams: Mapping[str, Ledger], revision: str) -> datetime | None:
    """When too few of the stages before were still at the revision; None: enough of them are."""
    assert rule.after is not None, "validation admits no other stage without targets"
    wanted = needed(rule.after)
    pasts = [upstreams[name].past(revision) for name in rule.after.stages]
    there = [past for past in pasts if past.passed is not None]
    gone = sorted(past.left for past in there if past.left is not None)
    too_few = len(there) - len(gone) < wanted
    return gone[max(len(there) - wanted, 0)] if too_few and gone else None

"""Next changes by time: the instant before which nothing about a variant changes.

None if there is none. Where a person or a machine has to act first there is none,
whatever else ends meanwhile (docs/concepts/gates.md).
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.reasons import AWAITS_APPROVERS, Reason
from fanout.api.results import CheckResult, Hold
from fanout.gates import gate_wording
from fanout.gates.after_gate import AfterGate
from fanout.gates.record_facts import find_next
from fanout.gates.stage_tally import TalliedVariant

_NEXT_PASS = frozenset({Reason.NO_DRAFT, Reason.SWEEP_AWAITED})
"""Reasons that end by themselves in the next pass; they add nothing to what is waited for."""


class ExpectedCompletion(NamedTuple):
    """Expected completion of variants in flight: who can act, and when time alone does it."""

    who: str
    until: datetime | None = None


class InFlightVariants:
    """Variants in flight, in the order in which time alone completes them."""

    def __init__(self, variants: Iterable[TalliedVariant]) -> None:
        # Names break ties: variants in flight cannot be compared.
        timed: list[tuple[datetime, str, TalliedVariant]] = []
        for variant in variants:
            # A grant for something else may be pending: then no time completes the variant.
            if variant.state is VariantState.VERIFYING and not variant.has_pending_grant:
                ends = [at for at in (variant.fails_at, variant.ready_at) if at is not None]
                if ends:
                    timed.append((min(ends), variant.facts.name, variant))
        timed.sort()
        self._ends = [at for at, _, _ in timed]
        # With checks to answer a variant fails by time, or nothing is known of it.
        asked = (
            number
            for number, (_, _, it) in enumerate(timed)
            if it.ready_at is None or it.fails_at is not None
        )
        # The number of leading variants for which nobody has a check to answer.
        self._time_only = next(asked, len(timed))

    def completion(self, needed: int, actor: str) -> ExpectedCompletion:
        """Return when `needed` of them will be ready or failed, if time alone does it.

        The actor is `actor` where somebody still answers checks, who may do so sooner.
        """
        if needed > len(self._ends):
            return ExpectedCompletion(actor)
        needs_only_time = needed <= self._time_only
        return ExpectedCompletion(
            gate_wording.TIME_ALONE if needs_only_time else actor, self._ends[needed - 1]
        )


def expected_completion(variants: Collection[TalliedVariant], actor: str) -> ExpectedCompletion:
    """Return when all of these variants will be ready or failed, if time alone does it."""
    return InFlightVariants(variants).completion(len(variants), actor)


def next_change_of_waiting(
    holds: Sequence[Hold], checks: Sequence[CheckResult], gate: AfterGate | None, now: datetime
) -> datetime | None:
    """Return when all holds of a waiting variant are over, if time alone ends all of them.

    None if there is none. A pending check is asked, or times out, at instants of its own.
    Not every hold of the gate has to end: `gate` knows when enough of them have.
    """
    gate_holds = gate.holds if gate is not None else ()
    # Shortcut for the common case: most variants wait for nothing.
    if not (holds or checks or gate_holds):
        return None
    pending_checks = [it for it in checks if it.verdict is not Verdict.PASSED]
    timers = (it.until for it in pending_checks if it.reason not in AWAITS_APPROVERS)
    # By identity: the variants of a stage share the hold objects of its gate.
    gate_hold_ids = {id(hold) for hold in gate_holds}
    ends = [it.until for it in holds if id(it) not in gate_hold_ids and it.reason not in _NEXT_PASS]
    if gate is not None and gate_holds:
        ends.append(gate.next)
    all_end = last_end(ends) if not pending_checks else None
    return find_next([all_end, *timers], now)


def last_end(instants: Iterable[datetime | None]) -> datetime | None:
    """Return the last of the instants; None if any of them is unknown or there are none."""
    last: datetime | None = None
    for instant in instants:
        if instant is None:
            return None
        last = instant if last is None else max(last, instant)
    return last

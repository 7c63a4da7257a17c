"""Variants that change places with each other: published together, or not at all.

What one of them takes is where another one is. One push moves them all, so each is somewhere at any
time; until all may go, those that may are held.
"""

from collections.abc import Sequence
from dataclasses import replace

from fanout.gates.model import Hold, PolicyDecision
from fanout.plan.cases import Case


def held_for_others(cases: Sequence[Case], decision: PolicyDecision) -> tuple[Case, ...]:
    """All cases, those held that may go and whose partners may not; none when there are none."""
    may_go = {name for name, item in decision.variants.items() if item.publish}
    held = {
        case.spec.name: sorted(case.partners - may_go)
        for case in cases
        if case.moves and case.spec.name in may_go and case.partners - may_go
    }
    if not held:
        return ()
    return tuple(
        replace(case, waits=_hold(case, held[case.spec.name])) if case.spec.name in held else case
        for case in cases
    )


def _hold(case: Case, others: Sequence[str]) -> Hold:
    at = f"{case.spec.repository}:{case.spec.path}"
    return Hold(
        "PathTaken",
        f"{at} is where {', '.join(others)} is until it moves too; they change places in one push",
        who=f"whoever promotes {others[0]}",
    )

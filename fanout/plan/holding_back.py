"""Moves that wait for one another although every gate is open.

Variants that change places go together or not at all: one push moves them all, so each is somewhere
at any time. And a draft in another repository, with commits of people that the new draft has taken,
is cleared away before that is published: its branch is all that tells that they are in it.
"""

from collections.abc import Sequence

from fanout.gates.answer import PolicyDecision
from fanout.gates.facts import Hold
from fanout.plan.cases import Case
from fanout.values import replace


def held_back(cases: Sequence[Case], decision: PolicyDecision) -> tuple[Case, ...]:
    """All cases, with those that may go and have to wait held; none when none has to."""
    may_go = {name for name, item in decision.variants.items() if item.publish}
    held = {
        case.spec.name: hold
        for case in cases
        if case.spec.name in may_go and (hold := _cluttered(case) or _alone(case, may_go))
    }
    if not held:
        return ()
    return tuple(replace(case, waits=held.get(case.spec.name, case.waits)) for case in cases)


def _cluttered(case: Case) -> Hold | None:
    elsewhere = (it for it in case.strays if it.draft.carries and it.view.key != case.view.key)
    stray = next(elsewhere, None)
    if stray is None:
        return None
    branch = stray.draft.ref.removeprefix("refs/heads/")
    return Hold(
        "PathChanged",
        f"branch {branch} in {stray.repository}, whose commits its draft has taken, goes first",
        who="the next pass",
    )


def _alone(case: Case, may_go: set[str]) -> Hold | None:
    others = sorted(case.partners - may_go) if case.moves else []
    if not others:
        return None
    at = f"{case.spec.repository}:{case.spec.path}"
    return Hold(
        "PathTaken",
        f"{at} is where {', '.join(others)} is until it moves too; they change places in one push",
        who=f"whoever promotes {others[0]}",
    )

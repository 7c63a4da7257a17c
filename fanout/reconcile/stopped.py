"""A policy that a problem stops as a whole: nothing may go on, and what is known of it stays seen.

A tag that moved or an upstream that is away leaves drafts and publications where they are.
"""

from collections.abc import Sequence

from fanout.errors import FanoutError
from fanout.gates.answer import PolicyDecision, StageDecision, State, VariantDecision
from fanout.gates.facts import Hold
from fanout.gates.rules import StageRule, Verdict
from fanout.plan.cases import Case
from fanout.plan.status import Status


def stopped(
    rules: Sequence[StageRule], cases: Sequence[Case], status: Status, problem: FanoutError
) -> PolicyDecision:
    """The decision that holds everything for the problem; verdicts are those on record."""
    hold = Hold(str(problem.reason), str(problem))
    variants = {
        case.spec.name: VariantDecision(
            case.spec.name, case.spec.stage, "", State.HELD, holds=(hold,)
        )
        for case in cases
    }
    stages = {rule.name: _stage(rule.name, variants, status, hold) for rule in rules}
    return PolicyDecision(stages, variants, status.history, holds=(hold,))


def _stage(
    name: str, variants: dict[str, VariantDecision], status: Status, hold: Hold
) -> StageDecision:
    members = sum(variant.stage == name for variant in variants.values())
    return StageDecision(
        name=name,
        candidate="",
        verdict=Verdict.PENDING,
        verdicts={
            revision: Verdict.PASSED
            for (stage, revision), past in sorted(status.history.items())
            if stage == name and past.passed is not None
        },
        gate=Verdict.PENDING,
        holds=(hold,),
        counts={State.HELD: members} if members else {},
    )

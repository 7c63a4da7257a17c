"""The one evaluator: list, plan, sweep, manual promotion and explain all ask here. (Design §6.)

Pure and O(N) in variants: the same facts give the same answer, and applying the returned history
and asking again at the same instant changes nothing.
"""

from collections import Counter
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.gates.answer import PolicyDecision, StageDecision, State, VariantDecision, Wanted
from fanout.gates.facts import Hold, PolicyFacts, VariantFacts
from fanout.gates.instants import soonest
from fanout.gates.judgement import Judgement, survey
from fanout.gates.others import other_revisions
from fanout.gates.progress import starving, stuck
from fanout.gates.records import Action
from fanout.gates.release import StageGate
from fanout.gates.rules import StageRule
from fanout.gates.summary import gathered, soak_ends, stage_holds
from fanout.values import frozen

_GOES_ON = "the next sweep, which goes on there"


@frozen
class _Decided:
    stage: StageDecision
    variants: list[VariantDecision]
    timers: frozenset[datetime]  # when anything about its variants is to be looked at again
    unanswered: tuple[Wanted, ...]


def candidates(facts: PolicyFacts) -> dict[str, str]:
    """Each stage's candidate, "" when the policy's rule allows no revision.

    Needs nothing that is rendered: `Draft.current`, `held` and `failed` are not looked at, so that
    `evaluate` with these filled in answers with the same candidates. Raises Bug for stages that
    validation refuses.
    """
    judgement = survey(facts)
    return {rule.name: judgement.candidate(rule.name) for rule in facts.stages}


def suspended(facts: PolicyFacts) -> frozenset[str]:
    """The variants that somebody has suspended: themselves, their stage or their policy.

    Needs nothing that is rendered, so that nothing is rendered for them.
    """
    decided = (decision.action is Action.SUSPEND for decision in facts.records.decisions)
    stages = any(rule.suspended for rule in facts.stages)
    variants = any(variant.suspended for variant in facts.variants)
    if not (facts.suspended or stages or variants or any(decided)):
        return frozenset()
    censuses = survey(facts).censuses.values()
    return frozenset(
        member.facts.name
        for census in censuses
        for member in census.members
        if member.suspended is not None
    )


def ready(facts: PolicyFacts) -> frozenset[str]:
    """The variants that nobody suspended and whose published package is ready."""
    censuses = survey(facts).censuses.values()
    return frozenset(
        member.facts.name
        for census in censuses
        for member in census.members
        if member.state is State.READY and member.suspended is None
    )


def evaluate(facts: PolicyFacts) -> PolicyDecision:
    """What may happen now to every stage and variant, why no more, and when that can change.

    Raises Bug for stages that validation refuses, and for nothing that was observed or recorded.
    """
    judgement = survey(facts)
    judgement.final()
    decided = {rule.name: _decide(judgement, rule) for rule in judgement.stages}
    stages = {rule.name: decided[rule.name].stage for rule in facts.stages}
    inside = [item for rule in facts.stages for item in decided[rule.name].variants]
    outside = [_in_no_stage(facts, variant) for variant in judgement.nowhere]
    instants = [stage.next for stage in stages.values()]
    instants += [at for item in decided.values() for at in item.timers]
    timer = soonest([*instants, judgement.standing.next(facts.now)], facts.now)
    wake = soonest([timer, judgement.windows.edge, *judgement.evidence.starts], facts.now)
    return PolicyDecision(
        stages=stages,
        variants={item.name: item for item in (*inside, *outside)},
        history={
            (rule.name, revision): past
            for rule in facts.stages
            for revision, past in sorted(judgement.ledgers[rule.name].history.items())
        },
        holds=_policy_holds(judgement, stages, inside, outside, timer),
        next=wake,
        unanswered=tuple(it for item in decided.values() for it in item.unanswered),
    )


def _decide(judgement: Judgement, rule: StageRule) -> _Decided:
    """One stage, when those before it are decided."""
    census, ledger = judgement.censuses[rule.name], judgement.ledgers[rule.name]
    gate = StageGate(judgement, rule)
    variants = gate.decide_all()
    holds = stage_holds(judgement, census, gate, variants)
    hungry = starving(judgement, rule)
    if hungry is not None:
        holds = (*holds, hungry)
    judgement.decided(rule.name, holds[0].who if holds else _GOES_ON)
    others = other_revisions(judgement, rule)
    instants = (
        *(hold.until for other in others for hold in other.holds),
        gate.next(),
        soak_ends(judgement, census),
        judgement.standing.next(judgement.now, rule.name),
    )
    choice = judgement.choices[rule.name]
    stage = StageDecision(
        name=rule.name,
        candidate=choice.revision,
        verdict=ledger.verdict(choice.revision),
        verdicts=dict(sorted(ledger.verdicts.items())),
        gate=gate.gate.verdict,
        holds=holds,
        counts=_counts(variants),
        queued=choice.queued,
        others=others,
        eligible=choice.eligible,
        released=tuple(gate.released),
        halted=gate.halted is not None,
        aggregates=gate.observed,
        budget=gate.slots.budget,
        next=soonest(instants, judgement.now),
    )
    return _Decided(
        stage, variants, frozenset(gate.instants | gate.ends), tuple(gate.propagation.unanswered)
    )


def _counts(variants: list[VariantDecision]) -> dict[State, int]:
    found = Counter(item.state for item in variants)
    return {state: found[state] for state in State if state in found}


def _in_no_stage(facts: PolicyFacts, variant: VariantFacts) -> VariantDecision:
    """It enlarges no stage and blocks none. (Design §6, "What counts".)"""
    known = ", ".join(rule.name for rule in facts.stages if not rule.control_flow)
    joins = any(rule.name == variant.stage and rule.control_flow for rule in facts.stages)
    what = "which only joins others" if joins else "which the policy has not"
    said = f"stage {variant.stage}, {what}" if variant.stage else "no stage"
    hold = Hold(
        Reason.NOT_IN_STAGE,
        f"target {variant.target} is in {said}; its stages are {known}",
        "the policy's author: template.stageExpr; or whoever owns the target",
    )
    return VariantDecision(variant.name, variant.stage, "", State.HELD, holds=(hold,))


def _policy_holds(
    judgement: Judgement,
    stages: dict[str, StageDecision],
    inside: list[VariantDecision],
    outside: list[VariantDecision],
    timer: datetime | None,
) -> tuple[Hold, ...]:
    holds = [judgement.suspended] if judgement.suspended is not None else []
    holds += judgement.standing.holds
    still = stuck(judgement, stages, inside, timer)
    if still is not None:
        holds.append(still)
    for stage in stages.values():
        holds += (hold for hold in stage.holds if hold.reason == Reason.STARVING)
    return (*holds, *gathered(outside))

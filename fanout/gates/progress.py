"""Does a policy still move? `Stuck` when only a person can go on, `Starving` when it runs too fast.

A policy is stuck when nothing is in flight, nothing may go, nobody suspended it, no timer runs and
not everything is ready. What waits for a person's `promote` or for the next sweep may go. A stage
starves when two or more of the revisions that it does not have were cut short in their soak, and
nothing newer can pass at present. (Design §6, "Order and change", "Which revision".)
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.gates.answer import StageDecision, State, VariantDecision
from fanout.gates.facts import Hold
from fanout.gates.judgement import Judgement
from fanout.gates.rules import StageRule, Verdict
from fanout.gates.wording import counted, lasting, listed, stage_named

_IN_FLIGHT = (State.RELEASED, State.PROPOSED, State.VERIFYING)
_MAY_GO = frozenset(
    {
        Reason.AUTOMATION_OFF,
        Reason.SWEEP_AWAITED,
        Reason.APPROVAL_MISSING,
        Reason.DEPENDENCY_PENDING,  # what moves there is another policy's to say
    }
)
_TOO_MANY = 2


def stuck(
    judgement: Judgement,
    stages: Mapping[str, StageDecision],
    variants: Iterable[VariantDecision],
    timer: datetime | None,
) -> Hold | None:
    """The hold of a policy that only a person can set going again; it names the first gate."""
    if timer is not None or _somebody_suspended(judgement):
        return None
    if any(_soak_to_record(judgement, rule) for rule in judgement.stages):
        return None
    unready = [item for item in variants if not _through(item)]
    if not unready or any(_moves(item) for item in unready):
        return None
    if any(m.state is State.VERIFYING for c in judgement.censuses.values() for m in c.members):
        return None
    for rule in judgement.stages:
        holds = stages[rule.name].holds
        if holds:
            named, told = stage_named(rule.name), holds[0].sentence
            about = told if told.startswith(named) else f"{named}: {told}"
            sentence = f"nothing moves any more; {about}"
            return Hold(Reason.STUCK, sentence, holds[0].who, holds[0].since)
    return None


def starving(judgement: Judgement, rule: StageRule) -> Hold | None:
    """The hold of a stage that never gets a revision because those before it run ahead."""
    if rule.after is None or not rule.after.soak:
        return None
    census, candidate = judgement.censuses[rule.name], judgement.candidate(rule.name)
    if (
        candidate not in census.published
        and judgement.stage_gate(rule, candidate).verdict is Verdict.PASSED
    ):
        return None
    cut = cut_short(judgement, rule)
    if len(cut) < _TOO_MANY:
        return None
    sentence = (
        f"{stage_named(rule.name)} starves: {counted(len(cut), 'revision')} ({listed(cut)}) left"
        f" the stages before it in less than the {lasting(rule.after.soak)} that it wants;"
        " inFlight: Serialize, fewer releases or a shorter soak would let one through"
    )
    return Hold(Reason.STARVING, sentence, "the policy's author: spec.inFlight")


def cut_short(judgement: Judgement, rule: StageRule) -> dict[str, Hold]:
    """What the stage does not have and can have no more, and the soak that ended too early."""
    if rule.after is None or not rule.after.soak:
        return {}
    ages, published = judgement.ages, judgement.censuses[rule.name].published
    seen = {name for stage in rule.after.stages for name in judgement.ledgers[stage].history}
    found: dict[str, Hold] = {}
    for name in sorted(seen):
        if ages.allows(name) and all(ages.older(has, name) for has in published):
            gate = judgement.stage_gate(rule, name)
            told = (hold for hold in gate.holds if hold.reason == Reason.SOAK_CUT_SHORT)
            ended = next(told, None) if not gate.possible else None
            if ended is not None:
                found[name] = ended
    return found


def _soak_to_record(judgement: Judgement, rule: StageRule) -> bool:
    """Does the stage wait for a soak whose clock the next sweep starts?"""
    after, candidate = rule.after, judgement.candidate(rule.name)
    if after is None or not after.soak:
        return False
    return any(candidate in judgement.ledgers[name].unrecorded for name in after.stages)


def _somebody_suspended(judgement: Judgement) -> bool:
    return judgement.suspended is not None or any(
        census.suspended is not None or any(it.suspended is not None for it in census.members)
        for census in judgement.censuses.values()
    )


def _through(item: VariantDecision) -> bool:
    """Does nobody wait for it: is it ready, taken out, or not there to take anything?"""
    if item.state in (State.READY, State.SKIPPED):
        return True
    return item.state is State.HELD and any(hold.reason == Reason.OFFLINE for hold in item.holds)


def _moves(item: VariantDecision) -> bool:
    """Is it in flight, or may it go: now, by the next pass or by a person's leave?"""
    if item.release or item.publish or item.state in _IN_FLIGHT:
        return True
    if item.state is not State.DRAFTED:
        return False
    found = {hold.reason for hold in item.holds}
    return Reason.NO_DRAFT in found or found <= _MAY_GO

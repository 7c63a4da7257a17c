"""Why a stage takes no other revision: a newer one that waits, an older one that was dropped.

The newest of those that queue waits for its own gate, for a pin to go, or for the revision that is
in hand. An older one that can pass no more is told until the stage has taken the one after it.
"""

from fanout.api.reasons import Reason
from fanout.gates.answer import OtherRevision
from fanout.gates.facts import Hold
from fanout.gates.judgement import Judgement
from fanout.gates.pins import Pin
from fanout.gates.progress import cut_short
from fanout.gates.rules import StageRule, Verdict
from fanout.gates.wording import stage_named


def other_revisions(judgement: Judgement, rule: StageRule) -> tuple[OtherRevision, ...]:
    """The newest revision behind the candidate, and the last before it that was dropped."""
    return (*_queued(judgement, rule), *_dropped(judgement, rule))


def _queued(judgement: Judgement, rule: StageRule) -> tuple[OtherRevision, ...]:
    choice = judgement.choices[rule.name]
    if not choice.queued or rule.control_flow:
        return ()
    newest, pin = choice.queued[-1], judgement.pin(rule)
    if pin is not None:
        return (OtherRevision(newest, (_pinned(rule, newest, pin),)),)
    gate = judgement.stage_gate(rule, newest)
    holds = gate.holds if gate.verdict is not Verdict.PASSED else ()
    if choice.kept is not None:
        holds = (*holds, choice.kept)
    return (OtherRevision(newest, holds),) if holds else ()


def _pinned(rule: StageRule, newest: str, pin: Pin) -> Hold:
    sentence = f"{newest} waits: {stage_named(rule.name)} stays at {pin.revision}"
    if pin.decision is None:
        return Hold(
            Reason.PINNED, f"{sentence}, to which its policy pins it", "the policy's author"
        )
    said = pin.decision
    sentence = f"{sentence}, by decision {said.name} of {said.by}"
    return Hold(Reason.PINNED, sentence, "whoever may decide: fanout withdraw", pin.at)


def _dropped(judgement: Judgement, rule: StageRule) -> tuple[OtherRevision, ...]:
    candidate, ages = judgement.candidate(rule.name), judgement.ages
    if candidate in judgement.censuses[rule.name].published:
        return ()
    found = cut_short(judgement, rule)
    last = ages.newest(name for name in found if ages.older(name, candidate))
    return (OtherRevision(last, (found[last],), newer=False),) if last else ()

"""Why, why not yet, since when, who can do what about it, and when it can change next.

Built from the facts and the evaluator's own answer, so that an explanation never says anything else
than what a sweep does.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput
from fanout.gates.after import required
from fanout.gates.answer import (
    CheckView,
    OtherRevision,
    PolicyDecision,
    StageDecision,
    State,
    VariantDecision,
)
from fanout.gates.facts import Hold, PolicyFacts, StageHistory, VariantFacts
from fanout.gates.instants import soonest
from fanout.gates.rules import HAND_WRITTEN, StageRule, Verdict
from fanout.gates.soak import NEVER, over_at, soaked
from fanout.gates.wording import counted, lasting, listed, stage_named
from fanout.values import frozen, replace

_HALTED = str(Reason.HALTED)
_NOBODY_WAITS = frozenset({Reason.SKIPPED, Reason.OFFLINE, Reason.PINNED})


@frozen
class Explanation:
    """One line of the tree, and what it rests on."""

    subject: str  # "policy monitoring", "stage prod", "variant x", "check e2e", a reason
    state: str  # a verdict or a state
    sentence: str
    since: datetime | None = None
    until: datetime | None = None  # when it can next change by itself
    who: str = ""  # who can do something about it
    children: tuple["Explanation", ...] = ()
    waits: bool = False  # for anything, whatever its state


def explain_policy(facts: PolicyFacts, decision: PolicyDecision) -> Explanation:
    """The policy, with a child for each of its holds and for each stage, without their variants."""
    stages = tuple(_stage(facts, decision, rule, with_variants=False) for rule in facts.stages)
    ready = sum(item.state is State.READY for item in decision.variants.values())
    sentence = f"{ready} of {counted(len(decision.variants), 'variant')} ready"
    views = decision.stages.values()
    of_stages = [hold for view in views for hold in view.holds]
    first = next(iter([*decision.holds, *(it for it in of_stages if it.reason == _HALTED)]), None)
    if first is not None:
        sentence += f"; {first.sentence}"
    through = ready == len(decision.variants)
    instants = [*(view.next for view in views), *(hold.until for hold in decision.holds)]
    return Explanation(
        _title(facts),
        State.READY.value if through else _waiting([*decision.holds, *of_stages]),
        sentence,
        until=soonest(instants, facts.now),
        who=_first_who([*decision.holds, *of_stages]),
        children=(*map(_held, decision.holds), *stages),
        waits=not through
        or bool(decision.holds)
        or any(_waited_for(view) for view in views if view.counts),
    )


def _title(facts: PolicyFacts) -> str:
    """A variant written by hand is judged as the only one of a stage without a name."""
    by_hand = [rule.name for rule in facts.stages] == [HAND_WRITTEN]
    return f"{'variant' if by_hand else 'policy'} {facts.name}"


def explain_stage(facts: PolicyFacts, decision: PolicyDecision, stage: str) -> Explanation:
    """One stage: its gate, its holds, and its variants that are not ready.

    Raises InvalidInput when the policy has no such stage.
    """
    for rule in facts.stages:
        if rule.name == stage:
            return _stage(facts, decision, rule, with_variants=True)
    known = ", ".join(rule.name for rule in facts.stages)
    raise InvalidInput(
        f"policy {facts.name} has no stage {stage}", remedy=f"choose one of: {known}"
    )


def explain_variant(facts: PolicyFacts, decision: PolicyDecision, variant: str) -> Explanation:
    """One variant: its checks, its holds, and the gate of its stage while it waits there.

    Raises InvalidInput when the policy has no such variant.
    """
    view = decision.variants.get(variant)
    found = next((item for item in facts.variants if item.name == variant), None)
    if view is None or found is None:
        raise InvalidInput(
            f"policy {facts.name} has no variant {variant}", remedy="see: fanout get variants"
        )
    rule = next((item for item in facts.stages if item.name == view.stage), None)
    line = _variant(found, view)
    if rule is None or view.state in (State.READY, State.VERIFYING):
        return line
    gate = _gate(facts, decision, rule, decision.stages[rule.name].candidate)
    return replace(line, children=(*line.children, *gate))


def _stage(
    facts: PolicyFacts, decision: PolicyDecision, rule: StageRule, *, with_variants: bool
) -> Explanation:
    view = decision.stages[rule.name]
    children = [*_gate(facts, decision, rule, view.candidate), *map(_held, view.holds)]
    children += (line for other in view.others for line in _other(other, told=with_variants))
    if with_variants:
        children += (
            _variant(item, decision.variants[item.name])
            for item in sorted(facts.variants, key=lambda item: item.name)
            if item.stage == rule.name and decision.variants[item.name].state is not State.READY
        )
    past = _on_record(facts, decision, rule.name, view.candidate)
    return Explanation(
        stage_named(rule.name),
        view.verdict.value,
        _about_stage(view),
        since=past.passed,
        until=view.next,
        who=_first_who(view.holds),
        children=tuple(children),
        waits=view.verdict is not Verdict.PASSED or _waited_for(view),
    )


def _waited_for(view: StageDecision) -> bool:
    """Does anybody wait for something in a stage, though its candidate may have passed?

    Not for who was taken out, and not for a newer revision where the stage is to stay as it is.
    """
    newer = (hold for other in view.others if other.newer for hold in other.holds)
    return any(hold.reason not in _NOBODY_WAITS for hold in (*view.holds, *newer))


def _other(other: OtherRevision, *, told: bool) -> Iterator[Explanation]:
    """Why the stage does not take another revision than its candidate.

    `told`: of a stage whose own remarks say what it is pinned to.
    """
    for hold in other.holds:
        if told and hold.reason == Reason.PINNED:
            continue
        line = _held(hold)
        yield replace(line, subject=f"revision {other.revision}", state=str(hold.reason))


def _about_stage(view: StageDecision) -> str:
    if not view.candidate:
        return "no candidate: the policy's rule allows no revision"
    counts = ", ".join(f"{number} {state.value}" for state, number in view.counts.items())
    sentence = f"candidate {view.candidate}: {counts or 'no variants'}"
    if view.queued:
        sentence += f"; queued behind it: {listed(view.queued)}"
    return sentence


def _gate(
    facts: PolicyFacts, decision: PolicyDecision, rule: StageRule, candidate: str
) -> tuple[Explanation, ...]:
    """`after` as a line, with one line for each stage before."""
    if rule.after is None or not candidate:
        return ()
    lines = tuple(_upstream(facts, decision, name, candidate, rule) for name in rule.after.stages)
    verdict = decision.stages[rule.name].gate
    sentence = (
        f"{required(rule.after)} of {', '.join(rule.after.stages)} must have passed {candidate}"
    )
    return (Explanation("after", verdict.value, sentence, children=lines),)


def _upstream(
    facts: PolicyFacts, decision: PolicyDecision, name: str, revision: str, rule: StageRule
) -> Explanation:
    assert rule.after is not None
    view = decision.stages[name]
    verdict = view.verdicts.get(revision, Verdict.PENDING)
    past = _on_record(facts, decision, name, revision)
    sentence = _soak_sentence(past, verdict, facts.now, rule)
    return Explanation(
        stage_named(name),
        verdict.value,
        f"{revision} {sentence}",
        since=past.passed,
        until=_future(over_at(past, rule.after.soak), facts.now),
        who="" if verdict is Verdict.PASSED else _first_who(view.holds),
    )


def _on_record(
    facts: PolicyFacts, decision: PolicyDecision, stage: str, revision: str
) -> StageHistory:
    """The history, without an instant that moves with the clock until a sweep records it."""
    key = (stage, revision)
    known = facts.history.get(key, NEVER).passed is not None
    return decision.history.get(key, NEVER) if known else NEVER


def _soak_sentence(past: StageHistory, verdict: Verdict, now: datetime, rule: StageRule) -> str:
    assert rule.after is not None
    soak = rule.after.soak
    if verdict is not Verdict.PASSED:
        return "has failed" if verdict is Verdict.FAILED else "has not passed yet"
    if not soak:
        return "has passed"
    if past.passed is None:
        return f"has passed; its soak of {lasting(soak)} starts with the next sweep"
    if soaked(past, now) >= soak:
        return f"has passed and soaked for {lasting(soak)}"
    if past.left is not None:
        return f"has passed; the stage moved on after {lasting(past.soaked)} of {lasting(soak)}"
    return f"has passed and soaks for {lasting(soak)}"


def _variant(facts: VariantFacts, view: VariantDecision) -> Explanation:
    published = facts.published
    has = f"has {published.revision}" if published is not None else "has nothing published"
    sentence = f"{has}; candidate {view.candidate or 'none'}"
    if view.publish:
        sentence += "; may be published now"
    elif view.release:
        sentence += "; may be released now"
    elif view.holds:
        sentence += f"; {view.holds[0].sentence}"
    told = {check.sentence for check in view.checks}
    return Explanation(
        f"variant {view.name}",
        view.state.value,
        sentence,
        since=_since(facts, view),
        until=view.next,
        who=_first_who(view.holds),
        waits=view.state is not State.READY
        or any(hold.reason not in _NOBODY_WAITS for hold in view.holds),
        children=(
            *map(_check, view.checks),
            *(_held(hold) for hold in view.holds if hold.sentence not in told),
        ),
    )


def _since(facts: VariantFacts, view: VariantDecision) -> datetime | None:
    if view.state in (State.READY, State.VERIFYING, State.FAILED) and facts.published is not None:
        answered = [check.at for check in view.checks if check.at is not None]
        return max([facts.published.at, *answered])
    if view.state in (State.RELEASED, State.PROPOSED) and facts.grant is not None:
        return facts.grant.at
    return view.holds[0].since if view.holds else None


def _check(view: CheckView) -> Explanation:
    return Explanation(
        f"check {view.name}", view.verdict.value, view.sentence, view.at, view.until, view.who
    )


def _held(hold: Hold) -> Explanation:
    return Explanation(str(hold.reason), "Held", hold.sentence, hold.since, hold.until, hold.who)


def _waiting(holds: Iterable[Hold]) -> str:
    """The state of a policy that is not ready: what only a person ends goes first."""
    found = {str(hold.reason) for hold in holds}
    return next((it for it in (str(Reason.STUCK), _HALTED) if it in found), Verdict.PENDING.value)


def _first_who(holds: Iterable[Hold]) -> str:
    return next((hold.who for hold in holds if hold.who), "")


def _future(at: datetime | None, now: datetime) -> datetime | None:
    return at if at is not None and at > now else None

"""Explanation of a policy, stage or variant: what blocks it and who can unblock it.

Built from the facts and the evaluator's own result, so an explanation always agrees
with what a sweep does.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from fanout.api.durations import format_duration
from fanout.api.gate_vocabulary import Verdict
from fanout.api.reasons import Reason
from fanout.api.text_fields import pluralize
from fanout.errors import InvalidInput
from fanout.gates.after_gate import format_requirement
from fanout.gates.evaluation_results import (
    AlternativeRevision,
    CheckResult,
    PolicyEvaluation,
    StageEvaluation,
    VariantEvaluation,
    VariantState,
)
from fanout.gates.gate_facts import Hold, PolicyFacts, RevisionHistory, VariantFacts
from fanout.gates.gate_rules import HAND_WRITTEN, StageRule
from fanout.gates.gate_wording import format_names, label_stage
from fanout.gates.soak import NO_HISTORY, compute_soak, soak_ends_at
from fanout.gates.timestamps import find_next
from fanout.values import frozen, replace

_HALTED = str(Reason.HALTED)
_NOT_BLOCKING = frozenset({Reason.SKIPPED, Reason.OFFLINE, Reason.PINNED})


@frozen
class Explanation:
    """One line of the explanation tree and its children."""

    subject: str  # "policy monitoring", "stage prod", "variant x", "check e2e", a reason
    state: str  # a verdict or a state
    sentence: str
    since: datetime | None = None
    until: datetime | None = None  # when it can next change without an event
    actor: str = ""  # who can unblock it
    children: tuple["Explanation", ...] = ()
    waits: bool = False  # for anything, whatever its state


def explain_policy(policy_facts: PolicyFacts, evaluation: PolicyEvaluation) -> Explanation:
    """Explain the policy, with a child for each of its holds and stages."""
    stages = tuple(
        _explain_stage(policy_facts, evaluation, stage_rule, with_variants=False)
        for stage_rule in policy_facts.stages
    )
    ready = sum(item.state is VariantState.READY for item in evaluation.variants.values())
    sentence = f"{ready} of {pluralize(len(evaluation.variants), 'variant')} ready"
    stage_evaluations = evaluation.stages.values()
    stage_holds = [
        hold for stage_evaluation in stage_evaluations for hold in stage_evaluation.holds
    ]
    first_hold = next(
        iter([*evaluation.holds, *(it for it in stage_holds if it.reason == _HALTED)]), None
    )
    if first_hold is not None:
        sentence += f"; {first_hold.sentence}"
    all_ready = ready == len(evaluation.variants)
    instants = [
        *(stage_evaluation.next for stage_evaluation in stage_evaluations),
        *(hold.until for hold in evaluation.holds),
    ]
    return Explanation(
        _title(policy_facts),
        VariantState.READY.value if all_ready else _policy_state([*evaluation.holds, *stage_holds]),
        sentence,
        until=find_next(instants, policy_facts.now),
        actor=_first_actor([*evaluation.holds, *stage_holds]),
        children=(*map(_explain_hold, evaluation.holds), *stages),
        waits=not all_ready
        or bool(evaluation.holds)
        or any(
            _is_waited_for(stage_evaluation)
            for stage_evaluation in stage_evaluations
            if stage_evaluation.counts
        ),
    )


def _title(policy_facts: PolicyFacts) -> str:
    """Name the policy. A hand-written variant is evaluated as the only one of an unnamed stage."""
    by_hand = [stage_rule.name for stage_rule in policy_facts.stages] == [HAND_WRITTEN]
    return f"{'variant' if by_hand else 'policy'} {policy_facts.name}"


def explain_stage(
    policy_facts: PolicyFacts, evaluation: PolicyEvaluation, stage: str
) -> Explanation:
    """Explain one stage: its gate, its holds, and its variants that are not ready.

    Raises InvalidInput if the policy has no such stage.
    """
    for stage_rule in policy_facts.stages:
        if stage_rule.name == stage:
            return _explain_stage(policy_facts, evaluation, stage_rule, with_variants=True)
    stage_names = ", ".join(stage_rule.name for stage_rule in policy_facts.stages)
    raise InvalidInput(
        f"policy {policy_facts.name} has no stage {stage}", remedy=f"choose one of: {stage_names}"
    )


def explain_variant(
    policy_facts: PolicyFacts, evaluation: PolicyEvaluation, variant_name: str
) -> Explanation:
    """Explain one variant: its checks, its holds, and its stage's gate.

    Raises InvalidInput if the policy has no such variant.
    """
    variant_evaluation = evaluation.variants.get(variant_name)
    variant_facts = next(
        (item for item in policy_facts.variants if item.name == variant_name), None
    )
    if variant_evaluation is None or variant_facts is None:
        raise InvalidInput(
            f"policy {policy_facts.name} has no variant {variant_name}",
            remedy="see: fanout get variants",
        )
    stage_rule = next(
        (item for item in policy_facts.stages if item.name == variant_evaluation.stage), None
    )
    explanation = _explain_variant(variant_facts, variant_evaluation)
    # The gate is behind a variant that has its candidate, so it explains nothing about it.
    if stage_rule is None or variant_evaluation.state in (
        VariantState.READY,
        VariantState.VERIFYING,
    ):
        return explanation
    gate = _explain_gate(
        policy_facts, evaluation, stage_rule, evaluation.stages[stage_rule.name].candidate
    )
    return replace(explanation, children=(*explanation.children, *gate))


def _explain_stage(
    policy_facts: PolicyFacts,
    evaluation: PolicyEvaluation,
    stage_rule: StageRule,
    *,
    with_variants: bool,
) -> Explanation:
    stage_evaluation = evaluation.stages[stage_rule.name]
    children = [
        *_explain_gate(policy_facts, evaluation, stage_rule, stage_evaluation.candidate),
        *map(_explain_hold, stage_evaluation.holds),
    ]
    children += (
        line
        for alternative in stage_evaluation.alternatives
        for line in _explain_alternative(alternative, omit_pinned=with_variants)
    )
    if with_variants:
        children += (
            _explain_variant(item, evaluation.variants[item.name])
            for item in sorted(policy_facts.variants, key=lambda item: item.name)
            if item.stage == stage_rule.name
            and evaluation.variants[item.name].state is not VariantState.READY
        )
    history = _recorded_history(
        policy_facts, evaluation, stage_rule.name, stage_evaluation.candidate
    )
    return Explanation(
        label_stage(stage_rule.name),
        stage_evaluation.verdict.value,
        _summarize_stage(stage_evaluation),
        since=history.passed,
        until=stage_evaluation.next,
        actor=_first_actor(stage_evaluation.holds),
        children=tuple(children),
        waits=stage_evaluation.verdict is not Verdict.PASSED or _is_waited_for(stage_evaluation),
    )


def _is_waited_for(stage_evaluation: StageEvaluation) -> bool:
    """Return whether the stage waits for anything, even after its candidate passed.

    Skipped, offline and pinned variants are not waited for, nor is a newer revision behind
    a pin.
    """
    newer_holds = (
        hold
        for alternative in stage_evaluation.alternatives
        if alternative.newer
        for hold in alternative.holds
    )
    return any(hold.reason not in _NOT_BLOCKING for hold in (*stage_evaluation.holds, *newer_holds))


def _explain_alternative(
    alternative: AlternativeRevision, *, omit_pinned: bool
) -> Iterator[Explanation]:
    """Explain why the stage does not take another revision than its candidate.

    `omit_pinned` leaves out the pin, which the stage's own lines already name.
    """
    for hold in alternative.holds:
        if omit_pinned and hold.reason == Reason.PINNED:
            continue
        explanation = _explain_hold(hold)
        yield replace(
            explanation, subject=f"revision {alternative.revision}", state=str(hold.reason)
        )


def _summarize_stage(stage_evaluation: StageEvaluation) -> str:
    if not stage_evaluation.candidate:
        return "no candidate: the policy's rule allows no revision"
    counts = ", ".join(
        f"{number} {state.value}" for state, number in stage_evaluation.counts.items()
    )
    sentence = f"candidate {stage_evaluation.candidate}: {counts or 'no variants'}"
    if stage_evaluation.queued:
        sentence += f"; queued behind it: {format_names(stage_evaluation.queued)}"
    return sentence


def _explain_gate(
    policy_facts: PolicyFacts, evaluation: PolicyEvaluation, stage_rule: StageRule, candidate: str
) -> tuple[Explanation, ...]:
    """Explain `after`, with one child for each upstream stage."""
    if stage_rule.after is None or not candidate:
        return ()
    lines = tuple(
        _explain_upstream(policy_facts, evaluation, name, candidate, stage_rule)
        for name in stage_rule.after.stages
    )
    verdict = evaluation.stages[stage_rule.name].gate
    sentence = (
        f"{format_requirement(stage_rule.after)} of {', '.join(stage_rule.after.stages)} must"
        f" have passed {candidate}"
    )
    return (Explanation("after", verdict.value, sentence, children=lines),)


def _explain_upstream(
    policy_facts: PolicyFacts,
    evaluation: PolicyEvaluation,
    stage: str,
    revision: str,
    stage_rule: StageRule,
) -> Explanation:
    assert stage_rule.after is not None
    stage_evaluation = evaluation.stages[stage]
    verdict = stage_evaluation.verdicts.get(revision, Verdict.PENDING)
    history = _recorded_history(policy_facts, evaluation, stage, revision)
    sentence = _soak_sentence(history, verdict, policy_facts.now, stage_rule)
    return Explanation(
        label_stage(stage),
        verdict.value,
        f"{revision} {sentence}",
        since=history.passed,
        until=_if_future(soak_ends_at(history, stage_rule.after.soak), policy_facts.now),
        actor="" if verdict is Verdict.PASSED else _first_actor(stage_evaluation.holds),
    )


def _recorded_history(
    policy_facts: PolicyFacts, evaluation: PolicyEvaluation, stage: str, revision: str
) -> RevisionHistory:
    """Return the recorded history of a revision.

    An instant that moves with the clock until a sweep writes it is left out.
    """
    key = (stage, revision)
    is_recorded = policy_facts.history.get(key, NO_HISTORY).passed is not None
    return evaluation.history.get(key, NO_HISTORY) if is_recorded else NO_HISTORY


def _soak_sentence(
    history: RevisionHistory, verdict: Verdict, now: datetime, stage_rule: StageRule
) -> str:
    assert stage_rule.after is not None
    soak = stage_rule.after.soak
    if verdict is not Verdict.PASSED:
        return "has failed" if verdict is Verdict.FAILED else "has not passed yet"
    if not soak:
        return "has passed"
    if history.passed is None:
        return f"has passed; its soak of {format_duration(soak)} starts with the next sweep"
    if compute_soak(history, now) >= soak:
        return f"has passed and soaked for {format_duration(soak)}"
    if history.left is not None:
        return (
            f"has passed; the stage moved on after {format_duration(history.soaked)} of"
            f" {format_duration(soak)}"
        )
    return f"has passed and soaks for {format_duration(soak)}"


def _explain_variant(
    variant_facts: VariantFacts, variant_evaluation: VariantEvaluation
) -> Explanation:
    publication = variant_facts.published
    publication_phrase = (
        f"has {publication.revision}" if publication is not None else "has nothing published"
    )
    sentence = f"{publication_phrase}; candidate {variant_evaluation.candidate or 'none'}"
    if variant_evaluation.publish:
        sentence += "; may be published now"
    elif variant_evaluation.release:
        sentence += "; may be released now"
    elif variant_evaluation.holds:
        sentence += f"; {variant_evaluation.holds[0].sentence}"
    check_sentences = {check.sentence for check in variant_evaluation.checks}
    return Explanation(
        f"variant {variant_evaluation.name}",
        variant_evaluation.state.value,
        sentence,
        since=_since(variant_facts, variant_evaluation),
        until=variant_evaluation.next,
        actor=_first_actor(variant_evaluation.holds),
        waits=variant_evaluation.state is not VariantState.READY
        or any(hold.reason not in _NOT_BLOCKING for hold in variant_evaluation.holds),
        children=(
            *map(_explain_check, variant_evaluation.checks),
            # An unanswered check is a hold as well and would be printed twice.
            *(
                _explain_hold(hold)
                for hold in variant_evaluation.holds
                if hold.sentence not in check_sentences
            ),
        ),
    )


def _since(variant_facts: VariantFacts, variant_evaluation: VariantEvaluation) -> datetime | None:
    if (
        variant_evaluation.state
        in (VariantState.READY, VariantState.VERIFYING, VariantState.FAILED)
        and variant_facts.published is not None
    ):
        answered = [check.at for check in variant_evaluation.checks if check.at is not None]
        return max([variant_facts.published.at, *answered])
    if (
        variant_evaluation.state in (VariantState.RELEASED, VariantState.PROPOSED)
        and variant_facts.grant is not None
    ):
        return variant_facts.grant.at
    return variant_evaluation.holds[0].since if variant_evaluation.holds else None


def _explain_check(check_result: CheckResult) -> Explanation:
    return Explanation(
        f"check {check_result.name}",
        check_result.verdict.value,
        check_result.sentence,
        check_result.at,
        check_result.until,
        check_result.actor,
    )


def _explain_hold(hold: Hold) -> Explanation:
    return Explanation(str(hold.reason), "Held", hold.sentence, hold.since, hold.until, hold.actor)


def _policy_state(holds: Iterable[Hold]) -> str:
    """Return the state of a policy that is not ready. What only a person can end comes first."""
    reasons = {str(hold.reason) for hold in holds}
    return next((it for it in (str(Reason.STUCK), _HALTED) if it in reasons), Verdict.PENDING.value)


def _first_actor(holds: Iterable[Hold]) -> str:
    return next((hold.actor for hold in holds if hold.actor), "")


def _if_future(at: datetime | None, now: datetime) -> datetime | None:
    return at if at is not None and at > now else None

"""The gate evaluator, shared by list, plan, sweep, manual promotion and explain.

Pure and O(N) in variants: equal facts give an equal evaluation, and applying the returned history
and evaluating again at the same instant changes nothing (docs/concepts/gates.md).
"""

from collections import Counter
from collections.abc import Mapping

from fanout.api.gate_vocabulary import Action, StageState, VariantState, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import Hold, StageResult, VariantResult
from fanout.gates import gate_wording
from fanout.gates.gate_evaluation import GateEvaluation, start_evaluation
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts, VariantFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.record_facts import find_next
from fanout.gates.release_holds import hold_sets
from fanout.gates.stage_holds import (
    find_others,
    group_holds,
    list_stage_holds,
    next_soak_end,
    stuck_hold,
)
from fanout.gates.variant_release import StageReleaseEvaluator
from fanout.values import Value


class _EvaluatedStage(Value):
    """A stage whose variants are evaluated before those of the stages after it."""

    release_evaluator: StageReleaseEvaluator
    variants: list[VariantResult]
    holds: tuple[Hold, ...]


def choose_candidates(policy_facts: PolicyFacts) -> dict[str, str]:
    """Choose the candidate of each stage, "" where the policy's rule allows no revision.

    Nothing rendered is needed: the drafts of `DraftFacts` and their failures are not read, so
    `evaluate_gates` with these filled in yields the same candidates. Raises Bug for stages
    that validation refuses.
    """
    evaluation = start_evaluation(policy_facts)
    return {
        stage_rule.name: evaluation.candidate(stage_rule.name) for stage_rule in policy_facts.stages
    }


def find_suspended(policy_facts: PolicyFacts) -> frozenset[str]:
    """Find the variants that are suspended: themselves, by their stage or by their policy.

    Nothing rendered is needed, so suspended variants need not be rendered.
    """
    has_suspend_decisions = (
        decision.spec.action is Action.SUSPEND for decision in policy_facts.records.decisions
    )
    stage_suspended = any(stage_rule.suspended for stage_rule in policy_facts.stages)
    variant_suspended = any(variant.suspended for variant in policy_facts.variants)
    if not (
        policy_facts.suspended or stage_suspended or variant_suspended or any(has_suspend_decisions)
    ):
        return frozenset()
    variants = start_evaluation(policy_facts).variants
    return frozenset(it.facts.name for it in variants if it.suspended is not None)


def find_ready(policy_facts: PolicyFacts) -> frozenset[str]:
    """Find the variants whose published package is ready and that are not suspended."""
    variants = start_evaluation(policy_facts).variants
    ready = (it for it in variants if it.state is VariantState.READY)
    return frozenset(it.facts.name for it in ready if it.suspended is None)


def evaluate_gates(policy_facts: PolicyFacts) -> PolicyEvaluation:
    """Evaluate every stage and variant. Raises Bug for stages that validation refuses."""
    evaluation = start_evaluation(policy_facts)
    evaluation.apply_candidates()
    unstaged = [_evaluate_unstaged(policy_facts, variant) for variant in evaluation.unstaged]
    # Others may have to wait for one that is in no stage.
    results = {it.name: it for it in unstaged}
    # Upstream stages first: the holds of a stage name who can unblock the stages before it.
    evaluated: dict[str, _EvaluatedStage] = {}
    for stage_rule in evaluation.stages:
        release_evaluator = StageReleaseEvaluator(evaluation, stage_rule)
        variants = release_evaluator.evaluate_variants()
        results |= {it.name: it for it in variants}
        hold_sets(policy_facts.sets, results, policy_facts.now)
        variants = [results[it.name] for it in variants]
        tally = evaluation.tallies[stage_rule.name]
        holds = list_stage_holds(evaluation, tally, release_evaluator, variants)
        evaluation.record_actor(stage_rule.name, holds[0].who if holds else gate_wording.NEXT_SWEEP)
        evaluated[stage_rule.name] = _EvaluatedStage(release_evaluator, variants, holds)
    stages = {
        it.name: _build_stage(evaluation, it, evaluated[it.name], results)
        for it in policy_facts.stages
    }
    staged = [
        results[variant.name]
        for it in policy_facts.stages
        for variant in evaluated[it.name].variants
    ]
    instants = [stage.next for stage in stages.values()]
    for item in evaluated.values():
        instants += item.release_evaluator.check_times | item.release_evaluator.expiry_times
    timer = find_next(
        [*instants, evaluation.active_decisions.next_change(policy_facts.now)], policy_facts.now
    )
    next_change = find_next(
        [timer, evaluation.windows.edge, *evaluation.evidence.future_starts], policy_facts.now
    )
    stuck = stuck_hold(evaluation, stages, staged, timer)
    return PolicyEvaluation(
        stages=stages,
        variants={item.name: item for item in (*staged, *unstaged)},
        history={
            (stage_rule.name, revision): history
            for stage_rule in policy_facts.stages
            for revision, history in sorted(evaluation.verdicts[stage_rule.name].histories.items())
        },
        holds=(
            *([evaluation.suspended] if evaluation.suspended is not None else []),
            *evaluation.active_decisions.holds,
            *([stuck] if stuck is not None else []),
            *(
                it
                for stage in stages.values()
                for it in stage.holds
                if it.reason == Reason.STARVING
            ),
            *group_holds(unstaged),
        ),
        next=next_change,
        unanswered=tuple(
            request
            for item in evaluated.values()
            for request in item.release_evaluator.propagation.unanswered
        ),
    )


def _build_stage(
    evaluation: GateEvaluation,
    stage_rule: StageRule,
    evaluated: _EvaluatedStage,
    results: Mapping[str, VariantResult],
) -> StageResult:
    """Build the result of one stage after all variants of all stages are evaluated."""
    tally, verdicts = evaluation.tallies[stage_rule.name], evaluation.verdicts[stage_rule.name]
    release_evaluator, holds = evaluated.release_evaluator, evaluated.holds
    variants = [results[it.name] for it in evaluated.variants]
    # A variant may exchange its place with one of a later stage.
    if any(it is not before for it, before in zip(variants, evaluated.variants, strict=True)):
        holds = list_stage_holds(evaluation, tally, release_evaluator, variants)
    others = find_others(evaluation, stage_rule)
    instants = (
        *(hold.until for other in others for hold in other.holds),
        release_evaluator.next_change(),
        next_soak_end(evaluation, tally),
        evaluation.active_decisions.next_change(evaluation.now, stage_rule.name),
    )
    choice = evaluation.choices[stage_rule.name]
    verdict, halted = verdicts.verdict(choice.revision), release_evaluator.halted is not None
    aggregates, counter = release_evaluator.initial_aggregates, Counter(it.state for it in variants)
    applies = {
        StageState.HALTED: halted,
        StageState.FAILED: verdict is Verdict.FAILED,
        StageState.SUSPENDED: tally.suspended is not None,
        StageState.PASSED: verdict is Verdict.PASSED,
    }
    return StageResult(
        name=stage_rule.name,
        candidate=choice.revision,
        state=next((state for state, is_so in applies.items() if is_so), StageState.PENDING),
        verdict=verdict,
        verdicts=dict(sorted(verdicts.by_revision.items())),
        gate=release_evaluator.gate.verdict,
        holds=holds,
        counts={state: counter[state] for state in VariantState if state in counter},
        queued=choice.queued,
        others=others,
        eligible=choice.eligible,
        released=tuple(release_evaluator.released),
        halted=halted,
        aggregates=aggregates,
        in_flight=aggregates.in_flight,
        budget=release_evaluator.budget.limit,
        next=find_next(instants, evaluation.now),
    )


def _evaluate_unstaged(policy_facts: PolicyFacts, variant_facts: VariantFacts) -> VariantResult:
    """Evaluate a variant in no stage, which is held and blocks no stage."""
    stage, stage_rules = variant_facts.stage, policy_facts.stages
    if not stage:
        problem = "is in no stage"
    elif any(it.name == stage and it.control_flow for it in stage_rules):
        problem = f"is in stage {stage}, which is a control-flow stage"
    else:
        problem = f"is in stage {stage}, which the policy does not declare"
    choices = ", ".join(it.name for it in stage_rules if not it.control_flow)
    sentence = f"target {variant_facts.target} {problem}; choose one of: {choices}"
    actor = "the policy's author (template.stageExpr) or the owner of the target"
    hold = Hold(Reason.NOT_IN_STAGE, sentence, actor)
    return VariantResult(
        name=variant_facts.name, stage=stage, state=VariantState.HELD, holds=(hold,)
    )

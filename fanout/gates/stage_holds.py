"""Holds of stages and policies, starvation, and policies that are stuck.

The holds of a stage's variants are grouped to one of each kind. A policy is Stuck if nothing is in
flight, nothing may go, nobody suspended it, no timer runs and not everything is ready; what waits
for a person's `promote` or for the next sweep may go. A stage is Starving if two or more of the
revisions that it does not have were cut short in their soak, and nothing newer can pass at present
(docs/concepts/gates.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from fanout.api.durations import format_duration
from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import Hold, OtherRevision, StageResult, VariantResult
from fanout.api.text_fields import pluralize
from fanout.gates import gate_wording
from fanout.gates.candidate_choice import reachable_revisions
from fanout.gates.gate_evaluation import GateEvaluation
from fanout.gates.gate_rules import StageRule
from fanout.gates.gate_wording import format_names, label_stage
from fanout.gates.record_facts import find_next
from fanout.gates.stage_tally import StageTally
from fanout.gates.variant_release import StageReleaseEvaluator
from fanout.values import replace

_AT_CANDIDATE = (VariantState.VERIFYING, VariantState.READY)


def list_stage_holds(
    evaluation: GateEvaluation,
    tally: StageTally,
    release_evaluator: StageReleaseEvaluator,
    variant_results: Sequence[VariantResult],
) -> tuple[Hold, ...]:
    """List what a stage waits for: suspension, gate, halt, its variants, and soaks cut short.

    Failed and skipped variants come last: the stage waits for the others.
    """
    candidate = evaluation.candidate(tally.stage_rule.name)
    holds: list[Hold] = [tally.suspended] if tally.suspended else []
    stage = tally.stage_rule.name
    if tally.stage_rule.control_flow:
        pass
    elif not tally.variants:
        sentence = f"no target is in {label_stage(stage)}; the stage cannot pass"
        actor = "the policy's author (spec.targets, spec.stages)"
        holds.append(Hold(Reason.NO_TARGETS, sentence, actor))
    elif not candidate:
        sentence, actor = gate_wording.NO_REVISION, gate_wording.AUTHOR_OF_REVISION
        holds.append(Hold(Reason.NO_REVISION, sentence, actor))
    elif tally.count_for(candidate) == 0:
        sentence = (
            f"no variant of {label_stage(stage)} counts for {candidate}: all are suspended, offline"
            " or skipped"
        )
        holds.append(Hold(Reason.NOTHING_COUNTS, sentence, gate_wording.ANY_PROMOTER_RESUME))
    is_everywhere = variant_results and all(item.state in _AT_CANDIDATE for item in variant_results)
    # Without a candidate there is no revision that upstream stages have to pass.
    if candidate and not is_everywhere:
        holds += release_evaluator.gate.holds
    holds += [release_evaluator.halted] if release_evaluator.halted is not None else []
    last = (VariantState.FAILED, VariantState.SKIPPED)
    holds += group_holds(sorted(variant_results, key=lambda it: it.state in last), holds)
    publications = (it.facts.published for it in tally.variants)
    latest = max((it.at for it in publications if it is not None), default=None)
    # The last decision to publish each other revision than the candidate in the whole stage.
    decisions = {
        it.revision: it
        for it in evaluation.active_decisions.publishes
        if not it.spec.variants and it.spec.stage == stage
    }
    for revision, decision in decisions.items():
        if revision == candidate or revision in tally.published:
            continue
        # The stage has moved since, so the decision was carried out or overtaken.
        if latest is not None and latest >= decision.at:
            continue
        cause = (
            f"the candidate is {candidate}"
            if evaluation.ages.is_allowed(revision)
            else f"spec.upstream does not allow {revision}"
        )
        sentence = f"decision {decision.name} to publish {revision} waits: {cause}"
        holds.append(Hold(Reason.DECISION_WAITS, sentence, decision.by, decision.at))
    starvation = _starving_hold(evaluation, tally.stage_rule)
    return (*holds, starvation) if starvation is not None else tuple(holds)


def next_soak_end(evaluation: GateEvaluation, tally: StageTally) -> datetime | None:
    """Return when time alone next lets a revision through that the stage may take.

    None if there is none. The candidate is left out once every variant has it; another such
    revision may become the candidate again. A stage that is rolled back takes nothing but
    what was promoted since.
    """
    stage_rule, candidate = tally.stage_rule, evaluation.candidate(tally.stage_rule.name)
    pin = evaluation.pin(stage_rule)
    reachable = reachable_revisions(tally, evaluation.verdicts[stage_rule.name], evaluation.ages)
    if pin is not None:
        reachable = tuple(filter(None, [pin.until]))
    published = tally.published.get(candidate)
    is_everywhere = published is not None and published.total == len(tally.variants)
    awaited = (name for name in reachable if name != candidate or not is_everywhere)
    return find_next(
        (evaluation.stage_gate(stage_rule, revision).next for revision in awaited), evaluation.now
    )


def group_holds(variant_results: Iterable[VariantResult], holds: Iterable[Hold] = ()) -> list[Hold]:
    """Group holds by reason and actor, with the number of variants and the first of them.

    Those among `holds` are omitted, by identity: the stage lists them already.
    """
    # By identity: variants share the hold objects of their stage, and comparing values is costly.
    listed_ids = {id(hold) for hold in holds}
    groups: dict[tuple[str, str], list[tuple[str, Hold]]] = {}
    for variant_result in variant_results:
        for hold in variant_result.holds:
            if id(hold) not in listed_ids:
                groups.setdefault((hold.reason, hold.who), []).append((variant_result.name, hold))
    grouped: list[Hold] = []
    for members in groups.values():
        name, hold = members[0]
        # A variant may wait for several things of one kind.
        if (number := len({it for it, _ in members})) == 1:
            grouped.append(replace(hold, message=f"{name}: {hold.message}"))
            continue
        sentence = f"{pluralize(number, 'variant')}, {name} first: {hold.message}"
        since = min((it.since for _, it in members if it.since is not None), default=None)
        until = min((it.until for _, it in members if it.until is not None), default=None)
        grouped.append(replace(hold, message=sentence, since=since, until=until))
    return grouped


_IN_FLIGHT = (VariantState.RELEASED, VariantState.PROPOSED, VariantState.VERIFYING)
_MAY_GO = frozenset(
    {
        Reason.AUTOMATION_OFF,
        Reason.SWEEP_AWAITED,
        Reason.APPROVAL_MISSING,
        Reason.CHANGES_REQUESTED,
        Reason.DEPENDENCY_PENDING,  # another policy decides about it
    }
)
_TOO_MANY = 2


def stuck_hold(
    evaluation: GateEvaluation,
    stages: Mapping[str, StageResult],
    variant_results: Iterable[VariantResult],
    timer: datetime | None,
) -> Hold | None:
    """Return the hold of a policy that only a person can set going again, or None."""
    if (
        timer is not None
        or evaluation.suspended is not None
        or any(it.suspended is not None for it in evaluation.tallies.values())
        or any(it.suspended is not None for it in evaluation.variants)
    ):
        return None
    # The clock of a soak starts when a sweep records it, so the policy moves although no timer runs
    # yet.
    if any(
        evaluation.candidate(stage_rule.name) in evaluation.verdicts[upstream].unrecorded
        for stage_rule in evaluation.stages
        if stage_rule.after is not None and stage_rule.after.soak_time
        for upstream in stage_rule.after.stages
    ):
        return None
    # Nothing is expected of what is ready, skipped or offline.
    unready = [
        it
        for it in variant_results
        if it.state not in (VariantState.READY, VariantState.SKIPPED)
        and not (
            it.state is VariantState.HELD
            and any(hold.reason == Reason.OFFLINE for hold in it.holds)
        )
    ]
    for it in unready:
        reasons = {hold.reason for hold in it.holds}
        # It goes now, in the next pass, or when a person promotes.
        if (it.release or it.publish or it.state in _IN_FLIGHT) or (
            it.state is VariantState.DRAFTED and (Reason.NO_DRAFT in reasons or reasons <= _MAY_GO)
        ):
            return None
    if not unready or any(it.state is VariantState.VERIFYING for it in evaluation.variants):
        return None
    for stage_rule in evaluation.stages:
        if holds := stages[stage_rule.name].holds:
            first, label = holds[0], label_stage(stage_rule.name)
            is_labeled = first.message.startswith(label)
            cause = first.message if is_labeled else f"{label}: {first.message}"
            return Hold(Reason.STUCK, f"rollout is stuck; {cause}", first.who, first.since)
    return None


def _starving_hold(evaluation: GateEvaluation, stage_rule: StageRule) -> Hold | None:
    """Return the hold of a stage whose upstream stages run ahead of its soak, or None."""
    if stage_rule.after is None or not stage_rule.after.soak_time:
        return None
    tally, candidate = evaluation.tallies[stage_rule.name], evaluation.candidate(stage_rule.name)
    if (
        candidate not in tally.published
        and evaluation.stage_gate(stage_rule, candidate).verdict is Verdict.PASSED
    ):
        return None
    cut_holds = find_cut_short(evaluation, stage_rule)
    if len(cut_holds) < _TOO_MANY:
        return None
    sentence = (
        f"{label_stage(stage_rule.name)} starves: {pluralize(len(cut_holds), 'revision')}"
        f" ({format_names(cut_holds)}) left upstream stages before the soak of"
        f" {format_duration(stage_rule.after.soak_time)}"
    )
    actor = "the policy's author (spec.inFlight: Serialize, or a shorter soak)"
    return Hold(Reason.STARVING, sentence, actor)


def find_cut_short(evaluation: GateEvaluation, stage_rule: StageRule) -> dict[str, Hold]:
    """Find the revisions that the stage can no longer take, as a soak ended too early."""
    if stage_rule.after is None or not stage_rule.after.soak_time:
        return {}
    ages, published = evaluation.ages, evaluation.tallies[stage_rule.name].published
    upstream_revisions = {
        name for stage in stage_rule.after.stages for name in evaluation.verdicts[stage].histories
    }
    cut_holds: dict[str, Hold] = {}
    for name in sorted(upstream_revisions):
        if ages.is_allowed(name) and all(
            ages.is_older(published_revision, name) for published_revision in published
        ):
            gate = evaluation.stage_gate(stage_rule, name)
            soak_holds = (hold for hold in gate.holds if hold.reason == Reason.SOAK_CUT_SHORT)
            cut_hold = next(soak_holds, None) if not gate.possible else None
            if cut_hold is not None:
                cut_holds[name] = cut_hold
    return cut_holds


def find_others(evaluation: GateEvaluation, stage_rule: StageRule) -> tuple[OtherRevision, ...]:
    """Find the newest revision queued behind the candidate, and the last dropped."""
    choice, ages = evaluation.choices[stage_rule.name], evaluation.ages
    others: list[OtherRevision] = []
    if choice.queued and not stage_rule.control_flow:
        newest, pin = choice.queued[-1], evaluation.pin(stage_rule)
        waits, holds = f"{newest} waits: {label_stage(stage_rule.name)}", list[Hold]()
        if pin is None:
            gate = evaluation.stage_gate(stage_rule, newest)
            holds += gate.holds if gate.verdict is not Verdict.PASSED else ()
            holds += [choice.kept_hold] if choice.kept_hold is not None else []
        elif pin.decision is None:
            sentence = f"{waits} is pinned to {pin.revision} by the policy"
            holds.append(Hold(Reason.PINNED, sentence, gate_wording.AUTHOR))
        else:
            decision = pin.decision
            by = f"{decision.by} ({decision.name})"
            sentence = f"{waits} is rolled back to {pin.revision} by {by}"
            holds.append(Hold(Reason.PINNED, sentence, gate_wording.MAY_WITHDRAW, decision.at))
        if holds:
            others.append(OtherRevision(newest, newer=True, holds=tuple(holds)))
    if choice.revision not in evaluation.tallies[stage_rule.name].published:
        cut_holds = find_cut_short(evaluation, stage_rule)
        if dropped := ages.newest(it for it in cut_holds if ages.is_older(it, choice.revision)):
            others.append(OtherRevision(dropped, newer=False, holds=(cut_holds[dropped],)))
    return tuple(others)

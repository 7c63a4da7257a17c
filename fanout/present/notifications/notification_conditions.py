"""Conditions of a policy that people are notified of when they begin."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.notifications import NotificationEvent
from fanout.api.reasons import Reason, is_asked
from fanout.api.results import StageResult, VariantResult
from fanout.gates.evaluation_results import PolicyEvaluation
from fanout.reconcile.pass_results import PolicyResult

_EVENT_BY_REASON: Mapping[str, NotificationEvent] = {
    Reason.APPROVAL_MISSING: NotificationEvent.APPROVAL_AWAITED,
    Reason.MERGE_CONFLICT: NotificationEvent.MERGE_CONFLICT,
}


class NotificationCondition(NamedTuple):
    """Condition that holds now. One that held in the pass before is not notified of again."""

    event: NotificationEvent
    stage: str = ""
    revision: str = ""
    variant: str = ""


def find_conditions(item: PolicyResult) -> Mapping[NotificationCondition, str]:
    """Return the conditions of a policy, each with a sentence about it or ""."""
    if item.error is not None:
        return {NotificationCondition(NotificationEvent.POLICY_STOPPED): str(item.error)}
    return dict(_list_conditions(item.decision)) if item.decision is not None else {}


def _list_conditions(decision: PolicyEvaluation) -> Iterator[tuple[NotificationCondition, str]]:
    for variant in decision.variants.values():
        yield from _list_of_variant(variant)
    for stage in decision.stages.values():
        yield from _list_of_stage(stage)
    if revision := _find_finished(decision):
        yield NotificationCondition(NotificationEvent.ROLLOUT_DONE, revision=revision), ""


def _list_of_variant(variant: VariantResult) -> Iterator[tuple[NotificationCondition, str]]:
    subject = (variant.stage, variant.candidate, variant.name)
    if variant.state is VariantState.FAILED:
        sentence = variant.holds[0].message if variant.holds else ""
        yield NotificationCondition(NotificationEvent.VARIANT_FAILED, *subject), sentence
    for hold in variant.holds:
        event = _EVENT_BY_REASON.get(hold.reason)
        if event is not None and is_asked(hold.reason, [it.reason for it in variant.holds]):
            yield NotificationCondition(event, *subject), hold.message


def _list_of_stage(stage: StageResult) -> Iterator[tuple[NotificationCondition, str]]:
    if stage.halted:
        sentence = next((it.message for it in stage.holds if it.reason == Reason.HALTED), "")
        condition = NotificationCondition(
            NotificationEvent.STAGE_HALTED, stage.name, stage.candidate
        )
        yield condition, sentence
    # Variants that are written by hand have one stage without a name; its end is the rollout's.
    elif stage.name and stage.candidate and stage.verdict is Verdict.PASSED:
        yield NotificationCondition(NotificationEvent.STAGE_PASSED, stage.name, stage.candidate), ""


def _find_finished(decision: PolicyEvaluation) -> str:
    """Return the revision that all stages have passed, or "" while there is none."""
    passed = {
        stage.candidate if stage.verdict is Verdict.PASSED else ""
        for stage in decision.stages.values()
    }
    return passed.pop() if len(passed) == 1 else ""

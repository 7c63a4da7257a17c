"""Conditions of a policy that people are notified of when they begin, and transitions to them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.reasons import NotificationEvent, Reason, is_asked
from fanout.api.text_fields import list_first, pluralize
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import Value

_IS_HALTED = " is halted: "
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
    conditions: dict[NotificationCondition, str] = {}
    decision, passed = item.decision, set[str]()
    if decision is None:
        return conditions
    for variant in decision.variants.values():
        subject = (variant.stage, variant.candidate, variant.name)
        if variant.state is VariantState.FAILED:
            sentence = variant.holds[0].message if variant.holds else ""
            conditions[NotificationCondition(NotificationEvent.VARIANT_FAILED, *subject)] = sentence
        for hold in variant.holds:
            event = _EVENT_BY_REASON.get(hold.reason)
            if event is not None and is_asked(hold.reason, [it.reason for it in variant.holds]):
                conditions[NotificationCondition(event, *subject)] = hold.message
    for stage in decision.stages.values():
        name, revision, has_passed = stage.name, stage.candidate, stage.verdict is Verdict.PASSED
        if stage.halted:
            sentence = next((it.message for it in stage.holds if it.reason == Reason.HALTED), "")
            halt = NotificationCondition(NotificationEvent.STAGE_HALTED, name, revision)
            conditions[halt] = sentence
        # Variants that are written by hand have one stage without a name; its end is the rollout's.
        elif name and revision and has_passed:
            conditions[NotificationCondition(NotificationEvent.STAGE_PASSED, name, revision)] = ""
        passed.add(revision if has_passed else "")
    # All stages have passed the same revision.
    if len(passed) == 1 and (revision := passed.pop()):
        conditions[NotificationCondition(NotificationEvent.ROLLOUT_DONE, revision=revision)] = ""
    return conditions


class Transition(Value):
    """Begin of equal conditions: of one kind, stage and revision, of however many variants."""

    event: NotificationEvent
    stage: str
    revision: str
    variants: tuple[str, ...]
    message: str


def group_transitions(began: Mapping[NotificationCondition, str]) -> Iterator[Transition]:
    """Yield the transitions to conditions that began, each given with a sentence."""
    groups: dict[tuple[NotificationEvent, str, str], dict[str, str]] = {}
    for condition, sentence in sorted(began.items()):
        key = condition.event, condition.stage, condition.revision
        groups.setdefault(key, {})[condition.variant] = sentence
    for (event, stage, revision), sentences in groups.items():
        names = tuple(name for name in sentences if name)
        message = describe_transition(event, revision, stage, names, next(iter(sentences.values())))
        yield Transition(event, stage, revision, names, message)


def describe_transition(
    event: NotificationEvent, revision: str, stage: str, variants: Sequence[str], detail: str
) -> str:
    """Describe a condition that began; `detail` is "" if there is no more to say.

    `stage` is "" for a variant that is written by hand, which has none.
    """
    number = len(variants)
    drafts = f"{pluralize(number, 'draft')} of {revision}"
    subject = f"stage {stage}" if stage else "the variant"
    match event:
        case NotificationEvent.APPROVAL_AWAITED:
            verb = "waits" if number == 1 else "wait"
            sentence = add_stage(f"{drafts} {verb} for approvals", stage)
        case NotificationEvent.MERGE_CONFLICT:
            verb = "has" if number == 1 else "have"
            sentence = add_stage(f"{drafts} {verb} undecided merge conflicts", stage)
        case NotificationEvent.POLICY_STOPPED:
            sentence = "stopped by an error"
        case NotificationEvent.ROLLOUT_DONE:
            sentence = f"the rollout of {revision} is complete"
        case NotificationEvent.STAGE_HALTED:
            sentence = f"{subject} is halted at {revision}"
        case NotificationEvent.STAGE_PASSED:
            sentence = f"{subject} passed {revision}"
        case NotificationEvent.VARIANT_FAILED:
            sentence = add_stage(f"{pluralize(number, 'variant')} failed {revision}", stage)
    if variants:
        sentence = f"{sentence} ({list_first(variants, 1)})"
    # A hold says again which stage is halted.
    detail = detail.partition(_IS_HALTED)[2] or detail
    return f"{sentence}: {detail}" if detail else sentence


def add_stage(sentence: str, stage: str) -> str:
    """Return the sentence about what is in a stage; "" is none."""
    return f"{sentence} in stage {stage}" if stage else sentence

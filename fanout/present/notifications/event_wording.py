"""Sentences of events: conditions that began, and what a pass did in each stage."""

from collections.abc import Sequence

from fanout.api.notifications import NotificationEvent
from fanout.api.text_fields import pluralize

_IS_HALTED = " is halted: "


def describe_transition(
    event: NotificationEvent, revision: str, stage: str, variants: Sequence[str], detail: str
) -> str:
    """Describe a condition that began; `detail` is "" if there is no more to say.

    `stage` is "" for a variant that is written by hand, which has none.
    """
    sentence = _word_transition(event, revision, stage, len(variants))
    if variants:
        others = f" and {len(variants) - 1} more" if len(variants) > 1 else ""
        sentence = f"{sentence} ({variants[0]}{others})"
    # A hold says again which stage is halted.
    detail = detail.partition(_IS_HALTED)[2] or detail
    return f"{sentence}: {detail}" if detail else sentence


def _word_transition(event: NotificationEvent, revision: str, stage: str, number: int) -> str:
    """Return the sentence about a number of variants, or about none."""
    drafts = f"{pluralize(number, 'draft')} of {revision}"
    match event:
        case NotificationEvent.APPROVAL_AWAITED:
            verb = "waits" if number == 1 else "wait"
            return _add_stage(f"{drafts} {verb} for approvals", stage)
        case NotificationEvent.MERGE_CONFLICT:
            verb = "has" if number == 1 else "have"
            return _add_stage(f"{drafts} {verb} undecided merge conflicts", stage)
        case NotificationEvent.POLICY_STOPPED:
            return "stopped by an error"
        case NotificationEvent.ROLLOUT_DONE:
            return f"the rollout of {revision} is complete"
        case NotificationEvent.STAGE_HALTED:
            return f"{_name_stage(stage)} is halted at {revision}"
        case NotificationEvent.STAGE_PASSED:
            return f"{_name_stage(stage)} passed {revision}"
        case NotificationEvent.VARIANT_FAILED:
            return _add_stage(f"{pluralize(number, 'variant')} failed {revision}", stage)


def _name_stage(stage: str) -> str:
    return f"stage {stage}" if stage else "the variant"


def describe_drafts_written(number: int, revision: str, stage: str) -> str:
    """Describe drafts that a pass wrote in one stage."""
    return _add_stage(f"{pluralize(number, 'draft')} of {revision} written", stage)


def describe_published(number: int, revision: str, stage: str) -> str:
    """Describe drafts that a pass published in one stage."""
    return _add_stage(f"{pluralize(number, 'variant')} published at {revision}", stage)


def describe_removed(number: int, stage: str) -> str:
    """Describe packages that a pass removed from one stage."""
    return _add_stage(f"{pluralize(number, 'package')} removed", stage)


def describe_merged_requests(number: int, stage: str) -> str:
    """Describe pull requests that a pass merged in one stage."""
    return _add_stage(f"{pluralize(number, 'pull request')} merged", stage)


def describe_failed_actions(number: int, problem: str, stage: str) -> str:
    """Describe actions of one stage that failed; `problem` is that of the first."""
    sentence = _add_stage(f"{pluralize(number, 'action')} failed", stage)
    return f"{sentence}: {problem}" if number == 1 else f"{sentence}; the first: {problem}"


def _add_stage(sentence: str, stage: str) -> str:
    return f"{sentence} in stage {stage}" if stage else sentence

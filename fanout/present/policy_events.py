"""Events of policies: what a pass did in each stage, and conditions that began.

One event for each policy, stage, revision and reason, however many variants it is about.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from fanout.api.reasons import EventReason
from fanout.api.text_fields import pluralize
from fanout.message_commands import cluster_commands
from fanout.plan.actions import ActionKind
from fanout.plan.written_objects import ObjectName, PolicyEvent
from fanout.present.notifications.notification_conditions import (
    NotificationCondition,
    add_stage,
    group_transitions,
)
from fanout.reconcile.pass_results import PassReport, PolicyResult
from fanout.reconcile.selection.policy_resolution import PolicyKey

_REASONS: Mapping[ActionKind, EventReason] = {
    ActionKind.WRITE_DRAFT: EventReason.DRAFTS_WRITTEN,
    ActionKind.PUBLISH: EventReason.PUBLISHED,
    ActionKind.MERGE_REQUEST: EventReason.REQUESTS_MERGED,
    ActionKind.REMOVE_PACKAGE: EventReason.PACKAGES_REMOVED,
}
MAX_MESSAGE = 1024  # characters; the API server refuses more


class _Subject(NamedTuple):
    """Policy, or variant that is written by hand, and what an event about it is grouped by."""

    namespace: str
    name: str
    stage: str
    revision: str
    reason: EventReason


def list_action_events(report: PassReport) -> list[PolicyEvent]:
    """Return the events of what the pass did and of what failed."""
    counts: Counter[_Subject] = Counter()
    problems: dict[_Subject, str] = {}
    failed = {id(it) for it in report.failed_outcomes}
    for outcome in report.outcomes:
        action, has_failed = outcome.action, id(outcome) in failed
        reason = _REASONS.get(action.kind)
        if reason is None or not (outcome.is_done or has_failed):
            continue
        reason = EventReason.PUSH_FAILED if has_failed else reason
        with_revision = reason in (EventReason.DRAFTS_WRITTEN, EventReason.PUBLISHED)
        subject = _Subject(
            action.namespace,
            action.policy or action.variant,
            action.stage,
            action.revision if with_revision else "",
            reason,
        )
        counts[subject] += 1
        problems.setdefault(subject, outcome.problem)
    names = {
        (it.resolved_policy.namespace, it.resolved_policy.name): _name_of(it)
        for it in report.pass_plan.policies
    }
    return [
        _build_event(
            names[key],
            report.pass_plan.now,
            subject.reason,
            describe_actions(
                subject.reason, counts[subject], subject.revision, subject.stage, problems[subject]
            ),
        )
        for subject in sorted(counts)
        if (key := (subject.namespace, subject.name)) in names
    ]


def describe_actions(
    reason: EventReason, number: int, revision: str, stage: str, problem: str
) -> str:
    """Describe what a pass did in one stage; `problem` is that of the first failed action."""
    match reason:
        case EventReason.DRAFTS_WRITTEN:
            return add_stage(f"{pluralize(number, 'draft')} of {revision} written", stage)
        case EventReason.PUBLISHED:
            return add_stage(f"{pluralize(number, 'variant')} published at {revision}", stage)
        case EventReason.PACKAGES_REMOVED:
            return add_stage(f"{pluralize(number, 'package')} removed", stage)
        case EventReason.REQUESTS_MERGED:
            return add_stage(f"{pluralize(number, 'pull request')} merged", stage)
    sentence = add_stage(f"{pluralize(number, 'action')} failed", stage)
    return f"{sentence}: {problem}" if number == 1 else f"{sentence}; the first: {problem}"


def list_condition_events(
    policy_result: PolicyResult, began: Mapping[NotificationCondition, str], at: datetime
) -> Iterator[PolicyEvent]:
    """Yield the events of conditions that began, each given with a sentence."""
    subject = _name_of(policy_result)
    for it in group_transitions(began):
        yield _build_event(subject, at, EventReason[it.event.name], it.message)


def _name_of(policy_result: PolicyResult) -> tuple[ObjectName, str]:
    """Return the name and the uid of the object that events of a policy are about."""
    policy = policy_result.resolved_policy
    kind = "UpstreamPolicy" if policy.upstream_policy is not None else "PackageVariant"
    uid = policy.declaration.metadata.uid if policy.declaration is not None else None
    return ObjectName(kind, policy.namespace, policy.name), uid or ""


def _build_event(
    subject: tuple[ObjectName, str], at: datetime, reason: EventReason, message: str
) -> PolicyEvent:
    name, uid = subject
    message = cluster_commands(name.namespace).complete_text(message)
    return PolicyEvent(subject=name, uid=uid, reason=reason, message=message[:MAX_MESSAGE], at=at)


def find_changed_variants(report: PassReport) -> Mapping[PolicyKey, frozenset[str]]:
    """Return the policies that the pass itself changed, each with the variants."""
    names: dict[PolicyKey, set[str]] = {}
    for outcome in report.outcomes:
        action = outcome.action
        if outcome.is_done:
            key = action.namespace, action.policy or action.variant, bool(action.policy)
            names.setdefault(key, set()).add(action.variant)
    return {key: frozenset(it) for key, it in names.items()}

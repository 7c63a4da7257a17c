"""Messages of the commits by which forges merge pull requests."""

from fanout.plan.observation.request_change import RequestChange
from fanout.plan.policy_plan import PolicyPlan
from fanout.plan.publication_messages import (
    CommitSettings,
    build_publication_message,
    group_publications,
)
from fanout.values import replace


def with_merge_messages(plan: PolicyPlan, settings: CommitSettings) -> PolicyPlan:
    """Return the plan with the messages of its merges: those of a publication without a forge."""
    if not any(change.merge for change in plan.request_changes):
        return plan
    messages = {
        (first.observed.repository_state.remote.key, first.observed.draft_ref): message
        for group, variants in group_publications([plan]).items()
        for message in [build_publication_message(group, variants, plan, settings)]
        for first in variants
    }
    return replace(
        plan,
        request_changes=tuple(
            _with_message(change, messages.get((change.remote.key, change.head_ref), ""))
            for change in plan.request_changes
        ),
    )


def _with_message(change: RequestChange, message: str) -> RequestChange:
    if change.merge is None:
        return change
    subject, _, body = message.partition("\n")
    merge = replace(change.merge, subject=subject, body=body.strip("\n"))
    return replace(change, merge=merge)

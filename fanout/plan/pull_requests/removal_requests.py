"""Pull requests that remove packages: their groups, and what their texts say."""

from collections.abc import Sequence

from fanout.api.promotion_policy import MergeMethod
from fanout.plan.pull_requests.request_group import RequestGroup
from fanout.plan.pull_requests.request_holds import RequestHoldInputs, find_request_hold
from fanout.plan.pull_requests.request_text import (
    ChangeVerb,
    RequestContent,
    RequestHold,
    RequestVariant,
)
from fanout.plan.removal.removal_drafts import RemovalDraftPlan
from fanout.selection.ref_names import install_of
from fanout.values import replace


def group_removals(
    plans: Sequence[RemovalDraftPlan], inputs: RequestHoldInputs
) -> tuple[RequestGroup, ...]:
    """Return the group of each branch that removes packages of a policy."""
    return tuple(_build_group(plan, inputs) for plan in plans)


def _build_group(plan: RemovalDraftPlan, inputs: RequestHoldInputs) -> RequestGroup:
    line = inputs.lines.get((plan.state.identity, plan.ref))
    head = plan.draft.commit if plan.draft is not None else ""
    request_hold = find_request_hold(plan.state, plan.ref, head, plan.repository, inputs)
    return RequestGroup(
        namespace=plan.namespace,
        policy=plan.policy,
        stage=plan.stage,
        repository=plan.repository,
        state=plan.state,
        head_ref=plan.ref,
        removal=None if plan.is_removed else plan,
        hold=plan.hold,
        is_merged=(
            inputs.is_publishing
            and not plan.is_removed
            and plan.write is None
            and plan.hold is None
            and request_hold is None
        ),
        is_written=plan.write is not None or plan.is_removed,
        is_declined=plan.is_declined,
        line=line,
    )


def without_declined(plans: Sequence[RemovalDraftPlan]) -> tuple[RemovalDraftPlan, ...]:
    """Return the plans without the commits of those that a person declined."""
    return tuple(replace(plan, write=None) if plan.is_declined else plan for plan in plans)


def build_removal_content(group: RequestGroup, merge: MergeMethod) -> RequestContent:
    """Build the content of the text of a pull request that removes packages."""
    plan = group.removal
    assert plan is not None, "the group is about a removal"
    return RequestContent(
        install=install_of(group.head_ref),
        policy=f"{group.namespace}/{group.policy}",
        stage=group.stage,
        repository=group.repository,
        branch=group.state.branch.removeprefix("refs/heads/"),
        head_branch=group.head_ref.removeprefix("refs/heads/"),
        variants=tuple(
            RequestVariant(
                name=it.variant or it.path,
                path=it.path,
                verb=ChangeVerb.REMOVE,
                detail=it.reason,
            )
            for it in plan.packages
        ),
        holds=(RequestHold(replace(plan.hold, since=None)),) if plan.hold is not None else (),
        merge=merge,
    )

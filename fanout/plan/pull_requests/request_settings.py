"""Settings of the pull requests of one policy, from all its PromotionPolicies."""

from collections.abc import Sequence

from fanout.api.promotion_policy import MergeMethod, MergeStyle, PromotionPolicy, PullRequest
from fanout.plan.observation.repository_state import RepositoryState
from fanout.values import Value


class RequestSettings(Value):
    """Settings of the pull requests of one policy: how they are opened and merged, and labels."""

    merge: MergeMethod = MergeMethod.DIRECT
    style: MergeStyle = MergeStyle.MERGE
    opens_as_draft: bool = True
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()

    def choose_style(self, state: RepositoryState, head_ref: str) -> MergeStyle:
        """Return the style in which the request of a branch is merged.

        A forge that rebases leaves out commits with several parents, and what they change. A
        squash has the whole branch, and a history as straight.
        """
        draft = state.drafts.get(head_ref) or state.removal_drafts.get(head_ref)
        has_joints = draft is not None and draft.has_joints
        return MergeStyle.SQUASH if has_joints and self.style is MergeStyle.REBASE else self.style


def read_request_settings(promotions: Sequence[PromotionPolicy]) -> RequestSettings:
    """Return the settings of a policy, from the PromotionPolicies that govern it.

    `pullRequest` is that of the first one by name that has it. People merge where any says so.
    """
    by_name = sorted(promotions, key=lambda promotion: promotion.metadata.name)
    settings = (it.spec.pull_request for it in by_name if it.spec.pull_request is not None)
    request = next(settings, PullRequest())
    is_manual = any(it.spec.merge is MergeMethod.MANUAL for it in promotions)
    return RequestSettings(
        merge=MergeMethod.MANUAL if is_manual else MergeMethod.DIRECT,
        style=request.merge_style,
        opens_as_draft=request.draft,
        labels=tuple(request.labels),
        reviewers=tuple(request.reviewers),
    )

"""Hold of variants that would join a pull request which is ready, or which anybody approved."""

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.plan import plan_wording
from fanout.plan.evidence.review_approvals import find_standing_approvals
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.pull_requests.declined_requests import (
    declined_hold,
    describe_declined,
    is_closed_by_person,
)


def find_join_hold(variant: ObservedVariant, draft: OpenDraft) -> Hold | None:
    """Return the hold of a variant that would join a request that is under review, or None.

    A variant whose package is in the request stays in it, and a newer revision forms the group
    anew.
    """
    state = variant.repository_state
    if state.forge is None or not variant.shares_draft or variant.draft is not None:
        return None
    facts = state.forge.requests.get(variant.draft_ref)
    if facts is None:
        return None
    requested = (it for it in state.drafts.values() if it.ref == variant.draft_ref)
    if draft.trailers.revision not in {it.trailers.revision for it in requested}:
        return None
    if is_closed_by_person(facts, state.forge):
        return declined_hold(
            variant, describe_declined(facts, state.forge, draft.trailers.revision)
        )
    if facts.request.state is not RequestState.OPEN:
        return None
    if facts.request.is_draft and not find_standing_approvals(facts.reviews):
        return None
    sentence = (
        f"pull request {facts.request.number} of its stage is under review; the variant is in the"
        " next one"
    )
    actor = plan_wording.format_maintainers(variant.spec.repository)
    return Hold(Reason.REQUEST_OPEN, sentence, actor)

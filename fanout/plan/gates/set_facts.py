"""Facts about sets of variants that are published as a whole, and what holds each set.

A set is a branch with several packages, or the variants that exchange places.
"""

from collections.abc import Mapping, Sequence

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates.gate_facts import SetFacts
from fanout.plan import plan_wording
from fanout.plan.moves.move_locations import location_author
from fanout.plan.pull_requests.request_holds import RequestHoldInputs, find_request_hold
from fanout.plan.rendered_variant import RenderedVariant


def build_set_facts(
    variants: Sequence[RenderedVariant], inputs: RequestHoldInputs
) -> dict[str, SetFacts]:
    """Return the facts by variant, without variants that are published alone."""
    # Most fleets have none of these, and each pass looks at all variants.
    tied = [
        variant
        for variant in variants
        if (observed := variant.selected.observed).shares_draft
        or observed.repository_state.forge is not None
        or observed.exchange_partners
        or observed.misplaced_drafts
    ]
    if not tied:
        return {}
    draft_refs = {variant.spec.name: variant.observed.draft_ref for variant in variants}
    alone = SetFacts()
    shared = {alone: alone}  # those of one branch are one object
    set_facts: dict[str, SetFacts] = {}
    for variant in tied:
        observed, spec = variant.observed, variant.spec
        state, draft, ref = observed.repository_state, observed.draft, observed.draft_ref
        hold, is_asked_again = _find_move_hold(variant, draft_refs), False
        if hold is None and state.forge is not None and draft is not None:
            hold = find_request_hold(state, ref, draft.commit, spec.repository, inputs)
            is_asked_again = inputs.is_asked_again(state, ref, hold)
        # The stage's branch has the variant as it is to be published.
        is_written = observed.shares_draft and draft is not None and variant.draft_content is None
        built = SetFacts(
            branch=f"{state.identity} {ref}" if is_written else "",
            merges_whole=is_written and state.forge is not None,
            partners=observed.exchange_partners if observed.is_moving else frozenset(),
            location=f"{spec.repository}:{spec.path}" if observed.is_moving else "",
            hold=hold,
            is_asked_again=is_asked_again,
        )
        if (kept := shared.setdefault(built, built)) is not alone:
            set_facts[spec.name] = kept
    return set_facts


def _find_move_hold(variant: RenderedVariant, draft_refs: Mapping[str, str]) -> Hold | None:
    """Return why a variant cannot move in this pass although its gates are open, or None."""
    observed, spec, state = variant.observed, variant.spec, variant.observed.repository_state
    for it in observed.misplaced_drafts:
        if it.draft.has_edits and it.repository_state.identity != state.identity:
            branch = it.draft.ref.removeprefix("refs/heads/")
            return Hold(
                Reason.PATH_CHANGED,
                f"branch {branch} in {it.repository} is removed first; its commits are in the"
                " draft",
                who=plan_wording.NEXT_RUN,
            )
    if state.forge is None or not observed.is_moving:
        return None
    # Requests are merged one by one, and each would remove the package of the other.
    for other in sorted(observed.exchange_partners):
        if draft_refs[other] != observed.draft_ref:
            return Hold(
                Reason.PATH_TAKEN,
                f"{spec.repository}:{spec.path} is the path of {other}, which has another"
                " pull request; move one of them to a third path first",
                who=location_author(spec),
            )
    return None

"""Merges by people: whether the gates let them through in the pass that first sees them.

A publication is out of band if nobody granted it, or if its required checks, a window or a halt
hold it in that pass (design-forges, "Out of band"). It is in force all the same.
"""

from collections.abc import Sequence

from fanout.api.reasons import ReasonClass, classify_reason
from fanout.api.results import VariantResult
from fanout.gates.evaluation_results import PolicyEvaluation
from fanout.gates.gate_facts import DraftFacts, Grant, PolicyFacts, Publication, VariantFacts
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import RecordedStatus
from fanout.plan.rendered_variant import RenderedVariant
from fanout.values import replace

_CLOSED_GATES = (
    ReasonClass.APPROVAL,
    ReasonClass.EVIDENCE,
    ReasonClass.HALTED,
    ReasonClass.WINDOW,
)


def find_person_merges(
    variants: Sequence[RenderedVariant], status: RecordedStatus
) -> tuple[ObservedVariant, ...]:
    """Return the variants whose granted draft a person has merged on a forge."""
    return tuple(
        variant.observed
        for variant in variants
        if variant.observed.is_unrecorded and _is_merged_by_person(variant.observed, status)
    )


def _is_merged_by_person(variant: ObservedVariant, status: RecordedStatus) -> bool:
    state, published = variant.repository_state, variant.published
    if state.forge is None or variant.tag or published is None or published.out_of_band:
        return False
    line = status.requests.get((state.identity, variant.draft_ref))
    if line is not None and line.state == RequestState.MERGED:
        return False  # by fanout, in the pass before, which judged it
    facts = state.forge.requests.get(variant.draft_ref)
    return facts is None or facts.request.merged_by != state.forge.login


def facts_before_merges(facts: PolicyFacts, merged: Sequence[ObservedVariant]) -> PolicyFacts:
    """Return the facts as they would be if these variants were not published yet."""
    by_name = {variant.spec.name: variant for variant in merged}
    return replace(
        facts,
        variants=tuple(
            _before_merge(it, by_name[it.name]) if it.name in by_name else it
            for it in facts.variants
        ),
        # What keeps the merge itself waiting does not matter any more.
        sets={},
    )


def _before_merge(facts: VariantFacts, variant: ObservedVariant) -> VariantFacts:
    published, line = variant.published, variant.status_line
    assert published is not None, "what was merged is published"
    before, grant = line.published, line.grant
    return replace(
        facts,
        published=Publication(
            before.revision,
            before.digest,
            before.tree,
            before.at,
            last_evidence=before.heard,
            since=before.since,
            waiting=frozenset(before.waiting),
        )
        if before is not None
        else None,
        draft=DraftFacts(
            published.revision,
            published.digest,
            published.tree,
            authors=variant.draft.editors if variant.draft is not None else frozenset(),
            has_commits=variant.draft is not None and bool(variant.draft.editors),
        ),
        grant=Grant(grant.revision, grant.digest, grant.at, grant.by) if grant else None,
    )


def judge_merges(
    variants: Sequence[RenderedVariant],
    merged: Sequence[ObservedVariant],
    decision: PolicyEvaluation,
) -> tuple[RenderedVariant, ...]:
    """Return all variants, those marked whose merge the gates did not let through.

    The release of the others names what let them through. `decision` is about the facts before
    the merges. Of a revision that is not the candidate any more the gates say nothing, and its
    grant is enough.
    """
    judged = {
        variant.spec.name: _judge(variant, decision.variants[variant.spec.name])
        for variant in merged
    }
    return tuple(
        replace(it, selected=replace(it.selected, observed=judged[it.spec.name]))
        if it.spec.name in judged
        else it
        for it in variants
    )


def _judge(variant: ObservedVariant, evaluation: VariantResult) -> ObservedVariant:
    published, line = variant.published, variant.status_line
    assert published is not None, "what was merged is published"
    if evaluation.candidate != published.revision:
        return variant
    if any(classify_reason(hold.reason) in _CLOSED_GATES for hold in evaluation.holds):
        return replace(variant, published=replace(published, out_of_band=True))
    if line.grant is None or not evaluation.release:
        return variant
    # The pass did not see the approvals before the merge, so the release is without them.
    grant = replace(line.grant, by=evaluation.released_by)
    return replace(variant, status_line=replace(line, grant=grant))

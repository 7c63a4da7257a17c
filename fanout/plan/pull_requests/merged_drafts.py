"""Merges by people: whether the gates let them through in the pass that first sees them.

A publication is out of band if nobody granted it, or if its required checks, a window or a halt
hold it in that pass (docs/concepts/pull-requests.md). It is in force all the same.
"""

from collections.abc import Sequence

from fanout.api.reasons import ReasonClass, classify_reason
from fanout.gates.gate_facts import (
    DraftFacts,
    Grant,
    PolicyEvaluation,
    PolicyFacts,
    Publication,
    VariantFacts,
)
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import RecordedStatus
from fanout.plan.rendered_variant import RenderedVariant
from fanout.values import replace

_CLOSED_GATES = (ReasonClass.APPROVAL, ReasonClass.EVIDENCE, ReasonClass.HALTED, ReasonClass.WINDOW)


def find_person_merges(
    variants: Sequence[RenderedVariant], status: RecordedStatus
) -> tuple[ObservedVariant, ...]:
    """Return the variants whose granted draft a person has merged on a forge."""
    merged: list[ObservedVariant] = []
    for variant in (it.observed for it in variants if it.observed.is_unrecorded):
        state, published = variant.repository_state, variant.published
        if state.forge is None or variant.tag or published is None or published.out_of_band:
            continue
        line = status.requests.get((state.identity, variant.draft_ref))
        if line is not None and line.state == RequestState.MERGED:
            continue  # by fanout, in the pass before, which judged it
        facts = state.find_request(variant.draft_ref)
        if facts is None or not state.forge.account.is_named(facts.request.merged_by):
            merged.append(variant)
    return tuple(merged)


def facts_before_merges(facts: PolicyFacts, merged: Sequence[ObservedVariant]) -> PolicyFacts:
    """Return the facts as they would be if these variants were not published yet."""
    by_name = {variant.spec.name: variant for variant in merged}
    variants: list[VariantFacts] = []
    for it in facts.variants:
        variant = by_name.get(it.name)
        if variant is None:
            variants.append(it)
            continue
        published, line = variant.published, variant.status_line
        assert published is not None, "what was merged is published"
        before, grant = line.published, line.grant
        editors = variant.draft.editors if variant.draft is not None else frozenset()
        variants.append(
            replace(
                it,
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
                    authors=editors,
                    has_commits=bool(editors),
                ),
                grant=Grant(grant.revision, grant.digest, grant.at, grant.by) if grant else None,
            )
        )
    # What keeps the merge itself waiting does not matter any more.
    return replace(facts, variants=tuple(variants), sets={})


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
    judged: dict[str, ObservedVariant] = {}
    for variant in merged:
        published, line = variant.published, variant.status_line
        assert published is not None, "what was merged is published"
        evaluation = decision.variants[variant.spec.name]
        if evaluation.candidate != published.revision:
            continue
        if any(classify_reason(hold.reason) in _CLOSED_GATES for hold in evaluation.holds):
            published = replace(published, out_of_band=True)
            judged[variant.spec.name] = replace(variant, published=published)
        elif line.grant is not None and evaluation.release:
            # The pass did not see the approvals before the merge, so the release is without them.
            grant = replace(line.grant, by=evaluation.released_by)
            judged[variant.spec.name] = replace(variant, status_line=replace(line, grant=grant))
    return tuple(
        replace(it, selected=replace(it.selected, observed=judged[it.spec.name]))
        if it.spec.name in judged
        else it
        for it in variants
    )

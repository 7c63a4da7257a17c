"""Conditions of variants about merge conflicts, and which variants are carried out."""

from collections.abc import Iterator, Sequence

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates.evaluation_results import VariantEvaluation, VariantState
from fanout.plan.draft_messages import find_release_draft
from fanout.plan.edits.merge_disputes import limit_lines, rejected_lines_of_draft
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile import reconcile_wording as wording

# A variant with one of these has changed inputs of which no draft can be made, or written.
_UNDRAFTED = frozenset(
    {Reason.BASE_MISSING, Reason.PUSH_REFUSED, Reason.REQUIRED_INJECTION_MISSING}
)


def is_carried_out(decision: VariantEvaluation) -> bool:
    """Return whether what is declared for a variant is published and verified."""
    return decision.state is VariantState.READY and find_undrafted_hold(decision) is None


def find_undrafted_hold(decision: VariantEvaluation) -> Hold | None:
    """Return the hold of a ready variant whose inputs have changed and cannot be drafted."""
    if decision.state is not VariantState.READY:
        return None
    return next((it for it in decision.holds if it.reason in _UNDRAFTED), None)


def build_conflict_conditions(
    variant: RenderedVariant, undecided: int
) -> Iterator[tuple[str, Reason, str]]:
    """Yield type, reason and message of each condition about merge conflicts.

    `undecided`: number of undecided conflicts of the open draft. Rejected values are
    reported of the draft and of the published package.
    """
    decided_parts: list[str] = []
    draft = find_release_draft(variant)
    lines = rejected_lines_of_draft(draft) if draft is not None else ()
    if draft is not None and lines:
        revision = draft.trailers.revision
        if undecided:
            headline = wording.describe_draft_conflicts(undecided, f"the draft of {revision}")
            yield "MergeConflict", Reason.MERGE_CONFLICT, _format_list(headline, lines)
        else:
            headline = wording.describe_decided_conflicts(revision, is_published=False)
            decided_parts.append(_format_list(headline, lines))
    published = variant.observed.published
    if published is not None and published.rejected:
        headline = wording.describe_decided_conflicts(published.revision, is_published=True)
        decided_parts.append(_format_list(headline, published.rejected))
    if decided_parts:
        yield "ConflictsDecided", Reason.CONFLICT_DECIDED, "\n".join(decided_parts)


def _format_list(title: str, lines: Sequence[str]) -> str:
    return "\n".join((f"{title}:", *limit_lines(lines)))

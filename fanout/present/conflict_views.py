"""Merge conflicts of drafts and publications: views, and the keys of undecided ones."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from fanout.api.output_views import ConflictView, ConflictViewSpec, ConflictViewStatus
from fanout.api.view_base import ViewMeta
from fanout.package.merge.merge_conflicts import MergeSide
from fanout.plan.changes.next_drafts import find_release_draft
from fanout.plan.edits.merge_disputes import (
    ConflictOutcome,
    read_draft_outcomes,
    read_published_outcomes,
)
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.records.policy_status import PublishedLine
from fanout.plan.rendered_variant import RenderedVariant
from fanout.present.policy_entry import VariantEntry, walk_variants
from fanout.present.view_meta import variant_labels, variant_names
from fanout.reconcile.pass_results import PassPlan

_LABELS: Mapping[MergeSide, Literal["Upstream", "Local"]] = {
    MergeSide.UPSTREAM: "Upstream",
    MergeSide.LOCAL: "Local",
}


def list_conflicts(pass_plan: PassPlan) -> list[ConflictView]:
    """Return a ConflictView for every merge conflict of open drafts and of what is published.

    Of a conflict that both have at the same revision, the draft's is listed: it comes later.
    """
    views: list[ConflictView] = []
    for entry in walk_variants(pass_plan):
        observed = entry.variant.observed
        draft, published = find_release_draft(entry.variant), observed.published
        drafted: set[tuple[str, str]] = set()
        if draft is not None:
            for outcome in read_draft_outcomes(draft, observed.choices, entry.undecided):
                drafted.add((draft.trailers.revision, outcome.key))
                views.append(_build_view(entry, outcome, draft))
        if published is not None:
            views += [
                _build_view(entry, outcome, published)
                for outcome in read_published_outcomes(published.rejected)
                if (published.revision, outcome.key) not in drafted
            ]
    return views


def find_undecided_keys(variant: RenderedVariant, undecided: int) -> tuple[str, ...]:
    """Return the keys of the conflicts that hold the variant's draft; `undecided`: their number."""
    draft = find_release_draft(variant) if undecided else None
    if draft is None:
        return ()
    outcomes = read_draft_outcomes(draft, variant.observed.choices, undecided)
    return tuple(it.key for it in outcomes if not it.is_decided)


def draft_time(draft: OpenDraft) -> datetime | None:
    """Return the time of fanout's commit on the draft; None if it is not written yet.

    That is the time of upstream's commit or of the branch's head, whichever is later: a draft that
    is written again is the same commit.
    """
    return datetime.fromtimestamp(draft.timestamp, UTC) if draft.timestamp else None


def _build_view(
    entry: VariantEntry, outcome: ConflictOutcome, source: OpenDraft | PublishedLine
) -> ConflictView:
    spec = entry.variant.spec
    if isinstance(source, OpenDraft):
        revision, since = source.trailers.revision, draft_time(source)
    else:
        # A publication that is not on record yet has the time of this pass.
        revision, since = source.revision, entry.published_since
    name = f"{spec.name}/{revision}/{outcome.key}"
    return ConflictView(
        metadata=ViewMeta(name, spec.namespace, variant_labels(entry)),
        spec=ConflictViewSpec(
            **variant_names(entry),
            key=outcome.key,
            file=outcome.file,
            object=outcome.object,
            field=outcome.field_path,
        ),
        status=ConflictViewStatus(
            place="Draft" if isinstance(source, OpenDraft) else "Published",
            revision=revision,
            in_force="Edited" if outcome.is_edited else _LABELS[outcome.winner],
            decided=outcome.is_decided,
            base=outcome.values.get("base"),
            upstream=outcome.values.get("upstream"),
            local=outcome.values.get("local"),
            since=since,
            message=outcome.line,
        ),
    )

"""Draft that comes next: the one that a pass writes for a variant, or the one on its branch."""

from fanout.plan.drafts.draft_statement import (
    build_draft_statement,
    new_conflict_lines,
    replaced_drafts,
)
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.ref_names import install_of


def find_release_draft(variant: RenderedVariant) -> OpenDraft | None:
    """Return the draft whose release is to be decided, or None.

    In a stage draft that is the new content, which nothing has before its release. Else it is the
    draft on the variant's branch.
    """
    return find_next_draft(variant) if variant.observed.shares_draft else variant.observed.draft


def find_next_draft(variant: RenderedVariant) -> OpenDraft | None:
    """Return the draft with the new content of the variant, else the one on its branch, or None.

    The commit of new content is "" until it is written.
    """
    observed = variant.observed
    if variant.draft_content is None or variant.changes_nothing:
        return observed.draft
    return build_draft(variant)


def build_draft(variant: RenderedVariant) -> OpenDraft:
    """Build the draft that is written for a rendered variant."""
    assert variant.draft_content is not None, "a draft is rendered before it is written"
    observed = variant.observed
    taken = [draft for _, draft in replaced_drafts(variant)]
    return OpenDraft(
        ref=observed.draft_ref,
        path=variant.spec.path,
        commit="",
        tree=variant.draft_content.tree,
        trailers=build_draft_statement(variant, install_of(observed.draft_ref)),
        is_shared=observed.shares_draft,
        is_edited=False,
        editors=frozenset().union(*(draft.editors for draft in taken)),
        rejected_lines=new_conflict_lines(variant),
    )

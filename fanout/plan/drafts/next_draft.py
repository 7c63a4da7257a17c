"""Draft that comes next: the one that a pass writes for a variant, or the one on its branch."""

from fanout.plan.commit_statement import NO_VALUE, PackageStatement
from fanout.plan.edits.merge_disputes import format_disputes, rejected_lines
from fanout.plan.observation.repository_state import OpenDraft, RepositoryState
from fanout.plan.rendered_variant import ChangeVerb, RenderedVariant
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
    if variant.draft_content is None or variant.changes_nothing:
        return variant.observed.draft
    return build_draft(variant)


def build_draft(variant: RenderedVariant) -> OpenDraft:
    """Build the draft that is written for a rendered variant, with what its commit states."""
    assert variant.draft_content is not None, "a draft is rendered before it is written"
    assert variant.rendering is not None, "draft content is merged from a rendering"
    assert variant.selected.inputs is not None, "a rendered variant has inputs"
    observed, spec, merged = variant.observed, variant.spec, variant.merged
    taken = [draft for _, draft in replaced_drafts(variant)]
    return OpenDraft(
        ref=observed.draft_ref,
        path=spec.path,
        commit="",
        tree=variant.draft_content.tree,
        trailers=PackageStatement(
            install=install_of(observed.draft_ref),
            policy=f"{spec.namespace}/{spec.policy}",
            variant=spec.name,
            stage=spec.stage or NO_VALUE,
            revision=variant.selected.revision,
            commit=variant.selected.upstream_commit,
            digest=variant.selected.inputs.digest,
            onto=observed.onto_tree,
            tree=variant.draft_content.tree,
            conflicts=format_disputes(variant.disputes),
            takes=" ".join(sorted(draft.commit for draft in taken)),
            rendered=variant.rendering.tree,
        ),
        is_shared=observed.shares_draft,
        editors=frozenset().union(*(draft.editors for draft in taken)),
        rejected_lines=rejected_lines(merged.conflicts) if merged is not None else (),
    )


def draft_subject(variant: RenderedVariant) -> str:
    """Return the subject of the commit that writes the draft of one variant."""
    spec, verb, location = variant.spec, variant.change_verb, variant.spec.path
    revision = f"{spec.upstream_package} {variant.selected.revision}"
    if verb is ChangeVerb.ROLL_BACK:
        return f"Take {location} back to {revision}"
    if verb is ChangeVerb.MOVE:
        location = f"{variant.observed.package_location.path} to {location}"
    return f"{verb} {location} at {revision}"


def replaced_drafts(variant: RenderedVariant) -> list[tuple[RepositoryState, OpenDraft]]:
    """Return the edited drafts that the new one replaces, with their repositories."""
    return [(state, draft) for state, _, draft in variant.observed.open_drafts if draft.has_edits]

"""Content of the commit of a draft: what it states of the package, subject and rejected values.

The grammar of statements is in `fanout.plan.commit_statement`.
"""

from fanout.plan.commit_statement import NO_VALUE, PackageStatement
from fanout.plan.edits.merge_disputes import format_disputes, rejected_lines
from fanout.plan.observation.repository_state import OpenDraft, RepositoryState
from fanout.plan.rendered_variant import RenderedVariant


def build_draft_statement(variant: RenderedVariant, install: str) -> PackageStatement:
    """Build the statement about the package of the draft that is written for a variant."""
    assert variant.draft_content is not None, "a draft is rendered before it is written"
    assert variant.rendering is not None, "draft content is merged from a rendering"
    assert variant.selected.inputs is not None, "a rendered variant has inputs"
    spec = variant.spec
    return PackageStatement(
        install=install,
        policy=f"{spec.namespace}/{spec.policy}",
        variant=spec.name,
        stage=spec.stage or NO_VALUE,
        revision=variant.selected.revision,
        commit=variant.selected.upstream_commit,
        digest=variant.selected.inputs.digest,
        onto=variant.observed.onto_tree,
        tree=variant.draft_content.tree,
        conflicts=format_disputes(variant.disputes),
        takes=" ".join(sorted([draft.commit for _, draft in replaced_drafts(variant)])),
        rendered=variant.rendering.tree,
    )


def new_conflict_lines(variant: RenderedVariant) -> tuple[str, ...]:
    """Return a line for each value that the merge of the draft being written rejected."""
    return rejected_lines(variant.merged.conflicts) if variant.merged is not None else ()


def draft_subject(variant: RenderedVariant) -> str:
    """Return the subject of the commit that writes the draft of one variant."""
    spec = variant.spec
    if variant.selected.is_rollback:
        return f"Take {spec.path} back to {spec.upstream_package} {variant.selected.revision}"
    verb = (
        "Adopt"
        if variant.observed.is_unmanaged
        else "Update"
        if variant.observed.path_state.tree
        else "Add"
    )
    location = spec.path
    if variant.observed.is_moving:
        verb, location = "Move", f"{variant.observed.package_location.path} to {spec.path}"
    return f"{verb} {location} at {spec.upstream_package} {variant.selected.revision}"


def replaced_drafts(variant: RenderedVariant) -> list[tuple[RepositoryState, OpenDraft]]:
    """Return the edited drafts that the new one replaces, with their repositories."""
    return [(state, draft) for state, _, draft in variant.observed.open_drafts if draft.has_edits]

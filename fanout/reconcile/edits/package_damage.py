"""Descriptions of edits and losses in published packages, tags and drafts.

None of these holds a variant by itself; they are reported before the next revision is
affected.
"""

from collections.abc import Iterable, Iterator

from fanout.api.text_fields import pluralize
from fanout.plan.edits.draft_damage import with_remedy
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.ref_names import install_of, vendor_ref


def describe_edits(variant: ObservedVariant) -> str:
    """State that the published package has been edited."""
    location = variant.package_location
    return (
        f"{location.repository}:{location.path} was edited outside fanout; the edits are carried"
        " into the next draft"
    )


def describe_faults(variant: ObservedVariant) -> str:
    """Describe the faults of the published package, with file and line."""
    first, *more = variant.published_faults
    further = f" (and {len(more)} more)" if more else ""
    separator = "" if first.where.file else " "
    repository = variant.package_location.repository
    return f"{repository}:{separator}{with_remedy(first)} on the branch{further}"


def describe_leftover_draft(variant: RenderedVariant) -> str:
    """Describe a branch that remains of a published draft, and the remedy; "" if there is none."""
    if (
        variant.observed.draft is None
        or variant.observed.draft.has_edits
        or not variant.selected.is_in_force
    ):
        return ""
    branch = variant.observed.draft_ref.removeprefix("refs/heads/")
    return (
        f"branch {branch} of {variant.spec.repository} is published but still exists; each sweep"
        " tries to delete it. If the server denies deletions, allow them below drafts/, or delete"
        " the branch by hand"
    )


def find_lost_renderings(variants: Iterable[ObservedVariant]) -> Iterator[tuple[str, str]]:
    """Yield repositories that lost renderings of published packages, with the effects."""
    variants_by_repository: dict[str, list[ObservedVariant]] = {}
    for variant in variants:
        home = variant.package_location
        if (
            variant.published is not None
            and not variant.is_unrecorded
            and variant.package_state.tree is not None
            and home.repository_state.failure is None
            and variant.vendored_tree is None
        ):
            variants_by_repository.setdefault(home.repository, []).append(variant)
    for repository, affected_variants in variants_by_repository.items():
        branch = vendor_ref(install_of(affected_variants[0].draft_ref)).removeprefix("refs/heads/")
        packages = pluralize(len(affected_variants), "published package")
        merged = sum(variant.lacks_base for variant in affected_variants)
        edits = f"; {merged} with merged edits will be held at their next draft" if merged else ""
        sentence = (
            f"branch {branch} lacks {packages}, so edits cannot be told from upstream"
            f" content{edits}; push the branch again from a clone that has it"
        )
        yield repository, sentence

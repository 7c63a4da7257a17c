"""Descriptions of edits and losses in published packages, tags and drafts.

None of these holds a variant by itself; they are reported before the next revision is
affected.
"""

from collections.abc import Iterable, Iterator

from fanout.api.reasons import Reason
from fanout.gates.gate_wording import format_count
from fanout.plan.edits.draft_errors import with_remedy
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.variant_naming import install_of, vendor_ref


def describe_edits(case: ObservedVariant) -> str:
    """State that the published package has been edited."""
    return (
        f"{case.package_location.repository}:{case.package_location.path} has edits of people,"
        " which drafts take over"
    )


def describe_faults(case: ObservedVariant) -> str:
    """Describe the faults of the published package, with file and line."""
    first, *more = case.published_faults
    further = f" (and {len(more)} more)" if more else ""
    separator = "" if first.where.file else " "
    return (
        f"{case.package_location.repository}:{separator}{with_remedy(first)} on the branch{further}"
    )


def find_tag_problem(case: ObservedVariant) -> tuple[Reason, str] | None:
    """Return reason and sentence if the publication's tag is gone or moved, else None.

    Only for published variants: the push that publishes makes the tag.
    """
    published_line, repository_state = case.published, case.package_location.repository_state
    if published_line is None or case.is_unrecorded or repository_state.failure is not None:
        return None
    if not (published_line.tag and published_line.merge):
        return None
    ref = f"refs/tags/{published_line.tag}"
    tag_target = repository_state.refs.get(ref, "")
    if tag_target == published_line.merge:
        return None
    tag_text = f"tag {published_line.tag}"
    restore_command = f"`git push {repository_state.remote.url} {published_line.merge}:{ref}`"
    if tag_target:
        return Reason.TAG_MOVED, (
            f"{tag_text} of {case.package_location.repository} points to {tag_target[:12]}, and"
            f" {published_line.revision} was"
            f" published with it at {published_line.merge}; delete it and put it back:"
            f" {restore_command}"
        )
    return Reason.TAG_MISSING, (
        f"{tag_text} is gone from {case.package_location.repository}, and"
        f" {published_line.revision} was published with"
        f" it; put it back: {restore_command}"
    )


def describe_leftover_draft(case: RenderedVariant) -> str:
    """Describe a branch that remains of a published draft, and the remedy.

    "" if there is none.
    """
    if (
        case.observed.draft is None
        or case.observed.draft.has_edits
        or not case.selected.is_in_force
    ):
        return ""
    branch = case.observed.draft_ref.removeprefix("refs/heads/")
    return (
        f"branch {branch} of {case.spec.repository} has a draft that is published, and is still"
        " there; each sweep tries to remove it. If the server refuses deletions, let its owner"
        " allow them below drafts/, or remove the branch by hand"
    )


def find_lost_renderings(cases: Iterable[ObservedVariant]) -> Iterator[tuple[str, str]]:
    """Yield repositories that lost renderings of published packages, with the effects."""
    cases_by_repository: dict[str, list[ObservedVariant]] = {}
    for case in cases:
        if _lacks_rendering(case):
            cases_by_repository.setdefault(case.package_location.repository, []).append(case)
    for repository, affected_cases in cases_by_repository.items():
        branch = vendor_ref(install_of(affected_cases[0].draft_ref)).removeprefix("refs/heads/")
        merged_count = sum(case.lacks_base for case in affected_cases)
        consequence = (
            f"; {merged_count} in which people's edits were merged will be held (BaseMissing)"
            " when a"
            " draft is due"
            if merged_count
            else ""
        )
        sentence = (
            f"branch {branch} does not have the renderings of"
            f" {format_count(len(affected_cases), 'published package')} any more, from which"
            " people's edits are"
            f" told; restore the branch: push it from a clone that has it{consequence}"
        )
        yield repository, sentence


def _lacks_rendering(case: ObservedVariant) -> bool:
    return (
        case.published is not None
        and not case.is_unrecorded
        and case.package_state.tree is not None
        and case.package_location.repository_state.failure is None
        and case.vendored_tree is None
    )

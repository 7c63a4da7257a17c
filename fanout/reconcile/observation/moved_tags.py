"""Tags that somebody moved or deleted: of publications, and upstream of published revisions.

None of these holds a variant by itself; they are reported before the next revision is
affected. A tag that moved upstream stops its policy (`upstream_packages`).
"""

from collections.abc import Iterator, Mapping

from fanout.api.reasons import Reason
from fanout.errors import FanoutError
from fanout.package.revision import select_tag
from fanout.plan.observation.repository_state import RefListing
from fanout.plan.observed_variant import ObservedVariant
from fanout.reconcile.observation.upstream_packages import (
    get_upstream_path,
    get_upstream_tag,
    list_tags,
)
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import replace


def find_tag_problems(variant: ObservedVariant) -> Iterator[tuple[Reason, str]]:
    """Yield reason and sentence for each tag of its publications that is gone or moved.

    Only for published variants: the push that publishes makes the tag.
    """
    published_line = variant.published
    if published_line is None or variant.is_unrecorded:
        return
    repository_state = variant.package_location.repository_state
    if repository_state.failure is not None or not repository_state.pushes_tags:
        return
    repository = variant.package_location.repository

    if published_line.tag and published_line.merge:
        name, revision = published_line.tag, published_line.revision
        ref = f"refs/tags/{name}"
        tag_target = repository_state.refs.get(ref, "")
        remedy = _advise_push(repository, published_line.merge, ref)
        if not tag_target:
            problem = (
                f"tag {name} is missing from {repository}, but {revision} was published with it"
            )
            yield Reason.TAG_MISSING, f"{problem}; {remedy}"
        elif tag_target != published_line.merge:
            problem = (
                f"tag {name} of {repository} points to {tag_target[:12]}, not to the publication of"
                f" {revision}"
            )
            yield Reason.TAG_MOVED, f"{problem}; delete the tag and, {remedy}"
    for name, commit in published_line.lost_tags.items():
        ref = f"refs/tags/{name}"
        if ref not in repository_state.refs:
            sentence = (
                f"tag {name} of an earlier publication is missing from {repository};"
                f" {_advise_push(repository, commit, ref)}"
            )
            yield Reason.TAG_MISSING, sentence


def _advise_push(repository: str, commit: str, ref: str) -> str:
    # A clone has the commit, unless its history was rewritten. Pushing to a URL would not do: it
    # may be relative to another directory.
    return f"in a clone of {repository}, run `git push origin {commit}:{ref}`"


def find_lost_tags(variant: ObservedVariant, new_tag: str) -> Mapping[str, str]:
    """Return the tags of earlier publications on record that are missing, with their commits.

    `new_tag` is the full ref name of the tag of the publication that is recorded now.
    """
    state, recorded = variant.repository_state, variant.status_line.published
    is_at_place = variant.status_line.place == (state.identity, variant.spec.path)
    if recorded is None or not state.pushes_tags or not is_at_place:
        return {}  # or left behind with the package
    commits_by_tag = {
        f"refs/tags/{tag}": commit
        for tag, commit in {**recorded.lost_tags, recorded.tag: recorded.merge}.items()
        if tag and commit
    }
    return {
        ref.removeprefix("refs/tags/"): commit
        for ref, commit in commits_by_tag.items()
        if ref != new_tag and ref not in state.refs
    }


def mark_lost_tags(
    resolved_policy: ResolvedPolicy,
    variants: tuple[ObservedVariant, ...],
    upstream_listing: RefListing | FanoutError | None,
) -> tuple[ObservedVariant, ...]:
    """Return the variants, marked where the upstream tag of the published revision is gone.

    Without its tag no rule allows the revision: the candidate silently becomes an older
    one.
    """
    if resolved_policy.is_being_deleted or not isinstance(upstream_listing, RefListing):
        return variants
    tags = list_tags(upstream_listing.refs)
    path = get_upstream_path(resolved_policy)
    revisions = {it.published.revision: it.published.commit for it in variants if it.published}
    lost_tags = {
        revision: get_upstream_tag(resolved_policy, revision)
        for revision, commit in revisions.items()
        if revision != commit and not select_tag(tags, path, revision)
    }
    if not lost_tags:
        return variants
    return tuple(
        replace(variant, missing_tag=lost_tags.get(variant.published.revision, ""))
        if variant.published
        else variant
        for variant in variants
    )


def describe_lost_tag(variant: ObservedVariant) -> str:
    """Describe the lost upstream tag of the published revision, and the remedy."""
    assert variant.published is not None, "only a publication can lose its tag"
    published = variant.published
    return (
        f"tag {variant.missing_tag} is missing from {variant.spec.upstream_repository}, but"
        f" {published.revision} is published; restore the tag ({published.commit}) or release a"
        " newer revision, because automation never downgrades"
    )

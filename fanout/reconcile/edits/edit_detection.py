"""Detection of what people did to published packages: edited, broken, reverted, without their tags.

Only a package whose tree differs from the published one is read, and once per state. None of the
edits and losses that are described here holds a variant by itself; they are reported before the
next revision is affected. A tag that moved upstream stops its policy (`upstream_packages`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from fanout.api.reasons import Reason
from fanout.api.text_fields import pluralize
from fanout.errors import FanoutError, InvalidInput
from fanout.groups import group_pairs
from fanout.package.kptfile import KPTFILE, UpstreamLock
from fanout.package.package_limits import add_package
from fanout.package.revision import select_tag
from fanout.plan.edits.draft_damage import find_new_faults, with_remedy
from fanout.plan.history.earlier_publication import (
    RevertedPublication,
    is_other_state,
    locked_revision,
)
from fanout.plan.observation.repository_state import RefListing
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import PublishedLine
from fanout.plan.rendered_variant import RenderedVariant
from fanout.ports import ObjectReader
from fanout.reconcile.history.publication_history import (
    HistoryReader,
    PublicationMemo,
    find_rendering,
)
from fanout.reconcile.observation.repository_access import PackageContentCache
from fanout.reconcile.observation.upstream_packages import (
    find_upstream_lock,
    get_upstream_path,
    get_upstream_tag,
    list_tags,
)
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.selection.ref_names import install_of, tag_ref, vendor_ref
from fanout.values import Value, replace

_MAX_FINDINGS = 20_000  # of paths, which may be gone
_MemoKey = tuple[str | None, ...]
_EditResult = tuple[RevertedPublication | None, tuple[InvalidInput, ...]]


@dataclass(slots=True)
class DownstreamEditDetector:
    """Detects downstream edits and memoizes the results by location; one per process."""

    content_cache: PackageContentCache
    _memo: dict[tuple[str, str], tuple[_MemoKey, _EditResult]] = field(default_factory=dict)

    def add_edits(self, variant: ObservedVariant, histories: HistoryReader) -> ObservedVariant:
        """Return the variant with the downstream edits of its published package.

        Raises what opening the mirror raises.
        """
        published_line, home = variant.published, variant.package_location
        tree = home.path_state.tree
        if (
            published_line is None
            or tree is None
            or variant.is_unrecorded
            or variant.status_line.place != (home.repository_state.identity, home.path)
            or home.repository_state.failure is not None
            or tree == published_line.tree
        ):
            return variant
        location = home.repository_state.identity, home.path
        key = tree, published_line.tree, home.repository_state.vendor_head
        if (memoized := self._memo.get(location)) is None or memoized[0] != key:
            reader = histories.open_reader(home.repository_state.remote)
            inspection = _EditInspection(variant, published_line, tree, reader)
            reverted = inspection.find_revert(histories.memo)
            edit_result = reverted, inspection.find_faults(self.content_cache)
            if len(self._memo) >= _MAX_FINDINGS:
                self._memo.clear()
            memoized = self._memo[location] = key, edit_result
        reverted, faults = memoized[1]
        return replace(
            variant, reverted_publication=reverted, published_faults=() if reverted else faults
        )


class _EditInspection(Value):
    """Inspection of one package that differs from its publication."""

    variant: ObservedVariant
    published: PublishedLine
    tree: str  # of the package now
    reader: ObjectReader

    def find_revert(self, publication_memo: PublicationMemo) -> RevertedPublication | None:
        """Return what people reverted the package to, if they did."""
        home, publication = self.variant.package_location, ""
        # An earlier publication with the present tree, which the present one does not have.
        for number in range(home.repository_state.publication_numbers.get(home.path, 0), 0, -1):
            commit = publication_memo.find_commit(
                self.reader, home.repository_state, home.path, number
            )
            if commit and commit != self.published.merge and self.reader.has(commit):
                state = self.reader.paths(commit, [home.path])[home.path]
                if state.tree == self.tree:
                    is_tagged = tag_ref(home.path, number) in home.repository_state.refs
                    publication = f"{'tag' if is_tagged else 'publication'} {home.path}/v{number}"
                    break
        trees = self.tree, self.published.tree
        try:
            kptfiles = [self.reader.entry(it, KPTFILE) for it in trees if self.reader.has(it)]
        except FanoutError:
            kptfiles = []
        # The common case, an edit of other files: no lock needs to be parsed.
        if len(kptfiles) == 2 and kptfiles[0] and kptfiles[0] == kptfiles[1] and not publication:
            return None  # the lock names the published state
        lock, published_lock = (find_upstream_lock(self.reader, tree) for tree in trees)
        if (
            lock is not None
            and published_lock is not None
            and not lock.refers_to(published_lock.repo, published_lock.directory)
        ):
            return RevertedPublication(
                f"is a clone of {lock.directory} in {lock.repo}", is_other_package=True
            )
        if lock is not None and (
            is_other_state(lock, published_lock)
            if published_lock
            else lock.commit != self.published.commit
        ):
            revision = locked_revision(lock, self.variant.spec.upstream_package)
            return RevertedPublication(f"has the Kptfile of {revision}", self._find_rendering(lock))
        if publication and lock is not None:
            return RevertedPublication(
                f"has the content of {publication}", self._find_rendering(lock)
            )
        return None

    def _find_rendering(self, lock: UpstreamLock) -> str | None:
        """Return the newest earlier rendering of the same upstream state, or None."""
        home = self.variant.package_location
        present = self.published.pristine, home.pristine_tree
        vendor_head, directory = home.repository_state.vendor_head, f"published/{home.path}"
        return find_rendering(self.reader, vendor_head, directory, lock, present) or None

    def find_faults(self, content_cache: PackageContentCache) -> tuple[InvalidInput, ...]:
        """Return the faults that people's edits introduced into the package."""
        path, limits = self.variant.package_location.path, self.reader.limits
        read = partial(content_cache.read_files, self.reader, self.variant.spec.namespace)
        baseline_trees = dict.fromkeys((self.published.tree, self.variant.pristine_tree))
        try:
            baseline_files = [read(it) for it in baseline_trees if it and self.reader.has(it)]
            return find_new_faults(read(self.tree), baseline_files, path, limits)
        except InvalidInput as error:
            return (add_package(error, path),)


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
    variants_by_repository = group_pairs(
        (variant.package_location.repository, variant)
        for variant in variants
        if variant.published is not None
        and not variant.is_unrecorded
        and variant.package_state.tree is not None
        and variant.package_location.repository_state.failure is None
        and variant.vendored_tree is None
    )
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


def find_tag_problems(variant: ObservedVariant) -> Iterator[tuple[Reason, str]]:
    """Yield reason and sentence for each tag of its publications that is gone or moved.

    Only for published variants: the push that publishes makes the tag.
    """
    if (published_line := variant.published) is None or variant.is_unrecorded:
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

"""Detection of what people did to published packages: edited, broken, or reverted.

Only a package whose tree differs from the published one is read, and once per state.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from fanout.errors import FanoutError, InvalidInput
from fanout.package.kptfile import KPTFILE, UpstreamLock
from fanout.package.package_limits import add_package
from fanout.plan.adoption.adoption_base import parse_upstream_lock
from fanout.plan.edits.draft_damage import find_new_faults
from fanout.plan.edits.edit_merge import PackageFiles
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.rollback.earlier_publication import (
    RevertedPublication,
    is_other_state,
    locked_revision,
)
from fanout.ports import ObjectReader
from fanout.reconcile.observation.mirror_access import PackageContentCache
from fanout.reconcile.rollback.publication_history import (
    HistoryReader,
    PublicationMemo,
    list_renderings,
)
from fanout.selection.ref_names import tag_ref
from fanout.values import Value, replace

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
            or variant.is_unrecorded
            or variant.status_line.place != (home.repository_state.identity, home.path)
            or home.repository_state.failure is not None
            or tree in (None, published_line.tree)
        ):
            return variant
        location = home.repository_state.identity, home.path
        key = tree, published_line.tree, home.repository_state.vendor_head
        memoized = self._memo.get(location)
        if memoized is None or memoized[0] != key:
            reader = histories.open_reader(home.repository_state.remote)
            inspection = _EditInspection(variant, reader, self.content_cache, histories.memo)
            edit_result = inspection.find_revert(), inspection.find_faults()
            memoized = self._memo[location] = key, edit_result
        reverted, faults = memoized[1]
        return replace(
            variant, reverted_publication=reverted, published_faults=() if reverted else faults
        )


@lru_cache(maxsize=16)  # renderings of one path are read in succession
def _parse_lock(kptfile: bytes | None) -> UpstreamLock | None:
    """Return the upstream lock of a Kptfile, or None if it has none that is readable."""
    try:
        return parse_upstream_lock(kptfile, KPTFILE)
    except FanoutError:
        return None


class _EditInspection(Value):
    """Inspection of one package that differs from its publication."""

    variant: ObservedVariant
    reader: ObjectReader
    content_cache: PackageContentCache
    publication_memo: PublicationMemo

    def find_revert(self) -> RevertedPublication | None:
        """Return what people reverted the package to, if they did."""
        variant, home, publication = self.variant, self.variant.package_location, ""
        assert variant.published is not None, "asked of what is published"
        assert variant.package_state.tree is not None, "and still there"
        # An earlier publication with the present tree, which the present one does not have.
        for number in range(home.repository_state.publication_numbers.get(home.path, 0), 0, -1):
            commit = self.publication_memo.find_commit(
                self.reader, home.repository_state, home.path, number
            )
            if commit and commit != variant.published.merge and self.reader.has(commit):
                state = self.reader.paths(commit, [home.path])[home.path]
                if state.tree == home.path_state.tree:
                    is_tagged = tag_ref(home.path, number) in home.repository_state.refs
                    publication = f"{'tag' if is_tagged else 'publication'} {home.path}/v{number}"
                    break
        kptfiles = [
            self._read_kptfile(tree)
            for tree in (variant.package_state.tree, variant.published.tree)
        ]
        # The common case, an edit of other files: no lock needs to be parsed.
        if kptfiles[0] and kptfiles[0] == kptfiles[1] and not publication:
            return None  # the lock names the published state
        lock, published_lock = map(_parse_lock, kptfiles)
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
            else lock.commit != variant.published.commit
        ):
            revision = locked_revision(lock, variant.spec.upstream_package)
            return RevertedPublication(f"has the Kptfile of {revision}", self._find_rendering(lock))
        if publication and lock is not None:
            return RevertedPublication(
                f"has the content of {publication}", self._find_rendering(lock)
            )
        return None

    def _read_kptfile(self, tree: str) -> bytes | None:
        if not self.reader.has(tree):
            return None
        try:
            entry = self.reader.entry(tree, KPTFILE)
            return self.content_cache.read_blob(self.reader, entry.oid) if entry else None
        except FanoutError:
            return None

    def _find_rendering(self, lock: UpstreamLock) -> str | None:
        """Return the newest earlier rendering of the same upstream state, or None."""
        home = self.variant.package_location
        present_rendering = self.variant.published.pristine if self.variant.published else ""
        compared = {present_rendering, home.pristine_tree}
        vendor_head, directory = home.repository_state.vendor_head, f"published/{home.path}"
        for tree in list_renderings(self.reader, vendor_head, directory):
            if tree not in compared:
                compared.add(tree)
                rendering_lock = _parse_lock(self._read_kptfile(tree))
                if rendering_lock is not None and not is_other_state(rendering_lock, lock):
                    return tree
        return None

    def find_faults(self) -> tuple[InvalidInput, ...]:
        """Return the faults that people's edits introduced into the package."""
        variant = self.variant
        assert variant.published is not None, "asked of what is published"
        assert variant.package_state.tree is not None, "and still there"
        baseline_trees = dict.fromkeys((variant.published.tree, variant.pristine_tree))
        try:
            baseline_files = [
                self._read_files(tree) for tree in baseline_trees if tree and self.reader.has(tree)
            ]
            return find_new_faults(
                self._read_files(variant.package_state.tree),
                baseline_files,
                variant.package_location.path,
                self.reader.limits,
            )
        except InvalidInput as error:
            return (add_package(error, variant.package_location.path),)

    def _read_files(self, tree: str) -> PackageFiles:
        return self.content_cache.read_files(self.reader, self.variant.spec.namespace, tree)

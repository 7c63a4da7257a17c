"""Merge of downstream edits into new renderings."""

from fanout.errors import InvalidInput, Unavailable
from fanout.package.merge.merge_conflicts import ConflictChoices
from fanout.package.merge.package_update import check_file_modes
from fanout.package.package_limits import add_package, file_sizes
from fanout.plan.commit_statement import NO_VALUE
from fanout.plan.edits.adoption_base import find_clone_edits
from fanout.plan.edits.edit_merge import FilesChange, PackageFiles, merge_edits
from fanout.plan.edits.merge_disputes import parse_disputes
from fanout.plan.observation.repository_state import OpenDraft, RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.reconcile.observation.repository_access import (
    OpenReader,
    PackageContentCache,
    open_one_at_a_time,
)
from fanout.reconcile.world import World
from fanout.values import Value, replace


class DraftMerger(Value):
    """Merges people's edits into renderings."""

    world: World
    function_results: FunctionResultCache
    content_cache: PackageContentCache

    def merge_edits(self, variant: RenderedVariant) -> RenderedVariant:
        """Return a rendered variant with people's edits merged in.

        Raises InvalidInput, with file and line, for what cannot be merged, InputPending if the
        pipeline of an adopted package needs a function result first, and what Git raises.
        """
        self.world.counters.add("merges")
        with open_one_at_a_time(self.world.git) as open_reader:
            edits = _MergeInputs(variant.observed, self, open_reader).collect_edits()
        package, rendering = variant.selected.package, variant.rendering
        assert rendering is not None, "what is merged is rendered"
        assert package is not None, "and comes from somewhere"
        data_by_oid = {entry.oid: data for entry, data in package.upstream.files.values()}
        # A rendering holds only the data it changed; its other entries refer to upstream's blobs.
        data_by_oid |= rendering.blobs
        entries = rendering.entries.items()
        files = {path: (entry.mode, data_by_oid[entry.oid]) for path, entry in entries}
        merge_result = merge_edits(files, edits, variant.observed.choices)
        self.world.setup.limits.check_sizes(file_sizes(merge_result.files))
        return replace(variant, merged=merge_result)

    def read_draft_change(self, variant: ObservedVariant) -> FilesChange | None:
        """Return what fanout wrote on the variant's open draft, and its edited state.

        None if there is no draft. Raises as `merge_edits`.
        """
        if variant.draft is None or variant.draft.tree is None:
            return None
        with open_one_at_a_time(self.world.git) as open_reader:
            return _MergeInputs(variant, self, open_reader).draft_change(
                variant.repository_state, variant.spec.path, variant.draft, variant.draft.tree
            )

    def read_adoption_change(
        self, variant: ObservedVariant, local: PackageFiles
    ) -> FilesChange | None:
        """Return people's change to an adopted package since it was cloned; None without origin."""
        if variant.origin is None:
            return None
        with self.world.git.reader(variant.origin.upstream) as reader:
            origin_files = self.content_cache.read_files(
                reader, variant.spec.namespace, variant.origin.tree
            )
        limits, results = self.world.setup.limits, self.function_results.results
        return find_clone_edits(origin_files, local, limits, results)


class _MergeInputs(Value):
    """Merge inputs of one variant: files written by fanout, and people's changes to them."""

    variant: ObservedVariant
    merger: DraftMerger
    open_reader: OpenReader

    def collect_edits(self) -> list[FilesChange]:
        """Return people's changes to the published package, and then to its drafts."""
        published = self._published_change(self.variant.package_state.tree)
        drafted = (
            self.draft_change(repository_state, path, draft, draft.tree)
            for repository_state, path, draft in self.variant.open_drafts
            if draft.has_edits and draft.tree is not None
        )
        return [published, *drafted] if published is not None else [*drafted]

    def draft_change(
        self, repository_state: RepositoryState, path: str, draft: OpenDraft, tree: str
    ) -> FilesChange:
        """Return the files that fanout wrote on a draft, and the files of the present tree.

        The draft branch has the former only if no earlier draft's commits were carried over.
        Otherwise they are merged again from the same inputs with the same winners. If a commit
        was amended away, the pristine rendering is used.
        """
        trailers = draft.trailers
        pristine = trailers.rendered or repository_state.drafted_renderings.get(path, "")
        # A draft that carries earlier commits contains people's edits in fanout's own commit;
        # taking it as the base would make those edits look like fanout's, and later merges drop
        # them.
        if not trailers.takes and self._has_tree(repository_state, trailers.tree):
            written = self._read_files(repository_state, trailers.tree)
        elif not pristine or not self._has_tree(repository_state, pristine):
            raise Unavailable(
                "no commit contains the rendering of the draft any more",
                reason="BaseMissing",
                remedy="delete the draft branch; the next pass writes it again",
            )
        else:
            written = self._read_files(repository_state, pristine)
            if trailers.takes:
                onto = trailers.onto if trailers.onto != NO_VALUE else None
                published = self._published_change(onto)
                edits = [published] if published is not None else []
                # The present winners, to repeat the same merge.
                winners = {it.key: it.winner for it in parse_disputes(trailers.conflicts)}
                written = merge_edits(written, edits, ConflictChoices(winners)).files
        return written, self._read_files(repository_state, tree)

    def _published_change(self, tree: str | None) -> FilesChange | None:
        """Return people's change to the published package whose present tree is given."""
        variant, home_state = self.variant, self.variant.package_location.repository_state
        if tree is None or not self._has_tree(home_state, tree):
            return None
        if variant.is_unmanaged:
            return self.merger.read_adoption_change(variant, self._read_files(home_state, tree))
        if variant.pristine_tree is None or variant.pristine_tree == tree:
            return None
        return self._read_files(home_state, variant.pristine_tree), self._read_files(
            home_state, tree
        )

    def _has_tree(self, repository_state: RepositoryState, tree: str) -> bool:
        cached = self.merger.content_cache.get_cached(self.variant.spec.namespace, tree)
        return cached is not None or self.open_reader(repository_state.remote).has(tree)

    def _read_files(self, repository_state: RepositoryState, tree: str) -> PackageFiles:
        content_cache, namespace = self.merger.content_cache, self.variant.spec.namespace
        files = content_cache.get_cached(namespace, tree)
        try:
            if files is None:
                reader = self.open_reader(repository_state.remote)
                files = content_cache.read_files(reader, namespace, tree)
            # Here, where it is known which repository has the files.
            check_file_modes(files)
            return files
        except InvalidInput as error:
            home, spec = self.variant.package_location, self.variant.spec
            place = f"{spec.repository}:{spec.path}"
            if repository_state is home.repository_state:
                place = f"{home.repository}:{home.path}"
            raise add_package(error, place) from error

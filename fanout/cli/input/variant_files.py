"""Files of one variant on each side: upstream, rendering, published package and draft."""

from collections.abc import Callable
from typing import TypeVar

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.cli.input.name_lookup import find_variant
from fanout.cli.startup import Program
from fanout.errors import InvalidInput, Stopped
from fanout.package.merge.merge_conflicts import MergeConflict
from fanout.package.tree_ids import Files
from fanout.plan.observation.repository_state import Remote
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.edits.downstream_merge import DraftMerger
from fanout.reconcile.history.rollback_selection import RollbackSelector
from fanout.reconcile.observation.repository_access import PackageContentCache, build_remote
from fanout.reconcile.observation.upstream_packages import get_upstream_path
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import Value, replace
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderedPackage

_NO_FILES: Files = {}
Result = TypeVar("Result")


def open_variant_files(program: Program, name: str) -> "VariantFiles":
    """Render the variant of this name, target or `repository:path` and return its files.

    Raises InvalidInput if there is no such variant or it has no candidate, and the errors
    of rendering it or merging downstream edits into it.
    """
    item, variant = find_variant(program, name)
    if variant.render_failure is not None:
        raise variant.render_failure
    selected, spec = variant.selected, variant.spec
    if selected.is_rollback and selected.earlier_publication is None:
        hold = selected.revision_hold
        assert hold is not None, "a missing earlier publication has a hold"
        raise Stopped(f"{spec.name} is held: {hold.message}", reason=hold.reason)
    if not selected.is_rollback and (selected.package is None or selected.inputs is None):
        problem = f"{spec.name} has no candidate: its stage is {spec.stage or 'not given'}"
        raise InvalidInput(problem, reason="NoRevision", remedy="run `fanout explain`")
    return VariantFiles(program, item, _render_again(program, variant))


class VariantFiles(Value):
    """Rendered variant with a candidate; a side that does not exist has no files."""

    program: Program
    item: PolicyResult
    variant: RenderedVariant

    @property
    def conflicts(self) -> tuple[MergeConflict, ...]:
        """Conflicts of merging downstream edits into the rendering, decided or not."""
        return self.variant.merged.conflicts if self.variant.merged else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of that merge for people, beside its conflicts."""
        return self.variant.merged.notes if self.variant.merged else ()

    @property
    def undecided(self) -> tuple[MergeConflict, ...]:
        """Conflicts that neither a commit on the draft nor a recorded decision has decided."""
        decided = {item.key for item in self.variant.disputes if item.is_decided}
        return tuple(item for item in self.conflicts if item.key not in decided)

    def refuse_without_draft(self) -> None:
        """Raise Stopped if the variant is held without a next draft, whose edits are unknown."""
        variant, observed = self.variant, self.variant.observed
        hold, reverted = observed.obstacle, observed.reverted_publication
        if observed.is_removed_by_hand or (
            reverted is not None and (reverted.is_other_package or reverted.pristine_tree is None)
        ):
            hold = hold or observed.revert_hold
        if observed.lacks_base and not observed.is_unmanaged:
            place = f"{observed.package_location.repository}:{observed.package_location.path}"
            problem = f"{place} has edits, and their base is missing"
            hold = hold or variant.selected.draft_hold or Hold(Reason.BASE_MISSING, problem)
        if hold is not None:
            problem = f"{variant.spec.name} is held and has no next draft: {hold.message}"
            raise Stopped(problem, reason=hold.reason)

    def read_upstream(self) -> Files:
        """Return upstream's package at the candidate revision."""
        if self.variant.selected.package is None:  # a rollback renders nothing
            return self._upstream_at(self.variant.selected.upstream_commit)
        content = self.variant.selected.package.upstream.files
        return {path: (entry.mode, data) for path, (entry, data) in content.items()}

    def read_published_upstream(self) -> Files:
        """Return the upstream package at the published revision, if upstream still has it."""
        origin, published = self.variant.observed.origin, self.variant.observed.published
        # An adopted package was cloned by another tool; its Kptfile names upstream and tree of that
        # time.
        if origin is not None:
            return self._read_tree(origin.upstream, origin.tree)
        return self._upstream_at(published.commit) if published is not None else _NO_FILES

    def _upstream_at(self, commit: str) -> Files:
        if (upstream := self.item.resolved_policy.upstream) is None:
            return _NO_FILES
        remote = build_remote(upstream)
        path = get_upstream_path(self.item.resolved_policy)
        with self.program.world.git.reader(remote) as reader:
            tree = reader.paths(commit, [path])[path].tree if reader.has(commit) else None
        return self._read_tree(remote, tree)

    def read_rendering(self) -> Files:
        """Return the rendering of the candidate without downstream edits."""
        assert self.variant.rendering is not None, "open_variant_files renders the variant"
        return self._resolve_content(self.variant.rendering)

    def read_merged(self) -> Files:
        """Return the rendering of the candidate with downstream edits merged into it."""
        content = self.variant.draft_content
        assert content is not None, "open_variant_files renders the variant"
        return self._resolve_content(content)

    def read_published(self) -> Files:
        """Return the package on the downstream branch."""
        return self._read_downstream_tree(self.variant.observed.package_state.tree)

    def _read_downstream_tree(self, tree: str | None) -> Files:
        return self._read_tree(self.variant.observed.package_location.repository_state.remote, tree)

    def read_published_change(self) -> tuple[Files, Files]:
        """Return the package as fanout published it, and as it is on the branch now.

        For a package that is adopted: as it was when it was cloned, and as the merge reads it now.
        """
        observed, local = self.variant.observed, self.read_published()
        if not observed.is_unmanaged:
            return self._read_downstream_tree(observed.pristine_tree), local
        change = _run_merger(self.program, lambda it: it.read_adoption_change(observed, local))
        return change if change is not None else (_NO_FILES, local)

    def read_draft_change(self) -> tuple[Files, Files]:
        """Return the draft as fanout wrote it, and as its branch is now."""
        change = _run_merger(self.program, lambda it: it.read_draft_change(self.variant.observed))
        return change if change is not None else (_NO_FILES, _NO_FILES)

    def _resolve_content(self, content: RenderedPackage) -> Files:
        package = self.variant.selected.package
        files = package.upstream.files.values() if package is not None else ()
        blobs = {entry.oid: data for entry, data in files}
        blobs |= content.blobs
        return {path: (entry.mode, blobs[entry.oid]) for path, entry in content.entries.items()}

    def _read_tree(self, remote: Remote, tree: str | None) -> Files:
        if not tree:
            return _NO_FILES
        with self.program.world.git.reader(remote) as reader:
            files = reader.files(tree)
        return {path: (entry.mode, data) for path, (entry, data) in files.items()}


def _render_again(program: Program, variant: RenderedVariant) -> RenderedVariant:
    """Return the variant with its rendering, and with downstream edits merged into it."""
    # The pass renders only drafts that are to be written; a current draft is rendered here.
    if variant.rendering is not None:
        return variant
    selected = variant.selected
    if selected.earlier_publication is not None:
        earlier = selected.earlier_publication
        # Of a rollback that is published already, with the downstream edits since.
        if selected.is_in_force:
            tree = selected.observed.package_state.tree or earlier.tree
            published = replace(earlier, tree=tree, pristine_tree=earlier.pristine_tree or tree)
            selected = replace(selected, earlier_publication=published)
        return RollbackSelector(program.world.git).load_content(selected)
    assert selected.package is not None, "a candidate has its package"
    assert selected.inputs is not None, "a candidate has inputs"
    package, spec, inputs = selected.package, selected.spec, selected.inputs
    rendered = program.reconciler.function_results.run_until_answered(
        lambda responses: render_variant(package, spec, inputs, responses)
    )
    variant = replace(variant, rendering=rendered)
    if not variant.observed.needs_merge:
        return variant
    return _run_merger(program, lambda it: it.merge_edits(variant))


def _run_merger(program: Program, work: Callable[[DraftMerger], Result]) -> Result:
    """Run the work on a merger, repeated until all its pending inputs are answered."""
    answers = program.reconciler.function_results
    merger = DraftMerger(program.world, answers, PackageContentCache())
    return answers.run_until_answered(lambda _: work(merger))

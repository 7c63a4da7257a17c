"""Rendering of drafts: candidates are assigned to variants, and due renderings are made."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import Bug, FanoutError, InvalidInput
from fanout.gates.rollback_pins import Pin
from fanout.pending_inputs import InputPending, complete
from fanout.plan.changes.next_drafts import DraftLimit, DueDrafts, find_due_drafts
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.plan.observation.repository_state import RefListing
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.selected_variant import SelectedVariant
from fanout.reconcile.edits.downstream_merge import DraftMerger
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.reconcile.history.rollback_selection import RollbackSelector
from fanout.reconcile.memo.policy_memo import PolicyMemo
from fanout.reconcile.observation.upstream_packages import (
    UpstreamPackages,
    add_adoption_obstacle,
    get_upstream_tag,
)
from fanout.reconcile.policy_phases import ObservedPolicy, RenderedPolicy, SelectedPolicy
from fanout.reconcile.world import World
from fanout.telemetry.error_isolation import BARRIER, ErrorBarrier, run_isolated
from fanout.values import Value, replace
from fanout.variants.package_preparation import PreparedPackage
from fanout.variants.package_rendering import render_variant
from fanout.variants.variant_digest import resolve_inputs

# A pending input is no error: the rendering is repeated with its response.
_RENDERING_BARRIER = ErrorBarrier(InputPending)
BATCH_SIZE = 100  # renderings whose pending inputs are fulfilled together


class DraftRenderer(Value, kw_only=True):
    """Assigns candidates to variants and renders those whose draft is missing or outdated."""

    world: World
    declared: DeclaredObjects
    policy_memo: PolicyMemo
    packages: UpstreamPackages
    merger: DraftMerger
    function_results: FunctionResultCache
    rollback_selector: RollbackSelector

    def choose_candidates(
        self,
        observed: ObservedPolicy,
        variants: Sequence[ObservedVariant],
        candidates: Mapping[str, str],
        leads: Mapping[str, str],
        pins: Mapping[str, Pin],
    ) -> tuple[SelectedVariant, ...]:
        """Return the given variants of a policy at their candidate, or at their pin.

        `candidates`: revision by stage; `leads`: revision by variant that goes before its stage;
        `pins`: pin by variant. An invalid package fails its variants.
        """
        with self.world.counters.times.phase("choosing"):
            rollbacks = self.rollback_selector.choose_publications(variants, pins)
            revision_by_variant = {
                variant.spec.name: leads.get(
                    variant.spec.name, candidates.get(variant.spec.stage, "")
                )
                for variant in variants
                if variant.spec.name not in rollbacks
            }
            packages = {
                revision: self._prepare_package(observed, revision)
                for revision in sorted(set(revision_by_variant.values()) - {""})
            }
            variant_memo = self.policy_memo.variant_memo(observed.resolved_policy.key)
            changed_names = self.declared.objects.find_changed_names(variant_memo.objects_stamp)
            return tuple(
                rollbacks.get(variant.spec.name)
                or self._choose_candidate(
                    variant,
                    revision_by_variant[variant.spec.name],
                    packages,
                    variant_memo.find_selected(variant),
                    changed_names,
                )
                for variant in variants
            )

    def find_problem(self, observed: ObservedPolicy, revision: str) -> InvalidInput | None:
        """Return why the tag of an allowed revision cannot be used, or None."""
        if unfetched := _find_unfetched(observed, revision):
            return unfetched
        return self.packages.find_tag_problem(
            observed.resolved_policy, revision, observed.revisions[revision]
        )

    def render_drafts(self, selected: SelectedPolicy, limit: DraftLimit | None) -> RenderedPolicy:
        """Render the drafts that are missing or outdated, as many as a policy may write."""
        variant_memo = self.policy_memo.variant_memo(selected.observed.resolved_policy.key)
        by_name = variant_memo.find_idle(selected.variants)
        variants = [it for it in selected.variants if it.spec.name not in by_name]
        due = find_due_drafts(variants, selected.suspended, limit)
        busy = due.written | due.postponed | selected.suspended
        for variant in self.render_due(variants, due, selected.observed.inputs.budget):
            by_name[variant.spec.name] = variant
            if variant.spec.name not in busy:
                variant_memo.store_idle(variant)
        return RenderedPolicy(selected, tuple([by_name[it.spec.name] for it in selected.variants]))

    def render_due(
        self, variants: Sequence[SelectedVariant], due: DueDrafts, budget: EvaluationBudget | None
    ) -> tuple[RenderedVariant, ...]:
        """Return the variants of a policy with the renderings that are due.

        A failure is the outcome of its variant. `budget`: what scripts and programs may cost.
        """
        obtain = partial(self.function_results.obtain, budget=budget)
        timing = self.world.counters.times.phase("rendering")
        with timing, self.world.progress.task("rendering", len(due.written)) as advance:

            def render(variant: SelectedVariant) -> RenderedVariant:
                rendered = self._render(variant)
                advance()
                return rendered

            rendered_variants: list[RenderedVariant] = []
            for start in range(0, len(variants), BATCH_SIZE):
                # Function results and schemas that a batch needs are requested together.
                batch = variants[start : start + BATCH_SIZE]
                due_variants = [it for it in batch if it.spec.name in due.written]
                self.world.counters.add("renders", sum(not it.is_rollback for it in due_variants))
                rendered = iter(complete([partial(render, it) for it in due_variants], obtain))
                rendered_variants += [
                    next(rendered)
                    if it.spec.name in due.written
                    else RenderedVariant(
                        it, postponed=due.hold if it.spec.name in due.postponed else None
                    )
                    for it in batch
                ]
                # Between batches only: within one, a repeated rendering needs every answer it got
                # before, or it would ask again without end.
                self.function_results.drop_if_large()
            return tuple(rendered_variants)

    def _render(self, variant: SelectedVariant) -> RenderedVariant:
        """Return the variant with its content, or its failure. Raises InputPending."""
        try:
            with _RENDERING_BARRIER:
                if variant.is_rollback:
                    return self.rollback_selector.load_content(variant)
                assert variant.package is not None, "a variant with inputs has a package"
                assert variant.inputs is not None, "a draft is wanted for variants with inputs only"
                results = self.function_results.results
                content = render_variant(variant.package, variant.spec, variant.inputs, results)
                rendered = RenderedVariant(variant, content)
                if not variant.observed.needs_merge:
                    return rendered
                with self.world.counters.times.phase("merging"):
                    return self.merger.merge_edits(rendered)
        except FanoutError as error:
            if error.reason == Reason.ADOPTION_BASE_MISSING and not variant.is_rollback:
                # Adopting needs the state that people cloned, which only the merge reads: this
                # obstacle amends what was observed.
                observed = add_adoption_obstacle(variant.observed, error)
                return RenderedVariant(replace(variant, observed=observed))
            return RenderedVariant(variant, rendering_failure=error)

    def _prepare_package(
        self, observed: ObservedPolicy, revision: str
    ) -> PreparedPackage | FanoutError | Hold:
        """Return the package, its failure, or the hold of a revision that is not allowed."""
        resolved_policy = observed.resolved_policy
        upstream = resolved_policy.declared_upstream
        # The pin of a decision stays when upstream withdraws its revision.
        if revision not in observed.revisions:
            tag = get_upstream_tag(resolved_policy, revision)
            listing = observed.inputs.upstream_listing
            sentence = (
                f"a decision names {revision}, but tag {tag} is missing from"
                f" {upstream.metadata.name}; restore the tag, promote another revision, or withdraw"
                " the decision"
            )
            who = "a maintainer of the upstream package or any promoter (fanout promote)"
            if isinstance(listing, RefListing) and f"refs/tags/{tag}" in listing.refs:
                sentence = (
                    f"a decision names {revision}, but spec.upstream.revision does not allow it;"
                    " allow it, promote another revision, or withdraw the decision"
                )
                who = "the policy's author (spec.upstream) or any promoter (fanout promote)"
            return Hold(Reason.NO_REVISION, sentence, who=who)
        if unfetched := _find_unfetched(observed, revision):
            return unfetched
        commit, get_package = observed.revisions[revision], self.packages.get_package
        scopes = self.declared.scopes
        return run_isolated(partial(get_package, resolved_policy, revision, commit, scopes))

    def _choose_candidate(
        self,
        variant: ObservedVariant,
        revision: str,
        packages: Mapping[str, PreparedPackage | FanoutError | Hold],
        memoized: SelectedVariant | None,
        changed_names: Collection[tuple[str, str]] | None,
    ) -> SelectedVariant:
        """Return the variant at its candidate; an internal error fails this variant alone.

        `memoized` is the variant with its last candidate, and `changed_names` are the objects that
        changed since; None: unknown.
        """
        package = packages.get(revision)
        if isinstance(package, Hold):
            is_published = variant.published is not None and variant.published.revision == revision
            hold = None if is_published else package
            return SelectedVariant(variant, revision=revision, revision_hold=hold)
        if package is None or isinstance(package, FanoutError):
            return SelectedVariant(variant, revision=revision, preparation_failure=package)
        if memoized is not None and (memoized.revision, memoized.package) != (revision, package):
            memoized = None
        if memoized is not None and changed_names is not None:
            # A loop: asked for each variant in every pass after a changed object.
            for injector in variant.spec.injectors if changed_names else ():
                if (variant.spec.namespace, injector.name) in changed_names:
                    break
            else:
                return memoized
        previous_inputs = memoized.inputs if memoized is not None else None
        try:
            with BARRIER:
                inputs = resolve_inputs(
                    package, variant.spec, self.declared.objects, previous_inputs
                )
        except Bug as error:
            return SelectedVariant(variant, revision=revision, preparation_failure=error)
        if memoized is not None and inputs is memoized.inputs:
            return memoized
        return SelectedVariant(variant, revision=revision, package=package, inputs=inputs)


def _find_unfetched(observed: ObservedPolicy, revision: str) -> InvalidInput | None:
    """Return why the objects of a tag cannot be had from the server, or None."""
    tag = get_upstream_tag(observed.resolved_policy, revision)
    listing = observed.inputs.upstream_listing
    unfetched = listing.unfetched if isinstance(listing, RefListing) else {}
    if (error := unfetched.get(f"refs/tags/{tag}")) is None:
        return None
    return InvalidInput(error.problem, reason=error.reason, remedy=error.remedy, where=error.where)

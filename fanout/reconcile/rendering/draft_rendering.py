"""Rendering of drafts: candidates are assigned to cases, and due renderings are made."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY

from fanout.api.reasons import Reason
from fanout.errors import Bug, FanoutError
from fanout.gates.rollback_pins import Pin
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.selected_variant import SelectedVariant
from fanout.reconcile.adoption.clone_origin import add_adoption_obstacle
from fanout.reconcile.edits.downstream_merge import DraftMerger
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.reconcile.memo.case_memo import CaseMemo
from fanout.reconcile.observation.upstream_packages import UpstreamPackages, get_upstream
from fanout.reconcile.rollback.rollback_selection import RollbackSelector
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.telemetry.error_isolation import BARRIER, ErrorBarrier
from fanout.telemetry.metrics import Counters, ProgressReporter
from fanout.values import frozen, replace
from fanout.variants.package_preparation import PreparedPackage
from fanout.variants.package_rendering import render_variant
from fanout.variants.pending_inputs import InputPending, PendingInput
from fanout.variants.render_inputs import resolve_inputs

# A pending input is no error: the rendering is repeated with its response.
_RENDERING_BARRIER = ErrorBarrier(InputPending)
BATCH_SIZE = 100  # renderings whose pending inputs are fulfilled together


@frozen
class DraftRenderer:
    """Assigns candidates to cases and renders those whose draft is missing or outdated."""

    _: KW_ONLY
    packages: UpstreamPackages
    objects: ClusterObjectIndex
    counters: Counters
    progress: ProgressReporter
    merger: DraftMerger
    function_results: FunctionResultCache
    rollback_selector: RollbackSelector
    scopes: Mapping[tuple[str, str], bool]  # of kinds, by declared definitions

    def choose_candidates(
        self,
        resolved_policy: ResolvedPolicy,
        cases: Sequence[ObservedVariant],
        candidates: Mapping[str, str],
        revisions: Mapping[str, str],
        pins: Mapping[str, Pin],
        case_memo: CaseMemo,
    ) -> tuple[SelectedVariant, ...]:
        """Return the cases at their stage's candidate, or at the pin of the variant.

        `candidates`: revision by stage; `revisions`: commit by revision; `pins`: pin by
        variant. An invalid package fails its variants.
        """
        with self.counters.times.phase("choosing"):
            rollback_cases = self.rollback_selector.choose_publications(cases, pins)
            wanted_revisions = {
                candidates.get(case.spec.stage, "")
                for case in cases
                if case.spec.name not in rollback_cases
            }
            prepared: dict[str, PreparedPackage | FanoutError] = {}
            for name in sorted(wanted_revisions - {""}):
                prepared[name] = self._prepare_package(
                    resolved_policy, name, revisions.get(name, "")
                )
            return tuple(
                rollback_cases.get(case.spec.name)
                or self._choose_contained(
                    case, candidates.get(case.spec.stage, ""), prepared, case_memo
                )
                for case in cases
            )

    def render_due(
        self, cases: Iterable[SelectedVariant], suspended: Collection[str] = ()
    ) -> tuple[RenderedVariant, ...]:
        """Return the cases with the renderings that are due.

        A failure is the outcome of its variant. Variants named in `suspended` are never due.
        """
        due_by_case = [
            (case, case.wants_draft and case.spec.name not in suspended) for case in cases
        ]
        due_count = sum(due for _, due in due_by_case)
        timing = self.counters.times.phase("rendering")
        with timing, self.progress.task("rendering", due_count) as advance:
            rendered_cases: list[RenderedVariant] = []
            for start in range(0, len(due_by_case), BATCH_SIZE):
                rendered_cases += self._render_batch(
                    due_by_case[start : start + BATCH_SIZE], advance
                )
                # Between batches only: within one, a repeated rendering needs every answer it got
                # before, or it would ask again without end.
                self.function_results.drop_if_large()
            return tuple(rendered_cases)

    def _render_batch(
        self, due_by_case: Sequence[tuple[SelectedVariant, bool]], advance: Callable[[], None]
    ) -> Iterator[RenderedVariant]:
        """Render a batch; function results and schemas that it needs are requested together."""
        finished = {
            number: RenderedVariant(case)
            for number, (case, due) in enumerate(due_by_case)
            if not due
        }
        self.counters.add("renders", sum(due and not case.is_rollback for case, due in due_by_case))
        # A rendering that lacks an answer stops with a question and is repeated from its start once
        # all questions of the round are answered: programs then run in parallel, and renderings
        # stay pure functions.
        while len(finished) < len(due_by_case):
            questions: list[PendingInput] = []
            for number, (case, _) in enumerate(due_by_case):
                if number not in finished:
                    try:
                        finished[number] = self._render_contained(case)
                        advance()
                    except InputPending as stop:
                        questions.append(stop.pending_input)
            self.function_results.obtain(questions)
        return (finished[number] for number in range(len(due_by_case)))

    def _prepare_package(
        self, resolved_policy: ResolvedPolicy, name: str, commit: str
    ) -> PreparedPackage | FanoutError:
        assert resolved_policy.upstream is not None, "a policy without its upstream is not rendered"
        try:
            with BARRIER:
                package = get_upstream(resolved_policy).package
                return self.packages.get_package(
                    resolved_policy.upstream, package, name, commit, self.scopes
                )
        except FanoutError as error:
            return error

    def _choose_contained(
        self,
        case: ObservedVariant,
        revision: str,
        prepared: Mapping[str, PreparedPackage | FanoutError],
        case_memo: CaseMemo,
    ) -> SelectedVariant:
        """Return the case at its candidate; an internal error fails this variant alone."""
        try:
            with BARRIER:
                return self._choose_candidate(case, revision, prepared, case_memo)
        except Bug as error:
            return SelectedVariant(case, revision=revision, preparation_failure=error)

    def _choose_candidate(
        self,
        case: ObservedVariant,
        revision: str,
        prepared: Mapping[str, PreparedPackage | FanoutError],
        case_memo: CaseMemo,
    ) -> SelectedVariant:
        package = prepared.get(revision)
        if package is None:
            return SelectedVariant(case, revision=revision)
        if isinstance(package, FanoutError):
            return SelectedVariant(case, revision=revision, preparation_failure=package)
        memoized = case_memo.find_chosen(case)
        if memoized is not None and (memoized.revision, memoized.package) == (revision, package):
            inputs = resolve_inputs(package, case.spec, self.objects, memoized.inputs)
            if inputs is memoized.inputs:
                return memoized
        else:
            inputs = resolve_inputs(package, case.spec, self.objects)
        return case_memo.store_chosen(
            SelectedVariant(case, revision=revision, package=package, inputs=inputs)
        )

    def _render_contained(self, case: SelectedVariant) -> RenderedVariant:
        try:
            with _RENDERING_BARRIER:
                return self._render_case(case)
        except FanoutError as error:
            if error.reason == Reason.ADOPTION_BASE_MISSING and not case.is_rollback:
                # Adopting needs the state that people cloned, which only the merge reads: this
                # obstacle amends what was observed.
                observed = add_adoption_obstacle(case.observed, error)
                return RenderedVariant(replace(case, observed=observed))
            return RenderedVariant(case, rendering_failure=error)

    def _render_case(self, case: SelectedVariant) -> RenderedVariant:
        """Return the case with its content. Raises InputPending, or what its rendering raises."""
        if case.is_rollback:
            return self.rollback_selector.load_content(case)
        assert case.package is not None, "wants_draft has looked"
        assert case.inputs is not None, "wants_draft has looked"
        content = render_variant(
            case.package, case.spec, case.inputs, self.function_results.results
        )
        rendered = RenderedVariant(case, content)
        if not case.observed.needs_merge:
            return rendered
        with self.counters.times.phase("merging"):
            return self.merger.merge_edits(rendered)

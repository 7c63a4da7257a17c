"""Reconciliation pass in its fixed order: resolve, read records, list, evaluate, plan.

Data flows down and never up: each step is a function of the results of the steps before
it. Between steps stand the queries to the outside: evaluate, list, read (docs/architecture.md).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from fanout.api.git_repository import Repository, TagPolicy
from fanout.declared.declared_objects import DeclaredObjects, ObjectKey, key_of
from fanout.errors import Bug, FanoutError
from fanout.plan.changes.policy_plan import PolicyPlan, join_plans
from fanout.plan.changes.publication_messages import CommitSettings, with_merge_messages
from fanout.plan.observation.repository_state import RefListing, RepositoryAccess, RepositoryState
from fanout.reconcile.budget_store import BudgetStore
from fanout.reconcile.commit_templates import CommitMessages, build_commit_messages
from fanout.reconcile.draft_rendering import DraftRenderer
from fanout.reconcile.edits.downstream_merge import DraftMerger
from fanout.reconcile.edits.edit_detection import DownstreamEditDetector
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.reconcile.history.rollback_selection import RollbackSelector
from fanout.reconcile.memo.policy_memo import PolicyMemo
from fanout.reconcile.memo.resolution_memo import PolicyResolution, ResolutionMemo
from fanout.reconcile.observation.evidence_observer import CheckProber
from fanout.reconcile.observation.repository_access import (
    PackageContentCache,
    build_listing_requests,
    build_remote,
)
from fanout.reconcile.observation.repository_observer import RepositoryObserver
from fanout.reconcile.observation.upstream_packages import UpstreamPackages
from fanout.reconcile.ownership.path_claims import find_writing_accesses, group_drafted_states
from fanout.reconcile.ownership.path_ownership import trailer_owner
from fanout.reconcile.pass_results import (
    NoopSnapshot,
    PassPlan,
    PolicyResult,
    describe_outdated_records,
)
from fanout.reconcile.pass_scope import OwnershipMemo, PassMode, PassScope, PassSubject, build_scope
from fanout.reconcile.pending_pushes import PendingPushes
from fanout.reconcile.policy_evaluator import PolicyEvaluator
from fanout.reconcile.policy_isolation import compute_changes, without_failed_policies
from fanout.reconcile.policy_phases import PolicyInputs
from fanout.reconcile.problem_aggregation import summarize_function_warnings
from fanout.reconcile.pull_requests.package_changes import PackageChangeReader
from fanout.reconcile.pull_requests.request_memo import RequestMemos
from fanout.reconcile.pull_requests.request_observer import RequestObserver
from fanout.reconcile.pull_requests.request_planner import (
    RequestPlanner,
    RequestTextBuilder,
    plan_others,
)
from fanout.reconcile.pull_requests.upstream_history import UpstreamHistoryReader
from fanout.reconcile.records.lost_records import find_lost_policies, stop_lost_policies
from fanout.reconcile.records.undeclared_policies import find_undeclared
from fanout.reconcile.removal.orphaned_variants import find_removal_doubt
from fanout.reconcile.selection.policy_resolution import (
    PolicyKey,
    ResolvedPolicy,
    are_all_promotions_read,
    find_promotions,
    full_branch_name,
    repository_key,
    with_error,
)
from fanout.reconcile.selection.propagation_conditions import PropagationConditions
from fanout.reconcile.validation.declaration_findings import find_declaration_warnings
from fanout.reconcile.variant_dependencies import find_dependents
from fanout.reconcile.world import World
from fanout.selection.target_selection import usable_repositories
from fanout.telemetry.error_isolation import BARRIER, run_isolated
from fanout.values import Value, replace


def _stopped_result(resolved_policy: ResolvedPolicy, scope: PassScope) -> PolicyResult:
    """Return the result of a policy of which only the error that stopped it is available."""
    return PolicyResult(
        resolved_policy=resolved_policy,
        policy_state=scope.policy_states[resolved_policy.records_key],
        error=resolved_policy.error,
    )


class _PassContext(Value):
    """Evaluation of all policies of a pass, and what it shares."""

    scope: PassScope
    listings: Mapping[str, RefListing | FanoutError]  # by key of the remote
    repository_states: Mapping[str, RepositoryState]  # by Repository identity
    drafted_states: Mapping[str, Sequence[RepositoryState]]  # by policy, as trailers name it
    evaluator: PolicyEvaluator
    budgets: BudgetStore

    def build_inputs(
        self, resolved_policy: ResolvedPolicy, results: Mapping[PolicyKey, PolicyResult]
    ) -> PolicyInputs:
        """Build the inputs of one policy; `results` holds the policies evaluated before it."""
        scope, declared = self.scope, self.evaluator.declared
        declaration = resolved_policy.declaration
        ownership = scope.path_ownership.for_policy(
            resolved_policy,
            self.repository_states,
            self.drafted_states.get(trailer_owner(resolved_policy), ()),
        )
        if ownership.stray_states:
            # Anybody who may push to a repository can name the policy in a draft there.
            usable = usable_repositories(resolved_policy.namespace, declared.repositories)
            states = (self.repository_states.get(repository_key(it)) for it in usable.values())
            usable_states = {id(it) for it in states}
            stray_states = [it for it in ownership.stray_states if id(it) in usable_states]
            ownership = replace(ownership, stray_states=tuple(stray_states))
        return PolicyInputs(
            resolved_policy=resolved_policy,
            policy_state=scope.policy_states[resolved_policy.records_key],
            path_ownership=ownership,
            listings=self.listings,
            promotions=find_promotions(resolved_policy, declared.promotions),
            is_sweep=self.evaluator.mode.is_sweep_for(resolved_policy),
            budget=self.budgets.get_budget(declaration) if declaration is not None else None,
            all_promotions_read=are_all_promotions_read(declared, resolved_policy.namespace),
            removal_doubt=find_removal_doubt(
                declared, resolved_policy.upstream_policy, self.evaluator.now
            ),
            dependency_holds=scope.dependencies.find_holds(resolved_policy, results),
        )

    def evaluate_policies(self) -> tuple[tuple[PolicyResult, ...], tuple[PolicyPlan, ...]]:
        """Return the results of the covered policies, and the plans of those that have one."""
        scope, evaluator = self.scope, self.evaluator
        evaluator.policy_memo.begin_pass(it.key for it in scope.all_policies)
        results = {it.key: _stopped_result(it, scope) for it in scope.stopped}
        plan_by_policy: dict[PolicyKey, PolicyPlan | None] = dict.fromkeys(results)
        # The order is topological: a variant's dependencies are evaluated before it, and their
        # results are among its inputs.
        for resolved_policy in scope.evaluated:
            try:
                with BARRIER:
                    inputs = self.build_inputs(resolved_policy, results)
                    result, plan = evaluator.evaluate_changed(inputs)
            except Bug as error:  # it stops this policy alone
                result, plan = _stopped_result(with_error(resolved_policy, error), scope), None
            results[resolved_policy.key], plan_by_policy[resolved_policy.key] = result, plan
        covered_plans = (plan_by_policy[it.key] for it in scope.covered)
        return (
            tuple(results[it.key] for it in scope.covered),
            tuple(plan for plan in covered_plans if plan is not None),
        )

    def build_snapshot(
        self, results: Sequence[PolicyResult], request_observer: RequestObserver
    ) -> NoopSnapshot | None:
        """Return the inputs of a pass without work, or None if a repeated pass may differ."""
        scope = self.scope
        heads = {key: it.head for key, it in scope.policy_states.items() if it.head}
        listings = {key: it for key, it in self.listings.items() if isinstance(it, RefListing)}
        # A repository that could not be listed may hide any change, so such a pass is not stored.
        # The same holds for a forge; and no search shows a status that a check waits for.
        forge_states = [it.forge for it in self.repository_states.values() if it.forge]
        if not (
            heads
            and not any(it.traces for it in results)
            and self.evaluator.policy_memo.is_complete()
            and listings.keys() == self.listings.keys()
            and not any(it.failure is not None or it.statuses for it in forge_states)
        ):
            return None
        next_checks = [it.decision.next for it in results if it.decision is not None]
        next_checks += [it.retry_at for it in results]
        urls = tuple(sorted(request_observer.hosted_urls))
        return NoopSnapshot(
            heads,
            scope.listing_requests,
            listings,
            next_check=min((it for it in next_checks if it is not None), default=None),
            hosted_urls=urls,
            requests=request_observer.digest_known(urls),
        )


class Reconciler:
    """Observes the world and plans a pass. Keeps between passes only what cannot have changed."""

    def __init__(
        self,
        world: World,
        request_memos: RequestMemos | None = None,
        *,
        budgets: BudgetStore | None = None,
        long_running: bool = False,
    ) -> None:
        """Create the reconciler.

        `request_memos`: what earlier processes read from forges. `budgets`: which texts exceeded
        limits in earlier processes. `long_running`: it makes many passes and keeps memos that
        speed up all but the first.
        """
        self._budgets = budgets or BudgetStore()
        self._world = world
        self._observer = RepositoryObserver(world.git, world.setup.install)
        self._request_observer = RequestObserver(
            world.git, world.forges, world.setup.install, request_memos or RequestMemos()
        )
        self._content_cache = PackageContentCache()
        self._change_reader = PackageChangeReader(world.git)
        self._history_reader = UpstreamHistoryReader(world.git, world.setup.forge_programs)
        self._edit_detector = DownstreamEditDetector(self._content_cache)
        self._conditions = PropagationConditions(world.sandbox)
        self._rollback = RollbackSelector(world.git)
        self._policy_memo = PolicyMemo(keeps_variants=long_running)
        self._packages = UpstreamPackages(world.git, world.setup.limits)
        # Results of functions that renderings asked for; `fanout diff` renders with them, too.
        self.function_results = FunctionResultCache(world.function_runtime)
        self._resolution_memo = ResolutionMemo(world.sandbox, self._budgets)
        self._ownership_memo = OwnershipMemo()
        self._pending_pushes = PendingPushes(world.git)
        self._declared_repositories: tuple[Repository, ...] = ()  # of the last pass

    def list_injected_kinds(
        self, pass_plan: PassPlan
    ) -> Mapping[ObjectKey, frozenset[tuple[str, str]]]:
        """Return group and kind of what the upstream packages of the planned policies inject."""
        policies = (it.resolved_policy for it in pass_plan.policies)
        return {
            key_of(it.declaration): self._packages.list_injected_kinds(it)
            for it in policies
            if it.declaration is not None and it.upstream is not None
        }

    def plan_pass(self, declared: DeclaredObjects, now: datetime, mode: PassMode) -> PassPlan:
        """Make one pass up to its plan; nothing is changed yet.

        Raises Unavailable or Denied when records cannot be reached, InvalidInput when they are
        lost.
        """
        phase, setup = self._world.counters.times.phase, self._world.setup
        self._budgets.begin_pass(now, (*declared.declarations, *declared.promotions))
        self.function_results.begin_pass()
        resolved_policies = self._resolve_policies(declared).policies
        with phase("records"):
            keys = [it.records_key for it in resolved_policies]
            policy_states = self._world.records.read_all(keys)
        outdated = next((it.outdated for it in policy_states.values() if it.outdated), "")
        self._pending_pushes.end_outdated(declared, policy_states)
        mode = replace(mode, publish=mode.publish and not outdated)
        scope = build_scope(
            resolved_policies,
            policy_states,
            declared.repositories,
            mode,
            setup.install,
            self._ownership_memo,
        )
        with phase("listings"):
            # What another process published is not on an older listing, and would look as if it had
            # been removed by hand.
            evaluated_keys = {it.records_key for it in scope.evaluated}
            is_changed_elsewhere = self._world.records.take_changed_elsewhere(evaluated_keys)
            listings, scope = self._list_repositories(
                scope, declared.repositories, 0.0 if is_changed_elsewhere else mode.listing_age
            )
        with phase("views"):
            context = self._build_context(declared, scope, mode, listings, now)
        scope, repository_states = context.scope, context.repository_states
        results, plans = context.evaluate_policies()
        with phase("changes"):
            sandbox, budgets = self._world.sandbox, self._budgets
            messages = run_isolated(
                partial(build_commit_messages, plans, scope.covered, declared, sandbox, budgets)
            )
        if isinstance(messages, FanoutError):  # what commits say is no reason to hold them
            messages = CommitMessages({}, (f"commits have the default message: {messages}",))
        self._budgets.store()
        writing = CommitSettings(setup.install, setup.identity, messages.texts)
        plans = tuple(with_merge_messages(plan, writing) for plan in plans)
        with phase("changes"):
            repository_changes, policy_errors = compute_changes(plans, writing)
        self._pending_pushes.note(repository_changes, plans, declared, policy_states)
        # Whoever names single policies did not ask about the rest of the directory.
        find_warnings = partial(find_undeclared, scope.policy_states, declared, mode.namespace)
        undeclared_warnings = _collect_warnings(find_warnings) if mode.only is None else ()
        others = plan_others(scope, repository_states, setup.install)
        pass_plan = PassPlan(
            now=now,
            policies=results,
            plans=plans,
            other_statuses=others.statuses,
            plan=join_plans(plans, (action for it in others.statuses for action in it.actions)),
            changes=repository_changes,
            writing=writing,
            has_outdated_records=bool(outdated),
            warnings=(
                *map(describe_outdated_records, filter(None, [outdated])),
                *undeclared_warnings,
                *_collect_warnings(partial(find_declaration_warnings, scope.covered, declared)),
                *messages.warnings,
                *dict.fromkeys(it for result in results for it in result.warnings),
                *others.warnings,
                *_collect_warnings(partial(summarize_function_warnings, results)),
            ),
            undeclared_warnings=undeclared_warnings,
            snapshot=None
            if others.statuses
            else context.build_snapshot(results, self._request_observer),
        )
        return without_failed_policies(pass_plan, policy_errors)

    def _build_context(
        self,
        declared: DeclaredObjects,
        scope: PassScope,
        mode: PassMode,
        listings: Mapping[str, RefListing | FanoutError],
        now: datetime,
    ) -> _PassContext:
        """Read the states of all repositories, and count the claims of those who have written."""
        repository_states = self._read_repository_states(scope, declared, listings)
        drafted_states = group_drafted_states(repository_states.values())
        ownership = scope.path_ownership
        writing_accesses = find_writing_accesses(
            ownership.policy_paths.claims,
            scope.policy_states,
            drafted_states,
            repository_states.values(),
        )
        paths = self._ownership_memo.count_claims(ownership.policy_paths, writing_accesses)
        self._conditions.begin_pass()
        world = self._world
        results = self.function_results
        renderer = DraftRenderer(
            world=world,
            declared=declared,
            policy_memo=self._policy_memo,
            packages=self._packages,
            merger=DraftMerger(world, results, self._content_cache),
            function_results=results,
            rollback_selector=self._rollback,
        )
        evaluator = PolicyEvaluator(
            world=world,
            declared=declared,
            mode=mode,
            now=now,
            renderer=renderer,
            prober=CheckProber(world, declared.objects, now),
            edit_detector=self._edit_detector,
            conditions=self._conditions,
            policy_memo=self._policy_memo,
            request_planner=RequestPlanner(
                now=now,
                publish=mode.publish,
                texts=RequestTextBuilder(
                    change_reader=self._change_reader,
                    history_reader=self._history_reader,
                    sandbox=world.sandbox,
                    declared=declared,
                    budgets=self._budgets,
                ),
            ),
        )
        return _PassContext(
            replace(scope, path_ownership=replace(ownership, policy_paths=paths)),
            listings,
            repository_states,
            drafted_states,
            evaluator,
            self._budgets,
        )

    def find_concerned(self, declared: DeclaredObjects) -> frozenset[PassSubject] | None:
        """Return the policies and variants that changes since the last call or pass may concern.

        None: possibly all. Whatever depends on them is concerned, too.
        """
        resolution = self._resolve_policies(declared)
        if not resolution.is_exact:
            return None
        pending = [PassSubject(namespace, name) for namespace, name, _ in resolution.concerned]
        concerned: set[PassSubject] = set()
        while pending:
            if (subject := pending.pop()) not in concerned:
                concerned.add(subject)
                dependents = find_dependents(declared, subject.namespace, subject.name)
                pending += (PassSubject(subject.namespace, name) for name in dependents)
        return frozenset(concerned)

    def _resolve_policies(self, declared: DeclaredObjects) -> PolicyResolution:
        """Resolve all declared policies, as far as a change concerns them."""
        with self._world.counters.times.phase("names"):
            resolution = self._resolution_memo.resolve(declared)
        concerned = resolution.concerned
        policies = (it.upstream_policy for it in resolution.policies if it.key in concerned)
        stages = (
            stage for policy in policies if policy is not None for stage in policy.spec.stages
        )
        texts = [text for stage in stages for text in stage.propagate_when]
        # Preparing all at once is quick; failures are prepared again, and reported, by policy.
        run_isolated(partial(self._conditions.prepare, texts))
        self._policy_memo.drop(concerned)
        return resolution

    def _list_repositories(
        self, scope: PassScope, repositories: Sequence[Repository], max_age: float
    ) -> tuple[Mapping[str, RefListing | FanoutError], PassScope]:
        """List every repository of the scope once, or of all policies without records.

        Returns by key of the remote the listing or the error, and the scope without the policies
        whose repositories show that records were lost. Raises InvalidInput if these are all.
        """
        git, setup = self._world.git, self._world.setup
        # Listing the repositories of all policies is expensive and only needed to tell a first
        # start from lost records, that is, while no policy has any.
        has_records = setup.new_records or any(it.head for it in scope.policy_states.values())
        blank_reason = "" if has_records else self._world.records.empty_problem()
        if blank_reason:
            former = scope.path_ownership.former_repositories
            requests = build_listing_requests(scope.all_policies, former, setup.install)
            scope = replace(scope, listing_requests=requests)
        listings = git.list_refs(scope.listing_requests, max_age) if scope.listing_requests else {}
        if blank_reason:
            errors = find_lost_policies(
                blank_reason, scope.all_policies, repositories, listings, setup.install
            )
            scope = stop_lost_policies(scope, errors) if errors else scope
        return listings, scope

    def digest_unchanged_requests(self, urls: Sequence[str]) -> str:
        """Return the digest of the requests in repositories at these URLs if nothing changed.

        Else "". It takes one search of each host.
        """
        outcome = run_isolated(partial(self._request_observer.digest_unchanged, urls))
        return "" if isinstance(outcome, FanoutError) else outcome

    def _read_repository_states(
        self,
        scope: PassScope,
        declared: DeclaredObjects,
        listings: Mapping[str, RefListing | FanoutError],
    ) -> dict[str, RepositoryState]:
        """Read the state of every downstream repository, by Repository identity."""
        # A pass may cover few policies: what is declared, and not what it reads, says what is kept.
        if declared.repositories != self._declared_repositories:
            self._declared_repositories = declared.repositories
            places = [(build_remote(it), full_branch_name(it)) for it in declared.repositories]
            self._observer.retain(places)
            self._request_observer.retain(remote for remote, _ in places)
        repositories = {
            repository_key(it): it
            for resolved_policy in scope.evaluated
            for it in resolved_policy.distinct_repositories
        }
        for former_repositories in scope.path_ownership.former_by_policy.values():
            for repository, _ in former_repositories.values():
                repositories.setdefault(repository_key(repository), repository)
        policy_paths = scope.path_ownership.policy_paths
        # Of all that are declared, so that tags do not depend on what a pass covers.
        # One Repository with `tags: None` is enough: of its publications a tag could not be taken
        # back.
        untagged = {
            build_remote(it).access
            for it in declared.repositories
            if it.spec.tags is TagPolicy.NONE
        }
        repository_states: dict[str, RepositoryState] = {}
        states_by_access: dict[RepositoryAccess, RepositoryState] = {}
        for key, repository in repositories.items():
            remote = build_remote(repository)
            listing = policy_paths.claims.branch_conflicts.get(key, listings[remote.key])
            if isinstance(listing, FanoutError):
                repository_states[key] = self._observer.read_state(
                    remote, full_branch_name(repository), listing, ()
                )
                continue
            # Two Repository objects may name one repository and secret: its state is read once,
            # with the paths of both, so that it is the same object for all and memos by identity
            # hold.
            if (access := remote.access) not in states_by_access:
                states_by_access[access] = self._observer.read_state(
                    remote,
                    full_branch_name(repository),
                    listing,
                    policy_paths.paths_by_url.get(access[0], ()),
                    pushes_tags=access not in untagged,
                )
            repository_states[key] = states_by_access[access]
        return self._request_observer.attach_forges(repositories, repository_states, scope)


def _collect_warnings(work: Callable[[], Iterable[str]]) -> tuple[str, ...]:
    """Return the warnings that `work` yields, or the internal error that prevents them."""
    warnings = run_isolated(lambda: tuple(work()))
    return (str(warnings),) if isinstance(warnings, FanoutError) else warnings

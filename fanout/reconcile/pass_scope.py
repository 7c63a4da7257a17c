"""Scope of a pass: evaluated policies, owners of paths, repositories to list.

Computed from declarations and records of all policies at once, before any repository is
listed, because path ownership is decided among all. The paths of all policies are kept between
passes, for as long as no variant has another one. An internal error stops only the
policy or the records that cause it; the scope is then computed again without them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from fanout.api.git_repository import Repository
from fanout.api.object_meta import Label
from fanout.declared.declared_objects import DeclaredObjects, key_of
from fanout.errors import FanoutError
from fanout.plan.actions import PlanAction
from fanout.plan.changes.next_drafts import DraftLimit
from fanout.plan.observation.repository_state import RefListingRequest, RepositoryAccess
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.plan.records.policy_status import RecordedStatus
from fanout.reconcile.observation.repository_access import build_listing_requests
from fanout.reconcile.ownership.path_ownership import (
    PathOwnershipIndex,
    PolicyPaths,
    find_former_repositories,
    list_paths,
    read_recorded_paths,
)
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy, with_error
from fanout.reconcile.variant_dependencies import VariantDependencies
from fanout.telemetry.error_isolation import run_isolated, run_without_faulty
from fanout.values import Value, replace


class PassSubject(NamedTuple):
    """Namespace and name of a policy, or of a hand-written variant."""

    namespace: str
    name: str


def subject_of(action: PlanAction) -> PassSubject:
    """Return the policy of an action, or its hand-written variant."""
    return PassSubject(action.namespace, action.policy or action.variant)


def list_subjects(declared: DeclaredObjects, namespace: str = "") -> frozenset[PassSubject]:
    """Return all policies and variants that are declared in one namespace, or in all."""
    return frozenset(
        PassSubject(item.metadata.namespace, item.metadata.name)
        for item in declared.declarations
        if namespace in ("", item.metadata.namespace)
    )


def list_requests(declared: DeclaredObjects) -> dict[PassSubject, str]:
    """Return the annotation by which people ask for a pass, of those objects that have it."""
    requests: dict[PassSubject, str] = {}
    for item in declared.declarations:
        meta = declared.positions[key_of(item)].value["metadata"]
        if value := (meta.get("annotations") or {}).get(Label.REQUESTED_AT):
            requests[PassSubject(item.metadata.namespace, item.metadata.name)] = value
    return requests


class PassMode(Value, kw_only=True):
    """Kind and coverage of a pass.

    People name policies by `only`; the loop states exactly its `subjects`.
    """

    publish: bool = True  # False: drafts are updated and nothing is published
    sweep: bool = True  # False: with a schedule, automation publishes nothing
    only: frozenset[str] | None = None  # names of policies and hand-written variants; None: all
    namespace: str = ""  # "": all
    # exactly these; None: all that `only` and `namespace` allow
    subjects: frozenset[PassSubject] | None = None
    # seconds: listings of repositories up to this age are planned on; a push compares each ref
    listing_age: float = 0.0
    draft_limit: DraftLimit | None = None  # None: no limit
    # subjects for which this pass is no sweep
    unswept_subjects: frozenset[PassSubject] = frozenset()

    def covers(self, resolved_policy: ResolvedPolicy) -> bool:
        """Return True if the policy, or the hand-written variant, is part of the pass."""
        return (
            (self.only is None or resolved_policy.name in self.only)
            and self.namespace in ("", resolved_policy.namespace)
            and (self.subjects is None or resolved_policy.subject in self.subjects)
        )

    def is_sweep_for(self, resolved_policy: ResolvedPolicy) -> bool:
        """Return True if automation may publish the policy, if it has a schedule."""
        return self.sweep and resolved_policy.subject not in self.unswept_subjects


@dataclass(slots=True)
class OwnershipMemo:
    """Memo of the last result; one per process."""

    _policies: Sequence[ResolvedPolicy] = ()
    _statuses: Mapping[RecordsKey, RecordedStatus] = field(default_factory=dict)
    _paths: PolicyPaths | None = None
    # The last paths with the claims that count for everybody, from the paths and accesses given.
    _counted: tuple[PolicyPaths, frozenset[RepositoryAccess], PolicyPaths] | None = None

    def find_paths(
        self,
        all_policies: Sequence[ResolvedPolicy],
        policy_states: Mapping[RecordsKey, PolicyRecords],
    ) -> PolicyPaths:
        """Return the paths of all policies: the same object if none was added or left."""
        statuses = {key: it.status for key, it in policy_states.items()}
        if (
            self._paths is None
            # Unchanged statuses are the same objects, so this compares few of them.
            or statuses != self._statuses
            or not have_same_paths(self._policies, all_policies)
        ):
            self._paths = PolicyPaths.build(all_policies, policy_states)
        self._policies, self._statuses = all_policies, statuses
        return self._paths

    def count_claims(
        self, policy_paths: PolicyPaths, writing_accesses: frozenset[RepositoryAccess]
    ) -> PolicyPaths:
        """Return the paths where these claims count: the same object if neither changed."""
        if not writing_accesses:
            return policy_paths
        counted = self._counted
        if counted is None or counted[0] is not policy_paths or counted[1] != writing_accesses:
            owner_by_path = policy_paths.recorded_paths.owner_by_path
            refusals = policy_paths.claims.find_refusals(owner_by_path, writing_accesses)
            paths = replace(policy_paths, refusals=refusals)
            counted = self._counted = policy_paths, writing_accesses, paths
        return counted[2]


def have_same_paths(previous: Sequence[ResolvedPolicy], present: Sequence[ResolvedPolicy]) -> bool:
    """Return whether these are the same policies, and their variants have the same paths."""
    if len(previous) != len(present):
        return False
    for old, new in zip(previous, present, strict=True):
        if old is new:
            continue
        if old.key != new.key or len(old.variants) != len(new.variants):
            return False
        # Most variants of a large policy are the same objects, and so are their Repositories.
        changed = [
            (before, after)
            for before, after in zip(old.variants, new.variants, strict=True)
            if before is not after
            or old.repositories[after.name] is not new.repositories[after.name]
        ]
        if list_paths(old, (it for it, _ in changed)) != list_paths(new, (it for _, it in changed)):
            return False
    return True


class PassScope(Value, kw_only=True):
    """Covered policies, their dependencies, and what is known of them before any listing."""

    all_policies: Sequence[ResolvedPolicy]
    covered: Sequence[ResolvedPolicy]  # policies of the pass
    # With the policies they depend on, in order of evaluation.
    evaluated: Sequence[ResolvedPolicy]
    policy_states: Mapping[RecordsKey, PolicyRecords]
    dependencies: VariantDependencies
    path_ownership: PathOwnershipIndex
    listing_requests: tuple[RefListingRequest, ...]
    stopped: Sequence[ResolvedPolicy] = ()  # covered policies with an error of their own


def build_scope(
    all_policies: Sequence[ResolvedPolicy],
    policy_states: Mapping[RecordsKey, PolicyRecords],
    repositories: Sequence[Repository],
    mode: PassMode,
    install: str,
    memo: OwnershipMemo,
) -> PassScope:
    """Build the scope of a pass.

    A policy that makes this fail is stopped, and the others proceed.

    Raises Bug if no single policy causes the failure.
    """

    def build_once(
        states: Mapping[RecordsKey, PolicyRecords], policies: Sequence[ResolvedPolicy]
    ) -> PassScope:
        covered = [it for it in policies if mode.covers(it)]
        dependencies = VariantDependencies(policies)
        evaluated = dependencies.with_dependencies(covered)
        policy_paths = memo.find_paths(policies, states)
        former = find_former_repositories(evaluated, policies, policy_paths, repositories)
        path_ownership = PathOwnershipIndex(
            all_policies=policies, policy_paths=policy_paths, former_by_policy=former
        )
        return PassScope(
            all_policies=policies,
            covered=covered,
            evaluated=evaluated,
            policy_states=states,
            dependencies=dependencies,
            path_ownership=path_ownership,
            listing_requests=build_listing_requests(
                evaluated, path_ownership.former_repositories, install
            ),
        )

    # Usually nothing fails: one attempt for all is cheap, the search for the culprit is not.
    complete_scope = run_isolated(partial(build_once, policy_states, all_policies))
    if not isinstance(complete_scope, FanoutError):
        return complete_scope
    readable_states = dict(policy_states)
    for key, policy_state in policy_states.items():
        outcome = run_isolated(partial(read_recorded_paths, {key: policy_state}, all_policies))
        if isinstance(outcome, FanoutError):
            # An empty status alone would let others take the policy's paths; the failure holds the
            # policy itself.
            readable_states[key] = replace(policy_state, status=RecordedStatus(), failure=outcome)
    scope, errors_by_index = run_without_faulty(partial(build_once, readable_states), all_policies)
    stopped_policies = [with_error(all_policies[n], error) for n, error in errors_by_index.items()]
    covered_policies = [it for it in stopped_policies if mode.covers(it)]
    return replace(
        scope,
        all_policies=[*scope.all_policies, *stopped_policies],
        covered=[*scope.covered, *covered_policies],
        stopped=covered_policies,
    )

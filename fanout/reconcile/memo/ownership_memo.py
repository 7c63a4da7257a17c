"""Memo of the paths of all policies between passes, valid while no variant has another one.

With the repositories that have drafts of each policy, found once per repository state.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fanout.plan.observation.repository_state import RepositoryAccess, RepositoryState
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.plan.records.policy_status import RecordedStatus
from fanout.reconcile.ownership.path_ownership import PolicyPaths, list_paths
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy


@dataclass(slots=True)
class OwnershipMemo:
    """Memo of the last result; one per process."""

    _policies: Sequence[ResolvedPolicy] = ()
    _statuses: Mapping[RecordsKey, RecordedStatus] = field(default_factory=dict)
    _paths: PolicyPaths | None = None
    # The last paths with the claims that count for everybody, from the paths and accesses given.
    _counted: tuple[PolicyPaths, frozenset[RepositoryAccess], PolicyPaths] | None = None
    # By key: the last state of each repository, and the policies with drafts there, as trailers
    # name them.
    _draft_owners: dict[str, tuple[RepositoryState, frozenset[str]]] = field(default_factory=dict)

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
            paths = policy_paths.with_writers(writing_accesses)
            counted = self._counted = policy_paths, writing_accesses, paths
        return counted[2]

    def group_drafted_states(
        self, states: Iterable[RepositoryState]
    ) -> Mapping[str, Sequence[RepositoryState]]:
        """Return the states of the repositories that have drafts of a policy, by policy."""
        grouped: dict[str, dict[int, RepositoryState]] = {}
        for state in states:
            previous, owners = self._draft_owners.get(state.key, (None, frozenset()))
            if previous is not state:
                owners = frozenset(it.trailers.policy for it in state.drafts)
                owners |= {it.policy for it in state.removal_sets}
                self._draft_owners[state.key] = state, owners
            for owner in owners:
                grouped.setdefault(owner, {})[id(state)] = state
        return {owner: tuple(by_id.values()) for owner, by_id in grouped.items()}


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
        old_paths = list_paths(old, (it for it, _ in changed))
        if old_paths != list_paths(new, (it for _, it in changed)):
            return False
    return True

"""Repositories with drafts of each policy, found once per repository state."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fanout.plan.observation.repository_state import RepositoryState


@dataclass(slots=True)
class RepositoryDrafts:
    """Policies that have drafts in each repository; one per process."""

    # By key: the last state of each repository, and the policies as trailers name them.
    _owners: dict[str, tuple[RepositoryState, frozenset[str]]] = field(default_factory=dict)

    def group_states(
        self, states: Iterable[RepositoryState]
    ) -> Mapping[str, Sequence[RepositoryState]]:
        """Return the states of the repositories that have drafts of a policy, by policy."""
        grouped: dict[str, dict[int, RepositoryState]] = {}
        for state in states:
            for owner in self._find_owners(state):
                grouped.setdefault(owner, {})[id(state)] = state
        return {owner: tuple(by_id.values()) for owner, by_id in grouped.items()}

    def _find_owners(self, state: RepositoryState) -> frozenset[str]:
        previous, owners = self._owners.get(state.key, (None, frozenset()))
        if previous is not state:
            owners = frozenset(it.trailers.policy for it in state.drafts.values()) | frozenset(
                it.policy for it in state.removal_drafts.values()
            )
            self._owners[state.key] = state, owners
        return owners

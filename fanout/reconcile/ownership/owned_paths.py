"""Paths of all packages of this installation, by repository."""

from collections.abc import Mapping

from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.reconcile.ownership.path_ownership import RecordedPaths

OwnedPaths = Mapping[str, frozenset[str]]
"""Paths on record, by identity of the repository."""


def find_owned_paths(
    recorded_paths: RecordedPaths, policy_states: Mapping[RecordsKey, PolicyRecords]
) -> OwnedPaths | None:
    """Return the paths that the records of all policies name, or None if some cannot be read.

    These are the paths of what was published or released, and of what was left behind there.
    """
    if any(it.failure is not None or it.rewound is not None for it in policy_states.values()):
        return None
    paths: dict[str, set[str]] = {}
    for places in recorded_paths.all_paths_by_owner.values():
        for repository, path in places:
            paths.setdefault(repository, set()).add(path)
    return {repository: frozenset(it) for repository, it in paths.items()}


def with_observed_paths(
    recorded_paths: OwnedPaths | None, state: RepositoryState
) -> frozenset[str] | None:
    """Return the paths on record in a repository, with those of its drafts and publications.

    The records do not name drafts, nor publications that a crash kept from them.
    """
    if recorded_paths is None:
        return None
    drafted = {draft.path for draft in state.drafts.values()}
    recorded = recorded_paths.get(state.identity, frozenset())
    return recorded | drafted | state.published_renderings.keys()

"""Access to the repository of a Repository object, and objects that give the same access."""

from collections.abc import Collection, Sequence

from fanout.api.git_repository import Repository
from fanout.errors import ErrorLocation, InvalidInput
from fanout.plan.observation.repository_state import Remote, RepositoryAccess
from fanout.reconcile.selection.policy_resolution import (
    ResolvedPolicy,
    repository_key,
    repository_place,
)


def build_remote(repository: Repository) -> Remote:
    """Return the remote of a Repository object; its secret is one of its own namespace."""
    spec = repository.spec
    if spec.secret_ref is None:
        return Remote(spec.url, allowed_objects=spec.allowed_objects)
    return Remote(
        spec.url,
        spec.secret_ref.name,
        repository.metadata.namespace,
        allowed_objects=spec.allowed_objects,
    )


def find_branch_conflicts(
    resolved_policies: Sequence[ResolvedPolicy], recorded_places: Collection[str]
) -> dict[str, InvalidInput]:
    """Return errors for Repository objects with one URL, one secret and different branches.

    Keyed by identity. A repository has one rendering branch, so only one branch can be served:
    that with publications on record (`recorded_places`), so that a new object never takes one out
    of service that is in use; else that of the first object by namespace and name. Objects with
    another secret are not compared: without access to the repository they could otherwise make
    those of others unusable.
    """
    first_by_access: dict[RepositoryAccess, Repository] = {}
    errors: dict[str, InvalidInput] = {}
    repositories = {
        repository_key(it): it
        for resolved_policy in resolved_policies
        for it in resolved_policy.distinct_repositories
    }
    # Sorted by identity last, so that the same object wins in every pass.
    for identity in sorted(
        repositories, key=lambda it: (repository_place(repositories[it]) not in recorded_places, it)
    ):
        repository = repositories[identity]
        first_repository = first_by_access.setdefault(build_remote(repository).access, repository)
        if first_repository.spec.branch != repository.spec.branch:
            is_own = first_repository.metadata.namespace == repository.metadata.namespace
            other = f"Repository {repository_key(first_repository)}"
            errors[identity] = InvalidInput(
                f"{other if is_own else 'a Repository in another namespace'} has the same URL"
                f" {repository.spec.url} and branch {first_repository.spec.branch}; a repository"
                " is published to on one branch",
                reason="RepositoryUnavailable",
                remedy="use the same branch in both, or another repository",
                where=ErrorLocation(repository.identity, "spec.branch"),
            )
    return errors

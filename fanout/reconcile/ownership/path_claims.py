"""Claims of variants on paths, by the credentials that their repository is reached with.

Anybody who may declare objects can claim a path of any URL. So claims refuse those of other
credentials only where the repository or its publications on record show that fanout has written
it with these credentials.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from fanout.api.git_repository import Repository
from fanout.errors import ErrorLocation, InvalidInput
from fanout.groups import group_pairs
from fanout.plan.observation.repository_state import RepositoryAccess, RepositoryState
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.reconcile.observation.repository_access import build_remote
from fanout.reconcile.selection.policy_resolution import (
    ResolvedPolicy,
    repository_key,
    repository_place,
)
from fanout.selection.path_collisions import (
    PackagePlace,
    PathClaim,
    PathOwner,
    find_collisions,
    find_intrusions,
)
from fanout.values import Value


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


class PathClaims(Value):
    """Claims of all variants that could be written, by access to their repository."""

    claims_by_access: Mapping[RepositoryAccess, Sequence[PathClaim]]
    # By canonical URL, each group in order.
    accesses_by_url: Mapping[str, Sequence[RepositoryAccess]]
    # Of the repositories that are reached with different credentials: who writes with each.
    policies_by_access: Mapping[RepositoryAccess, Collection[RecordsKey]]
    # Errors of Repository objects on a second branch, by identity.
    branch_conflicts: Mapping[str, InvalidInput]

    @classmethod
    def build(
        cls, all_policies: Sequence[ResolvedPolicy], recorded_places: Collection[str]
    ) -> "PathClaims":
        """Build the claims of all policies; a Repository on a second branch has none.

        `recorded_places`: repositories with publications on record.
        """
        branch_conflicts = find_branch_conflicts(all_policies, recorded_places)
        claims_by_access: dict[RepositoryAccess, list[PathClaim]] = {}
        policies_by_access: dict[RepositoryAccess, set[RecordsKey]] = {}
        for policy in all_policies:
            claims_by_id: dict[int, list[PathClaim]] = {}
            for repository in policy.distinct_repositories:
                if repository_key(repository) in branch_conflicts:
                    continue
                access = build_remote(repository).access
                claims_by_id[id(repository)] = claims_by_access.setdefault(access, [])
                policies_by_access.setdefault(access, set()).add(policy.records_key)
            for variant in policy.variants:
                if (claims := claims_by_id.get(id(policy.repositories[variant.name]))) is not None:
                    claims.append((policy.place_by_variant[variant.name], variant))
        accesses_by_url = group_pairs((it[0], it) for it in sorted(claims_by_access))
        shared = (group for group in accesses_by_url.values() if len(group) > 1)
        return cls(
            claims_by_access,
            accesses_by_url,
            {access: policies_by_access[access] for group in shared for access in group},
            branch_conflicts,
        )

    def find_refusals(
        self,
        owner_by_path: Mapping[PackagePlace, PathOwner],
        writing_accesses: Collection[RepositoryAccess],
    ) -> dict[PathOwner, str]:
        """Return the refusal of each variant whose path belongs to another, or to nobody yet.

        `writing_accesses`: those whose claims count for everybody. The claims of any other access
        count for its own variants alone.
        """
        refusals: dict[PathOwner, str] = {}
        for accesses in self.accesses_by_url.values():
            counted = [it for it in accesses if it in writing_accesses]
            claims = [claim for access in counted for claim in self.claims_by_access[access]]
            refusals |= find_collisions(claims, owner_by_path)
            for access in accesses:
                if access not in counted:
                    own_claims = self.claims_by_access[access]
                    # The collisions within the access come last, and so replace the others.
                    refusals |= find_intrusions(own_claims, claims)
                    refusals |= find_collisions(own_claims, owner_by_path)
        return refusals


def group_drafted_states(
    states: Iterable[RepositoryState],
) -> Mapping[str, Sequence[RepositoryState]]:
    """Return the repositories that have drafts of a policy, by policy as trailers name it."""
    grouped: dict[str, dict[int, RepositoryState]] = {}
    for state in states:
        owners = {it.trailers.policy for it in state.drafts}
        for owner in owners.union(it.policy for it in state.removal_sets):
            grouped.setdefault(owner, {})[id(state)] = state
    return {owner: tuple(by_id.values()) for owner, by_id in grouped.items()}


def find_writing_accesses(
    claims: PathClaims,
    policy_states: Mapping[RecordsKey, PolicyRecords],
    drafted_states: Mapping[str, Sequence[RepositoryState]],
    repository_states: Iterable[RepositoryState],
) -> frozenset[RepositoryAccess]:
    """Return the accesses with which policies have written a repository that others name, too.

    A draft of a policy shows it, or a publication on record that the repository has. A release
    alone does not: it is recorded before the push, which may be denied. `drafted_states`: by
    policy as trailers name it.
    """
    if not claims.policies_by_access:
        return frozenset()
    states_by_url = group_pairs((it.remote.access[0], it) for it in repository_states)
    written_urls: dict[RecordsKey, set[str]] = {}
    for key in {key for keys in claims.policies_by_access.values() for key in keys}:
        drafted = drafted_states.get(f"{key.namespace}/{key.policy}", ())
        urls = written_urls[key] = {it.remote.access[0] for it in drafted}
        for line in policy_states[key].status.variants.values():
            commit = line.published.merge if line.published is not None else ""
            url = line.repository.partition("#refs/heads/")[0]
            # One publication of each repository is enough.
            if (
                commit
                and url not in urls
                and any(
                    it.find_publication_commit(line.path) == commit
                    for it in states_by_url.get(url, ())
                )
            ):
                urls.add(url)
    return frozenset(
        access
        for access, keys in claims.policies_by_access.items()
        if any(access[0] in written_urls[key] for key in keys)
    )

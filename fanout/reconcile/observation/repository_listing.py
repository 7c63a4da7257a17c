"""Ref listings of a pass: one per repository, upstream and downstream alike."""

from collections.abc import Collection, Iterable, Sequence

from fanout.api.git_repository import Repository
from fanout.api.package_variant import AdoptionPolicy, DeletionPolicy
from fanout.api.upstream_policy import DraftPer
from fanout.errors import ErrorLocation, InvalidInput
from fanout.plan.observation.repository_state import RefListingRequest, Remote, RepositoryAccess
from fanout.reconcile.selection.policy_resolution import (
    ResolvedPolicy,
    full_branch_name,
    repository_key,
    repository_place,
)
from fanout.selection.ref_names import drafts_prefix, record_traces_ref, vendor_ref


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


def adopts_existing(resolved_policy: ResolvedPolicy) -> bool:
    """Return True if the variants may adopt packages that already exist at their paths."""
    declaration = resolved_policy.declaration
    return (
        declaration is not None
        and declaration.spec.adoption_policy is AdoptionPolicy.ADOPT_EXISTING
    )


def get_draft_per(resolved_policy: ResolvedPolicy) -> DraftPer:
    """Return what shares a draft: a hand-written variant always has its own."""
    policy = resolved_policy.upstream_policy
    return policy.spec.draft_per if policy is not None else DraftPer.VARIANT


def orphans_packages(resolved_policy: ResolvedPolicy) -> bool:
    """Return True if a package stays on the branch when its variant is removed."""
    return (
        resolved_policy.declaration is not None
        and resolved_policy.declaration.spec.deletion_policy is DeletionPolicy.ORPHAN
    )


def build_listing_requests(
    resolved_policies: Sequence[ResolvedPolicy],
    former_repositories: Sequence[Repository],
    install: str,
) -> tuple[RefListingRequest, ...]:
    """Build all listing requests.

    A repository that is both upstream and downstream is listed once, with each secret.

    `former_repositories`: repositories that no variant is published to any more.
    """
    refs_by_remote: dict[str, tuple[Remote, set[str]]] = {}

    def add(repository: Repository, refs: Iterable[str]) -> None:
        remote = build_remote(repository)
        refs_by_remote.setdefault(remote.key, (remote, set()))[1].update(refs)

    for resolved_policy in resolved_policies:
        if (upstream := resolved_policy.upstream) is not None:
            spec = resolved_policy.upstream_spec
            refs = {f"refs/tags/{join_upstream_path(upstream, spec.package)}/*"}
            if spec.revision.commit:
                refs = {"refs/heads/*"}
            elif adopts_existing(resolved_policy):
                # A package cloned by hand may follow a branch instead of a tag.
                refs.add("refs/heads/*")
            add(upstream, refs)
        for repository in resolved_policy.distinct_repositories:
            add(repository, list_downstream_refs(repository, install))
    for repository in former_repositories:
        add(repository, list_downstream_refs(repository, install))
    return tuple(
        RefListingRequest(remote, tuple(sorted(own))) for remote, own in refs_by_remote.values()
    )


def list_downstream_refs(repository: Repository, install: str) -> tuple[str, ...]:
    """Return the refs of a downstream repository that a pass reads."""
    return list_read_refs(full_branch_name(repository), install)


def list_read_refs(branch: str, install: str) -> tuple[str, ...]:
    """Return the refs of a downstream repository that a pass reads, by its branch."""
    return branch, f"{drafts_prefix(install)}*", vendor_ref(install), record_traces_ref(install)


def join_upstream_path(repository: Repository, package: str) -> str:
    """Return the package's path from the root of the upstream Git repository."""
    return f"{repository.spec.directory.strip('/')}/{package}".lstrip("/")


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

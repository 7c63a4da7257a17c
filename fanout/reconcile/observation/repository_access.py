"""Access to repositories: the remote of a Repository object, and the refs that a pass asks of it.

Each repository is listed once, upstream and downstream alike. Of an upstream repository the refs
are the tags of the packages, and its branches where one is needed.
"""

from collections.abc import Iterable, Sequence

from fanout.api.git_repository import Repository
from fanout.plan.observation.repository_state import RefListingRequest, Remote
from fanout.reconcile.selection.policy_resolution import (
    ResolvedPolicy,
    full_branch_name,
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
            path = join_upstream_path(upstream, spec.package)
            has_commit = bool(spec.revision.commit)
            # A package cloned by hand may follow a branch instead of a tag.
            branches = has_commit or resolved_policy.adopts_existing
            add(upstream, list_upstream_refs(path, tags=not has_commit, branches=branches))
        for repository in resolved_policy.distinct_repositories:
            add(repository, list_read_refs(full_branch_name(repository), install))
    for repository in former_repositories:
        add(repository, list_read_refs(full_branch_name(repository), install))
    return tuple(
        RefListingRequest(remote, tuple(sorted(own))) for remote, own in refs_by_remote.values()
    )


def list_upstream_refs(path: str, *, tags: bool = True, branches: bool = True) -> tuple[str, ...]:
    """Return patterns of the refs of an upstream repository for the package at this path."""
    patterns = ("refs/heads/*", branches), (f"refs/tags/{path}/*", tags)
    return tuple(pattern for pattern, is_read in patterns if is_read)


def list_read_refs(branch: str, install: str) -> tuple[str, ...]:
    """Return the refs of a downstream repository that a pass reads, by its branch."""
    return branch, f"{drafts_prefix(install)}*", vendor_ref(install), record_traces_ref(install)


def join_upstream_path(repository: Repository, package: str) -> str:
    """Return the package's path from the root of the upstream Git repository."""
    return f"{repository.spec.directory.strip('/')}/{package}".lstrip("/")

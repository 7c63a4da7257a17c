"""The second step of a pass: one listing of every repository, upstream and downstream alike."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fanout.api.repository import Repository
from fanout.api.upstream import AdoptionPolicy, DeletionPolicy
from fanout.api.urls import canonical_url
from fanout.errors import InvalidInput, Where
from fanout.plan.repository import Look, Remote
from fanout.reconcile.names import Named, branch_of, repository_key
from fanout.selection.naming import drafts_under, vendor_ref


@dataclass(slots=True)
class _Wanted:
    """A repository and the refs whose objects the pass will read."""

    remote: Remote
    keep: set[str] = field(default_factory=set)


def remote_of(repository: Repository) -> Remote:
    """Where a Repository object says its repository is."""
    secret = repository.spec.secret_ref
    return Remote(repository.spec.url, secret.name if secret else "")


def adopts(named: Named) -> bool:
    """May the variants take over packages that are there already?"""
    declared = named.policy or named.written
    return declared is not None and declared.spec.adoption_policy is AdoptionPolicy.ADOPT_EXISTING


def orphans(named: Named) -> bool:
    """Does a package stay on the branch when its variant goes?"""
    declared = named.policy or named.written
    return declared is not None and declared.spec.deletion_policy is DeletionPolicy.ORPHAN


def looks_at(
    named: Sequence[Named], places: Sequence[Repository], install: str
) -> tuple[Look, ...]:
    """All listings that are due; a repository that is both upstream and downstream is listed once.

    `places` are repositories to which no variant goes any more.
    """
    wanted: dict[str, _Wanted] = {}
    for item in named:
        if item.upstream is not None:
            _want(wanted, item.upstream, _upstream_refs(item))
        for repository in {repository_key(it): it for it in item.repositories.values()}.values():
            _want(wanted, repository, downstream_refs(repository, install))
    for repository in places:
        _want(wanted, repository, downstream_refs(repository, install))
    return tuple(Look(item.remote, tuple(sorted(item.keep))) for item in wanted.values())


def _want(wanted: dict[str, _Wanted], repository: Repository, refs: Sequence[str]) -> None:
    remote = remote_of(repository)
    wanted.setdefault(remote.url, _Wanted(remote)).keep.update(refs)


def _upstream_refs(item: Named) -> tuple[str, ...]:
    """The tags of the package, or every branch where a commit is asked for."""
    rule = (item.policy or item.written).spec.upstream  # type: ignore[union-attr]
    if rule.revision.commit:
        return ("refs/heads/*",)
    assert item.upstream is not None, "its refs are asked for"
    tags = f"refs/tags/{upstream_path(item.upstream, rule.package)}/*"
    # what was cloned by hand may come from a branch
    return (tags, "refs/heads/*") if adopts(item) else (tags,)


def downstream_refs(repository: Repository, install: str) -> tuple[str, ...]:
    """The refs of a downstream repository that are read."""
    return (branch_of(repository), f"{drafts_under(install)}*", vendor_ref(install))


def upstream_path(repository: Repository, package: str) -> str:
    """The package's path from the root of the upstream Git repository."""
    return f"{repository.spec.directory.strip('/')}/{package}".lstrip("/")


def branch_conflicts(named: Sequence[Named]) -> dict[str, InvalidInput]:
    """Repository objects that name one Git repository with two branches, by identity.

    The vendor branch is one per repository, so only the first of them (by name) can be served.
    """
    first: dict[str, Repository] = {}
    refused: dict[str, InvalidInput] = {}
    repositories = {repository_key(it): it for item in named for it in item.repositories.values()}
    for identity in sorted(repositories):
        repository = repositories[identity]
        other = first.setdefault(canonical_url(repository.spec.url), repository)
        if other.spec.branch != repository.spec.branch:
            refused[identity] = InvalidInput(
                f"{repository.spec.url} is also {other.identity} with branch {other.spec.branch};"
                " one repository is published to on one branch",
                reason="RepositoryUnavailable",
                remedy="give both the same branch, or use another repository",
                where=Where(repository.identity, "spec.branch"),
            )
    return refused

"""Access to repositories: their remotes, the refs that a pass asks of them, and their mirrors.

Each repository is listed once, upstream and downstream alike. Of an upstream repository the refs
are the tags of the packages, and its branches where one is needed.

A damaged mirror is marked and rebuilt by the next listing, so one more listing lets the
same pass continue. Trees and files are immutable by id: most files are the same in many
variants, and edited packages are read more than once in a pass.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from fanout.api.git_repository import Repository
from fanout.api.reasons import Reason
from fanout.errors import FanoutError
from fanout.plan.edits.edit_merge import PackageFiles
from fanout.plan.observation.repository_state import RefListingRequest, Remote
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy, full_branch_name
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


OpenReader = Callable[[Remote], ObjectReader]
"""The reader of a repository's mirror; the one that was answered before is closed then."""


@contextmanager
def open_one_at_a_time(git: GitStore) -> Iterator[OpenReader]:
    """Yield a function that opens the reader of a remote and closes the previous one.

    Callers that ask in the order of repositories open each mirror once. The yielded
    function raises as `git.reader`.
    """
    with ExitStack() as exit_stack:
        current: tuple[Remote, ObjectReader] | None = None

        def open_reader(remote: Remote) -> ObjectReader:
            nonlocal current
            if current is None or current[0] != remote:
                current = None
                # The previous reader is closed first: a policy may span hundreds of repositories,
                # and each open mirror holds files and memory.
                exit_stack.close()
                current = remote, exit_stack.enter_context(git.reader(remote))
            return current[1]

        yield open_reader


_DAMAGE_REASONS = frozenset({Reason.MIRROR_DAMAGED, Reason.MIRROR_MISSING, Reason.OBJECT_MISSING})
_Result = TypeVar("_Result")


def read_with_recovery(
    git: GitStore, listing_request: RefListingRequest, read: Callable[[], _Result]
) -> _Result:
    """Return the result of `read`; if it finds a damaged mirror, list again and read once more.

    Raises what `read` raises, and the error of the listing.
    """
    try:
        return read()
    except FanoutError as error:
        # Only damage is repaired by listing again; anything else would fail the same way.
        if error.reason not in _DAMAGE_REASONS:
            raise
    listing = git.list_refs([listing_request])[listing_request.remote.key]
    if isinstance(listing, FanoutError):
        raise listing
    return read()


_MAX_BYTES = 16 << 20  # of cached file contents and directory listings
_ENTRY_BYTES = 200  # approximate size of one entry of a listing


@dataclass(slots=True)
class PackageContentCache:
    """Cache of files by tree id and blob id; one per process.

    Trees are kept by the namespace that read them: a draft of one namespace may name a tree that
    only another one can read.
    """

    _trees: dict[tuple[str, str], PackageFiles] = field(default_factory=dict)
    _blobs: dict[str, bytes] = field(default_factory=dict)
    _size: int = 0

    def get_cached(self, namespace: str, tree: str) -> PackageFiles | None:
        """Return the files below a tree if they were read for the namespace before, else None."""
        return self._trees.get((namespace, tree))

    def read_files(self, reader: ObjectReader, namespace: str, tree: str) -> PackageFiles:
        """Return the files below a tree, for a namespace: mode and data by path.

        Raises Unavailable, and InvalidInput for a submodule and for what no package may
        contain.
        """
        cached = self._trees.get((namespace, tree))
        if cached is None:
            # Cached blobs are handed in, so the reader only reads those that are new.
            files = reader.files(tree, self._blobs)
            for entry, data in files.values():
                if entry.oid not in self._blobs:
                    self._make_room(len(data))
                    self._blobs[entry.oid] = data
            cached = {path: (entry.mode, data) for path, (entry, data) in files.items()}
            self._make_room(_ENTRY_BYTES * len(cached))
            self._trees[namespace, tree] = cached
        return cached

    def _make_room(self, size: int) -> None:
        # Everything is dropped at once: an eviction order would cost bookkeeping on every hit, and
        # what is still needed is read again within one pass.
        if self._size + size > _MAX_BYTES:
            self._trees.clear()
            self._blobs.clear()
            self._size = 0
        self._size += size

"""Access to mirrors: shared readers, recovery from damage, cached contents.

A damaged mirror is marked and rebuilt by the next listing, so one more listing lets the
same pass continue. Trees and files are immutable by id: most files are the same in many
variants, and edited packages are read more than once in a pass.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from fanout.api.reasons import Reason
from fanout.errors import FanoutError
from fanout.plan.edits.edit_merge import PackageFiles
from fanout.plan.observation.repository_state import RefListingRequest, Remote
from fanout.ports import GitStore, ObjectReader

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

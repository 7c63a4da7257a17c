"""Records repository: branches of files, changed by compare-and-swap (design §3)."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from fanout.api.reasons import Reason
from fanout.cluster import cluster_wording as wording
from fanout.errors import FanoutError, Unavailable
from fanout.plan.observation.repository_state import (
    CommitIdentity,
    FileCommit,
    RefListingRequest,
    Remote,
    RepositoryChange,
)
from fanout.ports import GitStore, ObjectReader
from fanout.telemetry.metrics import Counters
from fanout.values import frozen


@frozen
class LocalRepository:
    """A records repository on this machine, created by the first write to it."""

    path: Path
    create: Callable[[Path], None]


@frozen
class RecordsRepository:
    """Repository of the records; `local` is set if it may be created on this machine."""

    store: GitStore
    remote: Remote
    counters: Counters
    local: LocalRepository | None = None

    def heads(self, refs: Iterable[str]) -> dict[str, str]:
        """Return the heads of these branches, "" for a missing one.

        Their commits are readable. Takes one listing, or none if the repository does not exist
        yet. Raises Unavailable, Denied.
        """
        names = tuple(sorted(set(refs)))
        if not names or self._is_missing():
            return dict.fromkeys(names, "")
        remote_heads = self._list_refs(names)
        return {ref: remote_heads.get(ref, "") for ref in names}

    def heads_under(self, prefix: str) -> Mapping[str, str]:
        """Return the heads of all branches with the prefix; their commits are readable.

        Takes one listing, or none if the repository does not exist yet. Raises Unavailable,
        Denied.
        """
        if self._is_missing():
            return {}
        remote_heads = self._list_refs((f"{prefix}*",))
        return {ref: head for ref, head in remote_heads.items() if ref.startswith(prefix)}

    def explain_missing(self, refs: re.Pattern[str]) -> str:
        """Return why no ref matches the pattern, as a message; "" if there is one.

        Raises Unavailable, Denied.
        """
        if self.local is not None and self._is_missing():
            return wording.describe_missing_repository(self.local.path.absolute())
        if any(map(refs.fullmatch, self._list_refs(()))):
            return ""
        return wording.describe_empty_repository(self.remote.url)

    def reader(self) -> AbstractContextManager[ObjectReader]:
        """Open the commits of the last listing for reading."""
        return self.store.reader(self.remote)

    def change(
        self, commits: Sequence[FileCommit], expected: Mapping[str, str], by: CommitIdentity
    ) -> Mapping[str, str]:
        """Write all commits in one atomic push; return the new heads by ref.

        Raises Conflict if a branch is not at its expected head, Unavailable or Denied.
        """
        if self.local is not None and self._is_missing():
            self.local.create(self.local.path)
        change = RepositoryChange(
            remote=self.remote, identity=by, expected=expected, files=tuple(commits)
        )
        written = self.store.change([change])[self.remote.key]
        if isinstance(written, FanoutError):
            raise _with_remedy(written)
        self.counters.add("record_writes", len(commits))
        return written.refs

    def _list_refs(self, keep: tuple[str, ...]) -> Mapping[str, str]:
        listing = self.store.list_refs([RefListingRequest(self.remote, keep)])[self.remote.key]
        if isinstance(listing, FanoutError):
            raise _with_remedy(listing)
        return listing.refs

    def _is_missing(self) -> bool:
        return self.local is not None and not self.local.path.exists()


def _with_remedy(error: FanoutError) -> FanoutError:
    """Return the error with a remedy that names no Repository object: the records have none."""
    if error.reason == Reason.REMOTE_NOT_FOUND:
        error.remedy = wording.RECORDS_REMEDY
    elif error.reason == Reason.REMOTE_DENIED:
        error.remedy = wording.RECORDS_ACCESS_REMEDY
    elif isinstance(error, Unavailable) and not error.remedy:
        error.remedy = wording.RECORDS_OUTAGE_REMEDY
    return error

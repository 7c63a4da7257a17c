"""The records repository as what is kept in it sees it: branches of files, moved by
compare-and-swap. (Design §3.)
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from fanout.api.reasons import Reason
from fanout.errors import FanoutError
from fanout.plan.repository import FileCommit, Identity, Look, Remote, RepositoryChange
from fanout.ports import GitStore, Reader
from fanout.telemetry.counters import Counters
from fanout.values import frozen


@frozen
class LocalRepository:
    """A records repository on this machine, made with the first thing that is written to it."""

    path: Path
    create: Callable[[Path], None]


@frozen
class RecordsRepository:
    """Where records are kept; `local` says that the repository may be made here."""

    store: GitStore
    remote: Remote
    counters: Counters
    local: LocalRepository | None = None

    def heads(self, refs: Iterable[str]) -> dict[str, str]:
        """Where the branches are, "" for one that is not there; their commits can be read.

        One listing, none while the repository is still to be made. Raises Unavailable or Denied.
        """
        wanted = tuple(sorted(set(refs)))
        if not wanted or self._to_be_made():
            return dict.fromkeys(wanted, "")
        listed = self._listed(wanted)
        return {ref: listed.get(ref, "") for ref in wanted}

    def under(self, prefix: str) -> Mapping[str, str]:
        """All branches whose name begins so, and where they are; their commits can be read.

        One listing, none while the repository is still to be made. Raises Unavailable or Denied.
        """
        if self._to_be_made():
            return {}
        listed = self._listed((f"{prefix}*",))
        return {ref: head for ref, head in listed.items() if ref.startswith(prefix)}

    def without(self, refs: re.Pattern[str]) -> str:
        """Why no such ref is there, as a sentence; "" when there is one.

        Raises Unavailable or Denied.
        """
        if self.local is not None and self._to_be_made():
            return f"there is no repository {self.local.path.absolute()}"
        if any(map(refs.fullmatch, self._listed(()))):
            return ""
        return f"there are no records of this installation in {self.remote.url}"

    def reader(self) -> AbstractContextManager[Reader]:
        """Read what the last listing brought."""
        return self.store.reader(self.remote)

    def change(
        self, commits: Sequence[FileCommit], expected: Mapping[str, str], by: Identity
    ) -> Mapping[str, str]:
        """Write all commits in one atomic push; answers the new heads.

        Raises Conflict when a branch is not where `expected` says, Unavailable or Denied from Git.
        """
        if self.local is not None and self._to_be_made():
            self.local.create(self.local.path)
        change = RepositoryChange(self.remote, by, expected, files=tuple(commits))
        written = self.store.change([change])[self.remote.url]
        if isinstance(written, FanoutError):
            raise written
        self.counters.add("record_writes", len(commits))
        return written.refs

    def _listed(self, keep: tuple[str, ...]) -> Mapping[str, str]:
        listing = self.store.look([Look(self.remote, keep)])[self.remote.url]
        if isinstance(listing, FanoutError):
            if listing.reason == Reason.REMOTE_NOT_FOUND:  # no Repository object is at fault
                listing.remedy = "these are the records: restore them, or say with --records where"
            raise listing
        return listing.refs

    def _to_be_made(self) -> bool:
        return self.local is not None and not self.local.path.exists()

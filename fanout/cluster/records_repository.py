"""Records repository: branches of files, changed by compare-and-swap (docs/concepts/records.md)."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from fanout.api.reasons import Reason
from fanout.disk_cache import read_cache_value, write_cache_file
from fanout.errors import FanoutError, Unavailable
from fanout.plan.observation.repository_state import (
    CommitIdentity,
    FileCommit,
    RefListing,
    RefListingRequest,
    Remote,
    RepositoryChange,
)
from fanout.plan.push_refusals import is_refusal
from fanout.ports import GitStore, ObjectReader
from fanout.telemetry.metrics import Counters
from fanout.values import Value, field, write_json

_FORMAT = "refusal of records, 1"


class RecordRefusals:
    """The last refusal of a push to one records repository, for commands that only read.

    Nothing can be written there, and whether a server takes a push shows only a push. So whoever
    meets a refusal keeps it in a file of the state directory until a push goes through. `path`
    None: known to this process alone.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Use the file, which may be deleted at any time."""
        self._path = path
        self._problem = ""

    @classmethod
    def of_repository(cls, directory: Path, url: str) -> "RecordRefusals":
        """Return the refusal of the repository at a URL; `directory` has those of all."""
        return cls(directory / f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.json")

    def read(self) -> str:
        """Return the words of the last push if it was refused, else ""."""
        if self._path is None:
            return self._problem
        return read_cache_value(self._path, _FORMAT, str) or ""

    def note(self, problem: str) -> None:
        """Keep the words of a refusal."""
        self._problem = problem
        if self._path is not None:
            write_cache_file(self._path, write_json(problem), _FORMAT)

    def clear(self) -> None:
        """Forget the refusal: a push went through."""
        self._problem = ""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


_BRANCHES = "refs/heads/"
RECORDS_REMEDY = "restore the records, or name their repository with --records"
RECORDS_ACCESS_REMEDY = (
    "give the user of fanout a key that this records repository accepts, and its host key in"
    " known_hosts; in a cluster both are in the Secret fanout-ssh"
)


class LocalRepository(Value):
    """A records repository on this machine, created by the first write to it."""

    path: Path
    create: Callable[[Path], None]


class RecordsRepository(Value):
    """Repository of the records; `local` is set if it may be created on this machine."""

    store: GitStore
    remote: Remote
    counters: Counters
    local: LocalRepository | None = None
    # Errors of heads with objects that Git refuses, by commit: such a branch cannot be read.
    refused: dict[str, FanoutError] = field(default_factory=dict)
    push_refusal: RecordRefusals = field(default_factory=RecordRefusals)

    def heads(self, refs: Iterable[str]) -> dict[str, str]:
        """Return the heads of these branches, "" for a missing one, by at most one listing.

        Their commits are readable, but for those in `refused`. Raises Unavailable, Denied.
        """
        if not (names := tuple(sorted(set(refs)))) or self._is_missing():
            return dict.fromkeys(names, "")
        remote_heads = self._list_refs(names)
        return {ref: remote_heads.get(ref, "") for ref in names}

    def list_branches(self, prefix: str) -> Mapping[str, str]:
        """Return the heads of all branches, as `heads` does; those with the prefix are readable."""
        if self._is_missing():
            return {}
        refs = self._list_refs((f"{prefix}*",))
        return {ref: head for ref, head in refs.items() if ref.startswith(_BRANCHES)}

    def explain_missing(self, refs: re.Pattern[str]) -> str:
        """Return why no ref matches the pattern, as a message; "" if there is one."""
        if self.local is not None and self._is_missing():
            return f"there is no records repository {self.local.path.absolute()}"
        if any(map(refs.fullmatch, self._list_refs(()))):
            return ""
        return f"{self.remote.url} has no records of this installation"

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
            error = self._with_remedy(written)
            if is_refusal(error):
                self.push_refusal.note(str(error))
            raise error
        self.push_refusal.clear()
        self.counters.add("record_writes", len(commits))
        return written.refs

    def _list_refs(self, keep: tuple[str, ...]) -> Mapping[str, str]:
        listing = None if self.refused and keep else self._list(keep)
        if listing is None or (isinstance(listing, FanoutError) and _refuses_objects(listing)):
            # Branches with objects that Git refuses keep no other from being read.
            refs = self._list_refs(())
            prefixes = tuple(pattern[:-1] for pattern in keep if pattern.endswith("*"))
            wanted = sorted(ref for ref in refs if ref in keep or ref.startswith(prefixes))
            for commit in self.refused.keys() - {refs[ref] for ref in wanted}:
                del self.refused[commit]
            self._fetch_apart([ref for ref in wanted if refs[ref] not in self.refused], refs)
            return refs
        if isinstance(listing, FanoutError):
            raise self._with_remedy(listing)
        return listing.refs

    def _fetch_apart(self, names: Sequence[str], refs: Mapping[str, str]) -> None:
        """Fetch branches, by halves until each that is refused is alone."""
        if not names:
            return
        listing = self._list(tuple(names))
        if not isinstance(listing, FanoutError):
            return
        if not _refuses_objects(listing):
            raise self._with_remedy(listing)
        if len(names) == 1:
            self.refused[refs[names[0]]] = self._with_remedy(listing)
            return
        middle = len(names) // 2
        self._fetch_apart(names[:middle], refs)
        self._fetch_apart(names[middle:], refs)

    def _list(self, keep: tuple[str, ...]) -> RefListing | FanoutError:
        return self.store.list_refs([RefListingRequest(self.remote, keep)])[self.remote.key]

    def _with_remedy(self, error: FanoutError) -> FanoutError:
        """Return the error with a remedy that names no Repository object: the records have none."""
        if secret := self.remote.secret:
            login_remedy = (
                f"correct secret {secret!r} of records.secretRef, whose token may have expired, or"
                " permit its account to read and push this records repository"
            )
        else:
            login_remedy = (
                "create a secret with a token that may read and push this records repository, and"
                " name it in records.secretRef of the FanoutConfiguration"
            )
        uses_http = self.remote.url.startswith(("https://", "http://"))
        if _refuses_objects(error):
            error.remedy = "put the branch back on a commit without the object"
        elif error.reason == Reason.REMOTE_NOT_FOUND:
            private = f"; if it is private, {login_remedy}" if uses_http else ""
            error.remedy = f"{RECORDS_REMEDY}{private}"
        elif error.reason == Reason.REMOTE_DENIED:
            error.remedy = login_remedy if uses_http else RECORDS_ACCESS_REMEDY
        elif error.reason in (Reason.PUSH_REFUSED, Reason.PUSH_DENIED):
            error.remedy = (
                "allow the account of fanout to push branches below fanout/ to this records"
                " repository"
            )
        elif error.reason == Reason.REMOTE_UNAVAILABLE and uses_http:
            error.remedy = (
                "make this records repository reachable, for a private authority with `ca.crt` in"
                " the secret of records.secretRef; nothing is published until then"
            )
        elif isinstance(error, Unavailable) and (
            not error.remedy or error.reason == Reason.REMOTE_UNAVAILABLE
        ):
            error.remedy = "make this records repository reachable; nothing is published until then"
        return error

    def _is_missing(self) -> bool:
        return self.local is not None and not self.local.path.exists()


def _refuses_objects(error: FanoutError) -> bool:
    return error.reason == Reason.REMOTE_OBJECTS_REFUSED

"""Git store on real repositories: listing, reading and changing many of them at once.

Per repository and pass there is one private mirror, one listing, at most one fetch and
at most two pushes. Remote repositories are waited for, those on local disks keep the
processors busy, so each group has its own pool of threads.
"""

import errno
import gc
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from fanout.api.urls import GitProtocol
from fanout.errors import Bug, Denied, ErrorLocation, FanoutError, InvalidInput, Unavailable
from fanout.git.git_command import GitProgram
from fanout.git.git_errors import DISK_FULL, MIRRORS_REMEDY, DamagedMirrorError, broken_remote
from fanout.git.mirror import Mirror, MirrorDirectory, mirror_state, repack_if_due
from fanout.git.mirror_reader import MirrorReader, open_mirror
from fanout.git.object_writer import ObjectWriter
from fanout.git.push import apply_change, check_change
from fanout.git.remote_access import RemoteAccess, parse_address, remove_stale_keys
from fanout.git.remote_listing import ListingMemo, list_remote, read_head_branch
from fanout.git.remote_workers import RemoteTimeout, RemoteWorkers
from fanout.groups import group_pairs
from fanout.package.package_limits import DEFAULT_SIZES, SizeLimits
from fanout.plan.observation.repository_state import (
    PushedChange,
    RefListing,
    RefListingRequest,
    Remote,
    RepositoryChange,
    url_of_remote,
)
from fanout.ports import Credentials
from fanout.telemetry.error_isolation import ErrorBarrier
from fanout.telemetry.metrics import Counters, NoProgress, ProgressReporter

DEFAULT_PROTOCOLS = ("file", "https", "http", "ssh")
GIT_TIMEOUT = 600.0  # seconds for one git process

_REPOSITORY_BARRIER = ErrorBarrier(OSError)  # errors of the mirrors' disk are no bugs
_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


class MirrorStore:
    """Implementation of `fanout.ports.GitStore`. Thread-safe; processes may share its directory."""

    def __init__(  # noqa: PLR0913 - each is one thing that an administrator sets
        self,
        directory: Path,
        *,
        install: str,
        secrets: Callable[[str, str], Credentials | None],
        counters: Counters,
        allowed: Collection[str] = DEFAULT_PROTOCOLS,
        lends_credentials: bool = True,
        concurrency: int = 16,
        timeout: float = GIT_TIMEOUT,
        patience: RemoteTimeout | None = None,
        essential: Collection[str] = (),
        progress: ProgressReporter | None = None,
        limits: SizeLimits = DEFAULT_SIZES,
        exchange_secret: Callable[[str, str, Callable[[], Credentials]], Credentials] | None = None,
    ) -> None:
        """Open the directory of mirrors. Raises Unavailable if it cannot be written.

        `secrets` returns a secret by namespace and name whenever it is used. `allowed` are URL
        protocols. Without `lends_credentials` those of the user of this process are for its own
        remotes alone. `concurrency` is the number of repositories worked on at once; for those on
        local disks it is also limited by the processors. `timeout` is in seconds per git process;
        `patience` is how long all wait for one remote that does not answer, None: for `timeout`.
        `essential` are keys of remotes that all passes need. `limits` are the size limits of
        packages. `exchange_secret`: as `fanout.ports.ForgeDirectory` has it; None: no secret is one
        of a GitHub App.
        """
        directory = directory.absolute()
        try:
            self._mirrors = MirrorDirectory(directory)
            self._git = GitProgram(directory, tuple(allowed), counters, timeout)
            remove_stale_keys(directory)
        except OSError as error:
            raise _disk_error(error) from error
        self._writer = ObjectWriter()
        self._drafts_under = f"refs/heads/drafts/{install}/"
        self._secrets = secrets
        self._exchange_secret = exchange_secret
        self._allowed = frozenset(allowed)
        self._lends_credentials = lends_credentials
        self._limits = limits
        self._workers = RemoteWorkers(concurrency, patience, essential, self._git.stop)
        self.hurry = self._workers.hurry
        self.list_late = self._workers.list_beside
        self.end_late = self._workers.end
        self._progress = progress or NoProgress()
        self._listing_memos: dict[Path, ListingMemo] = {}  # by mirror
        self._reusable_mirrors: set[Path] = set()  # mirrors whose last listing may be reused once

    def list_refs(
        self, requests: Sequence[RefListingRequest], max_age: float = 0.0
    ) -> Mapping[str, RefListing | FanoutError]:
        """List each repository at most once, and fetch at most once; return listings by remote."""
        by_remote = group_pairs((it.remote.key, it) for it in requests)
        # A remote that hangs is reported at once, however recent its last listing is.
        recent = {
            key: self._workers.find_refusal(key) or self._find_recent(it, max_age)
            for key, it in by_remote.items()
        }
        due = {key: it for key, it in by_remote.items() if recent[key] is None}
        listed = self._run_each("listing repositories", due, self._list_one) if due else {}
        return {key: recent[key] or listed[key] for key in by_remote}

    def read_default_branch(self, remote: Remote) -> str:
        """Return the short name of the branch that HEAD of the remote names; "" if unknown."""

        def read(remote: Remote) -> str:
            access = self._resolve_access(remote)
            return self._with_mirror(
                access, lambda mirror: read_head_branch(self._git, mirror.path, access)
            )

        answer = self._run_each("asking for a branch", {remote.key: remote}, read)[remote.key]
        return "" if isinstance(answer, FanoutError) else answer  # it only completes a message

    def reuse_listings(self) -> None:
        """Let the next listing of each repository return the previous one if it asks the same.

        For a pass that directly follows a listing which detected a change.
        """
        self._reusable_mirrors = set(self._listing_memos)

    @contextmanager
    def reader(self, remote: Remote) -> Iterator[MirrorReader]:
        """Open the mirror for reading what the last listing fetched. Raises Unavailable."""
        path = self._mirrors.path_of(parse_address(remote.url, self._allowed), remote.credentials)
        try:
            with open_mirror(path, self._limits) as reader:
                yield reader
        except FanoutError:
            # A memo of a mirror that cannot be read would keep the next listing from creating the
            # mirror again.
            self._listing_memos.pop(path, None)  # the next listing reads the mirror anew
            raise

    def change(
        self, changes: Sequence[RepositoryChange]
    ) -> Mapping[str, PushedChange | FanoutError]:
        """Write and push the changes; return the written refs or an error by remote."""
        by_remote = group_pairs((it.remote.key, it) for it in changes)
        efforts: dict[str, int] = {}  # estimated as the number of drafts and commits
        for change in changes:
            merged = sum(len(merge.drafts) for merge in change.merges)
            effort = len(change.branches) + merged + len(change.files)
            efforts[change.remote.key] = max(effort, efforts.get(change.remote.key, 0))
        # The longest first, so that none starts last and delays the end.
        work = {key: by_remote[key] for key in sorted(by_remote, key=lambda key: -efforts[key])}
        written = self._run_each("writing repositories", work, self._change_one)
        return {key: written[key] for key in by_remote}

    def report_answers(self, report: Callable[[str], object]) -> None:
        """Call `report` with the URL of each repository that answers after it was given up."""
        self._workers.report_answers(lambda key: report(url_of_remote(key)))

    def close(self) -> None:
        """End what goes on although nobody waits for it any more."""
        if self._workers.list_beside():
            # Each push among them has had its time already.
            self._git.stop(push_grace=0.0)

    # ---- one repository ------------------------------------------------------------------------

    def _find_recent(
        self, requests: Sequence[RefListingRequest], max_age: float
    ) -> RefListing | None:
        """Return the last listing if it is recent and nobody has changed the mirror since."""
        try:
            access = self._resolve_access(requests[0].remote)
        except FanoutError:  # listing it tells what is wrong
            return None
        path = self._mirrors.path_of(access.address, access.name)
        memo = self._listing_memos.get(path) if max_age else None
        if memo is None or time.monotonic() - memo.at > max_age:
            return None
        return memo.listing if memo.serves(path, _combine_patterns(requests)) else None

    def _list_one(self, requests: Sequence[RefListingRequest]) -> RefListing:
        access = self._resolve_access(requests[0].remote)
        keep = _combine_patterns(requests)
        # All Repositories with these credentials see the same mirror.
        allowed = {oid for request in requests for oid in request.remote.allowed_objects}

        def work(mirror: Mirror) -> RefListing:
            last = self._listing_memos.pop(mirror.path, None)
            if last is not None and mirror.path in self._reusable_mirrors:
                self._reusable_mirrors.discard(mirror.path)  # it answers at most one listing
                if (last.keep, last.state) == (keep, mirror_state(mirror.path)):
                    self._listing_memos[mirror.path] = last
                    return last.listing
            memo = list_remote(self._git, mirror.path, access, keep, last, allowed)
            self._listing_memos[mirror.path] = memo
            return memo.listing

        return self._with_mirror(access, work)

    def _change_one(self, changes: Sequence[RepositoryChange]) -> PushedChange:
        if len(changes) > 1:
            raise Bug("two changes of one repository in one pass", reason="RepositoryChangedTwice")
        change = changes[0]
        check_change(change, self._drafts_under)
        access = self._resolve_access(change.remote)

        def work(mirror: Mirror) -> PushedChange:
            # A new mirror has neither the base commits nor the listed refs that the leases need.
            if mirror.fresh:  # deleted since the plan was made
                tags = (ref for ref in change.expected if ref.startswith("refs/tags/"))
                list_remote(self._git, mirror.path, access, ("refs/heads/*", *tags))
            # After a failure the remote is asked again, whatever the age of its listing.
            memo = self._listing_memos.pop(mirror.path, None)
            is_current = memo is not None and memo.serves(mirror.path, ())
            repack_if_due(self._git, mirror.path)
            pushed = apply_change(self._git, self._writer, mirror.path, access, change)
            if memo is not None and is_current:
                self._listing_memos[mirror.path] = memo.after_push(
                    mirror.path, pushed, pushes_tags=change.pushes_tags
                )
            return pushed

        return self._with_mirror(access, work)

    def _resolve_access(self, remote: Remote) -> RemoteAccess:
        repository_address = parse_address(remote.url, self._allowed)
        is_anonymous = not (self._lends_credentials or remote.is_own)
        if not remote.secret:
            return RemoteAccess(
                repository_address, name=remote.credentials, is_anonymous=is_anonymous
            )
        secret = self._read_secret(remote, repository_address.where)
        if secret.is_github_app and self._exchange_secret is not None:
            read_secret = partial(self._read_secret, remote, repository_address.where)
            secret = self._exchange_secret(remote.url, remote.secret, read_secret)
        return RemoteAccess(repository_address, secret, remote.credentials, is_anonymous)

    def _read_secret(self, remote: Remote, where: ErrorLocation) -> Credentials:
        secret = self._secrets(remote.namespace, remote.secret)
        if secret is None:
            raise Denied(
                f"secret {remote.secret!r} was not found",
                reason="SecretUnusable",
                remedy="create the secret, or correct spec.secretRef of the Repository",
                where=where,
            )
        return secret

    def _with_mirror(self, access: RemoteAccess, work: Callable[[Mirror], _Result]) -> _Result:
        """Run `work` on the mirror; a damaged mirror is created again, once."""
        with self._mirrors.open_locked(access.address, access.name) as mirror:
            try:
                return work(mirror)
            except DamagedMirrorError:
                self._mirrors.delete(mirror)
        # libgit2 shares the packs that are open, by path: what the failed work still holds in
        # reference cycles would be read instead of the new pack of the same name.
        gc.collect()
        with self._mirrors.open_locked(access.address, access.name) as mirror:
            try:
                return work(mirror)
            except DamagedMirrorError as error:
                raise broken_remote(error, access) from error

    # ---- all repositories ----------------------------------------------------------------------

    def _run_each(
        self, task_name: str, work: Mapping[str, _Work], function: Callable[[_Work], _Result]
    ) -> dict[str, _Result | FanoutError]:
        """Run `function` for each remote; return the results or errors in the same order."""

        def run_one(item: _Work) -> _Result | FanoutError:
            try:
                with self._git.counters.times.work("all"), _REPOSITORY_BARRIER:
                    return function(item)
            except FanoutError as error:
                return error
            except OSError as error:
                return _disk_error(error)

        def locate(key: str) -> ErrorLocation:
            return parse_address(url_of_remote(key), self._allowed).where

        def is_local(key: str) -> bool:
            try:
                address = parse_address(url_of_remote(key), self._allowed)
            except InvalidInput:  # a refused URL counts as local
                return True
            return address.protocol is GitProtocol.FILE

        with self._progress.task(task_name, len(work)) as advance:
            return self._workers.run_all(work, run_one, is_local, locate, advance)


def _combine_patterns(requests: Sequence[RefListingRequest]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(it for request in requests for it in request.mirrored_patterns))


def _disk_error(error: OSError) -> FanoutError:
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    return Unavailable(
        DISK_FULL if full else f"cannot write a mirror: {error}",
        reason="DiskFull" if full else "MirrorUnusable",
        remedy=MIRRORS_REMEDY,
    )

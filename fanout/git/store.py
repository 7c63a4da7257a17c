"""The Git port on real Git: private mirrors, one listing, one fetch, at most two pushes each."""

import errno
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from fanout.api.configuration import GitEngine
from fanout.api.urls import Protocol
from fanout.errors import Bug, Denied, FanoutError, InvalidInput, Unavailable
from fanout.git.address import address
from fanout.git.change import apply_change, check_change
from fanout.git.command import GitProgram
from fanout.git.credentials import Access, remove_left_keys
from fanout.git.engines import engine_of
from fanout.git.failures import DamagedMirrorError, broken_remote
from fanout.git.listing import Looked, look
from fanout.git.mirror import Mirror, Mirrors, state_of
from fanout.git.pack import LARGEST
from fanout.git.reader import MirrorReader, open_mirror
from fanout.git.repack import repack_if_due
from fanout.git.workers import Workers
from fanout.package.limits import DEFAULT_SIZES, SizeLimits
from fanout.plan.repository import Listing, Look, Remote, RepositoryChange, Written
from fanout.ports import Secret
from fanout.telemetry.barrier import Barrier
from fanout.telemetry.counters import Counters
from fanout.telemetry.progress import Progress, Quiet

DEFAULT_PROTOCOLS = ("file", "https", "http", "ssh")
TIMEOUT = 600.0  # seconds for one git process

_REPOSITORY = Barrier(OSError)  # what the disk of the mirrors does is no bug
_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


class MirrorStore:
    """`fanout.ports.GitStore`. Thread-safe; several processes may use one directory."""

    def __init__(  # noqa: PLR0913 - each is one thing that an administrator sets
        self,
        directory: Path,
        *,
        install: str,
        secrets: Callable[[str], Secret | None],
        counters: Counters,
        allowed: Collection[str] = DEFAULT_PROTOCOLS,
        concurrency: int = 16,
        timeout: float = TIMEOUT,
        progress: Progress | None = None,
        engine: GitEngine = GitEngine.IN_PROCESS,
        largest_pack: int = LARGEST,
        limits: SizeLimits = DEFAULT_SIZES,
    ) -> None:
        """`directory` is for the mirrors; `secrets` answers a secret by its name when it is used.

        `allowed` are protocols, `concurrency` is the number of repositories worked on at once;
        of those on our own disks no more than keep the processors busy.
        `engine` writes what is smaller than `largest_pack`, in bytes; fast-import the rest.
        `limits` are of packages that are read.
        Raises Unavailable when the directory cannot be made or written.
        """
        directory = directory.absolute()
        try:
            self._mirrors = Mirrors(directory)
            self._git = GitProgram(directory, tuple(allowed), counters, timeout)
            remove_left_keys(directory)
        except OSError as error:
            raise _disk_error(error) from error
        self._engine = engine_of(engine, self._git, largest_pack)
        self._drafts_under = f"refs/heads/drafts/{install}/"
        self._secrets = secrets
        self._allowed = frozenset(allowed)
        self._limits = limits
        self._workers = Workers(concurrency, self._git.stop)
        self._progress = progress or Quiet()
        self._looked: dict[Path, Looked] = {}  # by mirror
        self._reusable: set[Path] = set()  # mirrors whose last look stands once more

    def look(self, looks: Sequence[Look]) -> Mapping[str, Listing | FanoutError]:
        """One listing per repository and at most one fetch, by URL; a failure is its own answer.

        Several looks at one repository are made as one.
        """
        by_url: dict[str, list[Look]] = {}
        for one in looks:
            by_url.setdefault(one.remote.url, []).append(one)
        return self._each("listing repositories", by_url, self._look)

    def reuse_listings(self) -> None:
        """Let the next look at each repository answer with the last one, if it asks the same.

        For a pass that follows at once on a look which found that something has changed.
        """
        self._reusable = set(self._looked)

    @contextmanager
    def reader(self, remote: Remote) -> Iterator[MirrorReader]:
        """Read what the last look brought. Raises Unavailable when nothing is there."""
        path = self._mirrors.path(address(remote.url, self._allowed))
        try:
            with open_mirror(path, self._limits) as reader:
                yield reader
        except FanoutError:
            self._looked.pop(path, None)  # the next look sees for itself what is there
            raise

    def change(self, changes: Sequence[RepositoryChange]) -> Mapping[str, Written | FanoutError]:
        """Write and push, by URL; a failure is its own answer.

        Conflict: a ref is not as `expected`; nothing was done. Denied: the remote refused.
        """
        by_url: dict[str, list[RepositoryChange]] = {}
        for one in changes:
            by_url.setdefault(one.remote.url, []).append(one)
        # The longest first: at the end nobody waits for one that has just begun.
        longest = sorted(by_url, key=lambda url: -max(map(_size, by_url[url])))
        work = {url: by_url[url] for url in longest}
        written = self._each("writing repositories", work, self._change)
        return {url: written[url] for url in by_url}

    # ---- one repository ------------------------------------------------------------------------

    def _look(self, looks: Sequence[Look]) -> Listing:
        access = self._access([one.remote for one in looks])
        keep = tuple(dict.fromkeys(pattern for one in looks for pattern in one.keep))

        def work(mirror: Mirror) -> Listing:
            last = self._looked.pop(mirror.path, None)
            if last is not None and self._stands(mirror.path, keep, last):
                self._looked[mirror.path] = last
                return last.listing
            found = look(self._git, mirror.path, access, keep, last)
            self._looked[mirror.path] = found
            return found.listing

        return self._with_mirror(access, work)

    def _stands(self, mirror: Path, keep: tuple[str, ...], last: Looked) -> bool:
        """Return whether the last look answers this one too; it does so once."""
        reusable = mirror in self._reusable
        self._reusable.discard(mirror)
        return reusable and (last.keep, last.mirror) == (keep, state_of(mirror))

    def _change(self, changes: Sequence[RepositoryChange]) -> Written:
        if len(changes) > 1:
            raise Bug("two changes of one repository in one pass", reason="RepositoryChangedTwice")
        change = changes[0]
        check_change(change, self._drafts_under)
        access = self._access([change.remote])

        def work(mirror: Mirror) -> Written:
            if mirror.fresh:  # it was there when the plan was made
                tags = (ref for ref in change.expected if ref.startswith("refs/tags/"))
                look(self._git, mirror.path, access, ("refs/heads/*", *tags))
            repack_if_due(self._git, mirror.path)
            return apply_change(self._git, self._engine, mirror.path, access, change)

        return self._with_mirror(access, work)

    def _access(self, remotes: Sequence[Remote]) -> Access:
        place = address(remotes[0].url, self._allowed)
        names = {remote.secret for remote in remotes}
        if len(names) > 1:
            raise InvalidInput(
                f"the repository is named with different secrets: {', '.join(sorted(names))}",
                reason="SecretsDiffer",
                remedy="let all Repositories with this URL name one secret",
                where=place.where,
            )
        name = names.pop()
        if not name:
            return Access(place)
        secret = self._secrets(name)
        if secret is None:
            raise Denied(
                f"secret {name!r} was not found",
                reason="SecretUnusable",
                remedy="make the secret, or correct spec.secretRef of the Repository",
                where=place.where,
            )
        return Access(place, secret)

    def _with_mirror(self, access: Access, work: Callable[[Mirror], _Result]) -> _Result:
        """Work on the mirror; one that turns out damaged is made again, once."""
        with self._mirrors.opened(access.address) as mirror:
            try:
                return work(mirror)
            except DamagedMirrorError:
                self._mirrors.drop(mirror)
        with self._mirrors.opened(access.address) as mirror:
            try:
                return work(mirror)
            except DamagedMirrorError as error:
                raise broken_remote(error, access) from error

    # ---- all repositories ----------------------------------------------------------------------

    def _each(
        self, what: str, work: Mapping[str, _Work], do: Callable[[_Work], _Result]
    ) -> dict[str, _Result | FanoutError]:
        """The answer for each URL, in the order of the URLs given."""

        def answer(one: _Work) -> _Result | FanoutError:
            try:
                with self._git.counters.times.work("all"), _REPOSITORY:
                    return do(one)
            except FanoutError as error:
                return error
            except OSError as error:
                return _disk_error(error)
            finally:
                advance()

        with self._progress.task(what, len(work)) as advance:
            return self._workers.each(work, answer, self._near)

    def _near(self, url: str) -> bool:
        """Is the repository on our own disks? One that is refused costs nothing either."""
        try:
            return address(url, self._allowed).protocol is Protocol.FILE
        except InvalidInput:
            return True


def _size(change: RepositoryChange) -> int:
    """About what it is to write the change."""
    merged = sum(len(merge.drafts) for merge in change.merges)
    return len(change.drafts) + merged + len(change.files)


def _disk_error(error: OSError) -> FanoutError:
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    return Unavailable(
        "the disk of the mirrors is full" if full else f"a mirror cannot be written: {error}",
        reason="DiskFull" if full else "MirrorUnusable",
        remedy="check the room and the permissions of the directory of the mirrors",
    )

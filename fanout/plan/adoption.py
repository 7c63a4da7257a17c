"""Taking over a package that somebody else wrote: what it was before people changed it.

kpt and Porch write into a package's Kptfile which state of upstream it was cloned from. That state
is the base of the first merge; so what people changed since is told from what upstream changed.
(Design §4, "The base".)
"""

import re

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.edits import MISSING, Edit, Path, get
from fanout.package.kptfile import API_VERSION, NAME, kptfile_of
from fanout.package.manifests import Manifest
from fanout.plan.merging import Files
from fanout.plan.repository import Remote
from fanout.values import frozen

REMEDY = (
    "write upstreamLock into its Kptfile as kpt does (git: repo, directory, ref and commit of the"
    " revision that it came from) and commit it"
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LOCK = ("upstreamLock", "git")
# What a clone says about itself; upstream's own Kptfile says something else there, or nothing.
_OWN: tuple[Path, ...] = (("metadata", "name"), ("upstream",), ("upstreamLock",))
_EMPTY = f"apiVersion: {API_VERSION}\nkind: {NAME}\n".encode()


@frozen
class Lock:
    """The state of upstream that a package says it was cloned from."""

    repo: str
    directory: str
    commit: str
    ref: str = ""

    def is_of(self, url: str, directory: str) -> bool:
        """Is it the package in this directory of this repository, however the two are spelled?"""
        here, there = _spelled(self.repo, self.directory), _spelled(url, directory)
        return here == there


@frozen
class Origin:
    """The same state, as it was found upstream."""

    upstream: Remote
    tree: str


def _spelled(url: str, directory: str) -> tuple[str, str]:
    path = url.removeprefix("file://") if url.startswith("file:///") else url
    return path.rstrip("/").removesuffix(".git"), directory.strip("/")


def read_lock(kptfile: bytes | None, file: str) -> Lock:
    """The `upstreamLock` of a Kptfile; None is one that is not there.

    Raises InvalidInput, with the file, when there is none or its commit is no commit.
    """
    if kptfile is None:
        raise _baseless("the package has no Kptfile", file)
    value = kptfile_of(Manifest.parse(kptfile, file)).value
    found = [get(value, (*_LOCK, name)) for name in ("repo", "directory", "commit")]
    if get(value, _LOCK) is MISSING:
        raise _baseless("the Kptfile has no upstreamLock", file)
    if not all(isinstance(text, str) for text in found) or not _COMMIT.fullmatch(found[2]):
        raise _baseless("the Kptfile's upstreamLock names no repo, directory and commit", file)
    ref = get(value, (*_LOCK, "ref"))
    repo, directory, commit = found
    return Lock(repo, directory, commit, ref if isinstance(ref, str) else "")


def _baseless(problem: str, file: str) -> InvalidInput:
    return InvalidInput(
        problem, reason=Reason.ADOPTION_BASE_MISSING, remedy=REMEDY, where=Where(file=file)
    )


def as_cloned(origin: Files, local: Files) -> Files:
    """The package as it was when it was cloned: upstream's files, and the clone's own Kptfile.

    Name and upstream in the Kptfile are those that the clone has, so that nobody is taken to have
    edited them. Raises InvalidInput, with the file, for a Kptfile that cannot be read.
    """
    mine = kptfile_of(Manifest.parse(local[NAME][1], NAME)).value
    mode, data = origin.get(NAME, ("100644", _EMPTY))
    manifest = Manifest.parse(data, NAME)
    index = kptfile_of(manifest).index
    known = [(path, get(mine, path)) for path in _OWN]
    edits = [Edit(index, path, value) for path, value in known if value is not MISSING]
    return {**origin, NAME: (mode, manifest.edited(edits))}

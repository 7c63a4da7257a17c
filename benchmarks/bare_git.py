"""Yardsticks of Git alone: the same draft commits as fanout writes, and listings of repositories.

One `git fast-import` stream per repository is built from the drafts of fanout before the clock
starts. One fast-import and one push per repository are measured, two at a time, without selection,
rendering, decisions and vendor branches. A listing is `git ls-remote`, also two at a time.
"""

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import pygit2

from benchmarks.inputs import copy_seed, package_path, repository_name
from benchmarks.processes import git

DRAFTS = "refs/heads/drafts/default/"
_WORKERS = 2  # repositories at the same time
_REPEAT = 5  # listings of all repositories


def draft_ref(target: int) -> str:
    """Return the branch to which fanout writes the draft of a target."""
    return f"{DRAFTS}{package_path(target)}/monitoring"


def write_streams(remotes: Path, streams: Path, targets: Mapping[int, Iterable[int]]) -> None:
    """Write one fast-import stream per repository with the drafts of its targets in `remotes`."""
    shutil.rmtree(streams, ignore_errors=True)
    streams.mkdir()
    for number, repository_targets in targets.items():
        repository = pygit2.Repository(str(remotes / repository_name(number)))
        with (streams / repository_name(number)).open("wb") as stream:
            stream.writelines(_build_stream(repository, repository_targets))


def measure_drafts(seed: Path, directory: Path, streams: Path, written: Path) -> float:
    """Import and push all streams. Return the seconds.

    Raises RuntimeError if a draft is not the same commit as the one that fanout wrote to `written`.
    """
    names = sorted(path.name for path in streams.iterdir())
    count = 1 + max(int(name[6:9]) for name in names)
    remotes, mirrors = directory / "remotes", directory / "mirrors"
    for parent in (remotes, mirrors):
        copy_seed(seed, parent, count)
    start = time.perf_counter()
    with ThreadPoolExecutor(_WORKERS) as pool:
        list(
            pool.map(
                lambda name: _import_and_push(mirrors / name, remotes / name, streams / name), names
            )
        )
    seconds = time.perf_counter() - start
    for name in names:
        if not _list_drafts(remotes / name) <= _list_drafts(written / name):
            raise RuntimeError(f"the yardstick's drafts in {name} are not those of fanout")
    shutil.rmtree(directory)
    return seconds


def measure_listings(repositories: Sequence[Path]) -> float:
    """Return the seconds to list all repositories, as the median of several runs."""
    seconds = []
    for _ in range(_REPEAT):
        start = time.perf_counter()
        with ThreadPoolExecutor(_WORKERS) as pool:
            list(pool.map(lambda path: git(path, "ls-remote", str(path)), repositories))
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def _list_drafts(repository: Path) -> set[bytes]:
    return set(git(repository, "for-each-ref", DRAFTS).splitlines())


def _import_and_push(mirror: Path, remote: Path, stream: Path) -> None:
    git(mirror, "fast-import", "--quiet", stdin=stream)
    git(mirror, "push", "--quiet", str(remote), f"{DRAFTS}*:{DRAFTS}*")


def _build_stream(repository: pygit2.Repository, targets: Iterable[int]) -> Iterator[bytes]:
    """Yield each blob once, then one commit per draft, which replaces the files of its package."""
    written_blobs: set[str] = set()
    commits: list[bytes] = []
    for target in targets:
        commit = repository.references[draft_ref(target)].peel(pygit2.Commit)
        path = package_path(target)
        changes = [b"D %s\n" % path.encode()]
        for entry in commit.tree[path]:
            if str(entry.id) not in written_blobs:
                written_blobs.add(str(entry.id))
                yield b"blob\n" + _data(entry.data)
            changes.append(f"M 100644 {entry.id} {path}/{entry.name}\n".encode())
        committer = commit.committer
        identity = f"{committer.name} <{committer.email}> {committer.time} +0000".encode()
        head = b"commit %s\nauthor %s\ncommitter %s\n" % (
            draft_ref(target).encode(),
            identity,
            identity,
        )
        base = b"from %s\n" % str(commit.parent_ids[0]).encode()
        commits.append(head + _data(commit.message.encode()) + base + b"".join(changes) + b"\n")
    yield from commits


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)

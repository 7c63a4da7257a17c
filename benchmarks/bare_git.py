"""Yardsticks (b) and (c): the same draft commits by git alone, and bare listings.

The bytes are ready before the clock starts: one `git fast-import` stream per repository, made from
the drafts that fanout wrote. Then one fast-import and one push per repository, two at a time: no
selection, no rendering, no decision, no vendor branch.

A listing is `git ls-remote` of a repository, two at a time.
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
AT_ONCE = 2
_LISTED = 5  # times


def draft_ref(target: int) -> str:
    """The branch on which fanout writes a target's draft."""
    return f"{DRAFTS}{package_path(target)}/monitoring"


def write_streams(remotes: Path, streams: Path, targets: Mapping[int, Iterable[int]]) -> None:
    """One stream for the drafts of each repository's targets, as they stand in `remotes`."""
    shutil.rmtree(streams, ignore_errors=True)
    streams.mkdir()
    for number, drafts in targets.items():
        repository = pygit2.Repository(str(remotes / repository_name(number)))
        with (streams / repository_name(number)).open("wb") as stream:
            stream.writelines(_stream(repository, drafts))


def run(seed: Path, place: Path, streams: Path, written: Path) -> float:
    """Write and push all streams; answers the seconds it took.

    Raises RuntimeError when a draft is not the very commit that fanout wrote to `written`.
    """
    names = sorted(path.name for path in streams.iterdir())
    count = 1 + max(int(name[6:9]) for name in names)
    remotes, mirrors = place / "remotes", place / "mirrors"
    for directory in (remotes, mirrors):
        copy_seed(seed, directory, count)
    begin = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda name: _write(mirrors / name, remotes / name, streams / name), names))
    seconds = time.perf_counter() - begin
    for name in names:
        if not _drafts(remotes / name) <= _drafts(written / name):
            raise RuntimeError(f"the yardstick's drafts in {name} are not those of fanout")
    shutil.rmtree(place)
    return seconds


def listings(repositories: Sequence[Path]) -> float:
    """Seconds to list all of them; the median of several times."""
    found = []
    for _ in range(_LISTED):
        begin = time.perf_counter()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda place: git(place, "ls-remote", str(place)), repositories))
        found.append(time.perf_counter() - begin)
    return median(found)


def _drafts(repository: Path) -> set[bytes]:
    return set(git(repository, "for-each-ref", DRAFTS).splitlines())


def _write(mirror: Path, remote: Path, stream: Path) -> None:
    git(mirror, "fast-import", "--quiet", stdin=stream)
    git(mirror, "push", "--quiet", str(remote), f"{DRAFTS}*:{DRAFTS}*")


def _stream(repository: pygit2.Repository, drafts: Iterable[int]) -> Iterator[bytes]:
    """Blobs once, then one commit per draft: its files, in place of whatever was at its path."""
    sent: set[str] = set()
    commits: list[bytes] = []
    for target in drafts:
        commit = repository.references[draft_ref(target)].peel(pygit2.Commit)
        path = package_path(target)
        rows = [b"D %s\n" % path.encode()]
        for entry in commit.tree[path]:
            if str(entry.id) not in sent:
                sent.add(str(entry.id))
                yield b"blob\n" + _data(entry.data)
            rows.append(f"M 100644 {entry.id} {path}/{entry.name}\n".encode())
        who = commit.committer
        line = f"{who.name} <{who.email}> {who.time} +0000".encode()
        head = b"commit %s\nauthor %s\ncommitter %s\n" % (draft_ref(target).encode(), line, line)
        base = b"from %s\n" % str(commit.parent_ids[0]).encode()
        commits.append(head + _data(commit.message.encode()) + base + b"".join(rows) + b"\n")
    yield from commits


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)

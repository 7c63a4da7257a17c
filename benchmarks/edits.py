"""Edits that people make in published packages between two revisions of upstream."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pygit2

from benchmarks.inputs import Size, package_path, repository_name
from benchmarks.processes import WHO, git

_MAIN = "refs/heads/main"
_WHEN = 1_770_000_000
# Upstream's next revision touches another field of the first file, and nothing in the second.
_TOUCHED, _UNTOUCHED = "app-0.yaml", "app-1.yaml"


def make(remotes: Path, size: Size) -> None:
    """A commit on the branch for each package that is edited: more replicas.

    One half of them in a file that upstream's next revision touches as well.
    """
    by_repository: dict[int, list[int]] = {}
    for target in size.edited():
        by_repository.setdefault(size.repository(target), []).append(target)
    for number, targets in by_repository.items():
        place = remotes / repository_name(number)
        stream = place / "edits.stream"
        stream.write_bytes(b"".join(_commits(pygit2.Repository(str(place)), targets)))
        git(place, "fast-import", "--quiet", stdin=stream)
        stream.unlink()


def _commits(repository: pygit2.Repository, targets: Iterable[int]) -> Iterator[bytes]:
    head = repository.references[_MAIN].peel(pygit2.Commit)
    start = b"from %s\n" % str(head.id).encode()
    for count, target in enumerate(targets):
        path = f"{package_path(target)}/{_UNTOUCHED if count % 2 else _TOUCHED}"
        content = repository[head.tree[path].id]
        assert isinstance(content, pygit2.Blob)
        edited = content.data.replace(b"replicas: 2\n", b"replicas: 5\n")
        message = f"More replicas of {path}".encode()
        yield b"commit %s\ncommitter %s %d +0000\n" % (_MAIN.encode(), WHO.encode(), _WHEN)
        yield b"data %d\n%s\n%s" % (len(message), message, start)
        yield b"M 644 inline %s\ndata %d\n%s\n" % (path.encode(), len(edited), edited)
        start = b""

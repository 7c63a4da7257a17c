"""Edits of published packages downstream, made between two upstream revisions."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pygit2

from benchmarks.inputs import Size, package_path, repository_name
from benchmarks.processes import IDENTITY, git

_MAIN = "refs/heads/main"
_COMMIT_TIME = 1_770_000_000
# The next upstream revision changes another field of the first file, and nothing in the second.
_CHANGED_UPSTREAM, _UNCHANGED_UPSTREAM = "app-0.yaml", "app-1.yaml"


def commit_edits(remotes: Path, size: Size) -> None:
    """Commit a changed number of replicas to the main branch for a tenth of the packages.

    Half of the edits are in a file that the next upstream revision changes, too.
    """
    for number, targets in size.by_repository(size.edited()).items():
        directory = remotes / repository_name(number)
        stream = directory / "edits.stream"
        stream.write_bytes(b"".join(_build_commits(pygit2.Repository(str(directory)), targets)))
        git(directory, "fast-import", "--quiet", stdin=stream)
        stream.unlink()


def _build_commits(repository: pygit2.Repository, targets: Iterable[int]) -> Iterator[bytes]:
    head = repository.references[_MAIN].peel(pygit2.Commit)
    parent = b"from %s\n" % str(head.id).encode()
    for count, target in enumerate(targets):
        path = f"{package_path(target)}/{_UNCHANGED_UPSTREAM if count % 2 else _CHANGED_UPSTREAM}"
        content = repository[head.tree[path].id]
        assert isinstance(content, pygit2.Blob)
        edited = content.data.replace(b"replicas: 2\n", b"replicas: 5\n")
        message = f"More replicas of {path}".encode()
        yield b"commit %s\ncommitter %s %d +0000\n" % (
            _MAIN.encode(),
            IDENTITY.encode(),
            _COMMIT_TIME,
        )
        yield b"data %d\n%s\n%s" % (len(message), message, parent)
        yield b"M 644 inline %s\ndata %d\n%s\n" % (path.encode(), len(edited), edited)
        parent = b""

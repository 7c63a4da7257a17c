"""Writes file content and the commits that bring it: one `git fast-import`, one stream."""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from fanout.errors import Bug, InvalidInput
from fanout.git.command import GitProgram
from fanout.git.commits import message_bytes, signature
from fanout.git.refs import SCRATCH
from fanout.package.tree import Entry
from fanout.plan.repository import (
    DraftCommit,
    FileCommit,
    Identity,
    RepositoryChange,
    StoredTree,
)
from fanout.values import frozen

_ZERO = b"0" * 40
_OPTIONS = ("--done", "--force", "--date-format=raw", "--stats")
_TOTAL = re.compile(r"Total objects:\s+(\d+)")
_FORBIDDEN = {"", ".", "..", ".git"}


@frozen
class Imported:
    """The commits that were written, by the ref that is to get them, and how many objects."""

    refs: dict[str, str]
    objects: int


def import_commits(git: GitProgram, mirror: Path, change: RepositoryChange) -> Imported:
    """Write blobs, drafts and file commits of a change; no ref of the mirror moves.

    Raises Bug when a draft came out as another tree than planned, InvalidInput for a path that git
    refuses, Unavailable when the disk is full.
    """
    with tempfile.TemporaryFile(prefix="import-", suffix=".stream", dir=mirror) as stream:
        for piece in _stream(change):
            stream.write(piece)
        stream.seek(0)
        output = _run(git, mirror, stream)
    lines = output[0].decode(errors="replace").splitlines()
    expected = len(change.trees) + 2 * len(change.drafts) + len(change.files)
    if len(lines) != expected:
        raise Bug(f"fast-import answered {len(lines)} lines, not {expected}", reason="ImportFailed")
    return Imported(_refs(change, lines), output[1])


def _run(git: GitProgram, mirror: Path, stream: BinaryIO) -> tuple[bytes, int]:
    output = git.run(mirror, ["fast-import", *_OPTIONS], stdin=stream)
    total = _TOTAL.search(output.stderr)
    return output.stdout, int(total[1]) if total else 0


def _refs(change: RepositoryChange, lines: Sequence[str]) -> dict[str, str]:
    """The answers in the order of the questions: trees, tree and commit of each draft, files."""
    refs: dict[str, str] = {}
    answers = iter(lines)
    for stored in change.trees:
        _check_tree("a directory", stored.tree, next(answers))
    for draft in change.drafts:
        _check_tree(draft.path, draft.tree, next(answers))
        refs[draft.ref] = next(answers)
    return refs | {commit.ref: oid for commit, oid in zip(change.files, answers, strict=True)}


def _check_tree(what: str, planned: str, line: str) -> None:
    answer = line.split()
    if len(answer) < 3 or answer[2] != planned:
        raise Bug(
            f"{what} was written as {answer[2:3] or 'nothing'}, planned was {planned}",
            reason="TreeMismatch",
        )


def _stream(change: RepositoryChange) -> Iterator[bytes]:
    for data in change.blobs.values():
        yield b"blob\ndata %d\n" % len(data)
        yield data
        yield b"\n"
    mark = 0
    for stored in change.trees:
        mark += 1
        yield from _tree(stored, change.identity, mark)
    for draft in change.drafts:
        mark += 1
        yield from _draft(draft, change.identity, mark)
    for commit in change.files:
        mark += 1
        yield from _files(commit, change.identity, mark)
    yield b"reset %s\nfrom %s\n\ndone\n" % (SCRATCH.encode(), _ZERO)


def _tree(stored: StoredTree, identity: Identity, mark: int) -> Iterator[bytes]:
    """A directory without a commit: fast-import stores it with one that nothing points to."""
    yield _head("", identity, 0, "a directory\n", mark)
    yield from _entries("tree/", stored.entries)
    yield b'ls "tree"\n\n'


def _entries(above: str, entries: Mapping[str, Entry]) -> Iterator[bytes]:
    for path, entry in entries.items():
        place = _quoted(above + path)
        yield b"M %s %s %s\n" % (entry.mode.encode(), entry.oid.encode(), place)


def _draft(draft: DraftCommit, identity: Identity, mark: int) -> Iterator[bytes]:
    yield _head(draft.base, identity, draft.when, draft.message, mark, draft.also)
    yield b"D %s\n" % _quoted(draft.path) if draft.path else b"deleteall\n"
    yield from _entries(f"{draft.path}/" if draft.path else "", draft.entries)
    yield b"ls %s\n\nget-mark :%d\n" % (_quoted(draft.path, empty=True), mark)


def _files(commit: FileCommit, identity: Identity, mark: int) -> Iterator[bytes]:
    yield _head(commit.parent, identity, commit.when, commit.message, mark)
    for path in commit.drop:
        yield b"D %s\n" % _quoted(path)
    for path, data in commit.put.items():
        yield b"M 100644 inline %s\ndata %d\n" % (_quoted(path), len(data))
        yield data
        yield b"\n"
    yield b"\nget-mark :%d\n" % mark


def _head(
    parent: str,
    identity: Identity,
    when: int,
    message: str,
    mark: int,
    also: Sequence[str] = (),
) -> bytes:
    who = signature(identity, when)
    text = message_bytes(message)
    scratch = SCRATCH.encode()
    first = b"" if parent else b"reset %s\n\n" % scratch
    lines = b"commit %s\nmark :%d\nauthor %s\ncommitter %s\n" % (scratch, mark, who, who)
    onto = b"from %s\n" % parent.encode() if parent else b""
    onto += b"".join(b"merge %s\n" % oid.encode() for oid in also)
    return b"%s%sdata %d\n%s\n%s" % (first, lines, len(text), text, onto)


def _quoted(path: str, *, empty: bool = False) -> bytes:
    """A path as fast-import reads it. Raises InvalidInput for one that no tree may have."""
    parts = path.split("/")
    forbidden = any(part.lower() in _FORBIDDEN for part in parts) or "\0" in path
    if forbidden and not (empty and not path):
        raise InvalidInput(
            f"{path!r} is no path that git stores",
            reason="InvalidPath",
            remedy="use a relative path without '..' and '.git'",
        )
    raw = path.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"%s"' % raw

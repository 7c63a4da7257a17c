"""Oracle of the pack writer: the objects of a change, written by `git fast-import`.

Git itself lays out what is stored. A file in the way of a package, which fast-import would replace
without an error, is looked for here.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fanout.errors import Bug
from fanout.git.mirror_reader import MirrorReader, open_mirror
from fanout.git.object_writer import (
    WrittenObjects,
    check_dependencies,
    check_tree,
    encode_message,
    encode_signature,
    memoize_layouts,
    tree_reader,
)
from fanout.git.tree_editor import TreeEditor, check_path
from fanout.package.tree_ids import TreeEntry, blob_id
from fanout.plan.observation.repository_state import (
    BranchUpdate,
    FileCommit,
    RepositoryChange,
    StoredTree,
    VendorCommit,
)

SCRATCH_REF = "refs/fanout/scratch"
_ZERO = b"0" * 40
_OPTIONS = ("--done", "--force", "--date-format=raw", "--stats")
_TOTAL = re.compile(r"Total objects:\s+(\d+)")


class FastImport:
    """Writer of objects by git, as the oracle of `fanout.git.object_writer.ObjectWriter`."""

    def write(self, mirror: Path, change: RepositoryChange) -> WrittenObjects:
        """Write the objects of the change, as `ObjectWriter.write` does."""
        with tempfile.TemporaryFile(prefix="import-", suffix=".stream", dir=mirror) as file:
            with open_mirror(mirror) as reader:
                check_dependencies(change, reader)
                stream = _Stream(change, reader)
                file.writelines(stream.all())
            file.seek(0)
            command = ["git", "--git-dir", str(mirror), "fast-import", *_OPTIONS]
            output = subprocess.run(command, check=True, capture_output=True, stdin=file)
        total = _TOTAL.search(output.stderr.decode(errors="replace"))
        answers = output.stdout.decode(errors="replace").splitlines()
        return WrittenObjects(stream.refs(answers), int(total[1]) if total else 0)


class _Stream:
    """Input of `git fast-import` for one repository change, and the expected answers."""

    def __init__(self, change: RepositoryChange, reader: MirrorReader) -> None:
        self._change = change
        self._reader = reader
        self._read = tree_reader(change, reader, memoize_layouts())
        self._marks = 0
        self._trees: dict[int, tuple[str, str]] = {}  # by line: what is asked, which id is planned
        self._commits: dict[int, tuple[str, ...]] = {}  # by line: the refs that get it
        self._lines = 0

    def all(self) -> Iterator[bytes]:
        change = self._change
        for oid, data in change.blobs.items():
            check_tree("a file", oid, blob_id(data))
            yield b"blob\ndata %d\n%s\n" % (len(data), data)
        for stored in change.trees:
            yield from self._tree(stored)
        for update in change.branches:
            yield from self._branch(update)
        for commit in change.files:
            yield from self._files(commit)
        # In the order of the writer: of two faults, the first is reported.
        if change.merges:
            yield from self._merges()
        if change.vendor is not None:
            yield from self._vendor(change.vendor)
        yield b"reset %s\nfrom %s\n\ndone\n" % (SCRATCH_REF.encode(), _ZERO)

    def refs(self, lines: Sequence[str]) -> dict[str, str]:
        """The id of each ref, from the answers. Raises Bug when one is not as it was planned."""
        if len(lines) != self._lines:
            raise Bug(
                f"fast-import answered {len(lines)} lines, not {self._lines}", reason="ImportFailed"
            )
        for line, (what, planned) in self._trees.items():
            check_tree(what, planned, "".join(lines[line].split()[2:3]))
        return {ref: lines[line] for line, refs in self._commits.items() for ref in refs}

    def _tree(self, stored: StoredTree) -> Iterator[bytes]:
        """A directory without a commit: fast-import stores it with one that nothing points to."""
        yield self._head((), 0, "a directory\n")
        yield from _entries("tree/", stored.entries)
        yield self._ask_tree("tree", "a directory", stored.tree) + b"\n"

    def _branch(self, update: BranchUpdate) -> Iterator[bytes]:
        head = update.parent
        editor = TreeEditor(self._reader.commit(head).tree, self._read)
        for number, commit in enumerate(update.commits, 1):
            yield self._head((head, *commit.more_parents), commit.timestamp, commit.message)
            yield from _edits(editor, commit.dropped_paths, commit.trees_by_path.items())
            if number == len(update.commits):
                yield self._ask_commit(update.ref)
            head = f":{self._marks}"

    def _files(self, commit: FileCommit) -> Iterator[bytes]:
        yield self._head((commit.parent,), commit.timestamp, commit.message)
        for path in commit.dropped_paths:
            yield b"D %s\n" % _quoted(path)
        for path, data in commit.content_by_path.items():
            yield b"M 100644 inline %s\ndata %d\n%s\n" % (_quoted(path), len(data), data)
        yield self._ask_commit(commit.ref)

    def _vendor(self, vendor: VendorCommit) -> Iterator[bytes]:
        root = self._reader.commit(vendor.parent).tree if vendor.parent else ""
        yield self._head((vendor.parent,), vendor.timestamp, vendor.message)
        yield from _edits(
            TreeEditor(root, self._read), vendor.dropped_paths, vendor.trees_by_path.items()
        )
        yield self._ask_commit(vendor.ref)

    def _merges(self) -> Iterator[bytes]:
        branch = self._change.branch
        head = self._change.expected[branch]
        editor = TreeEditor(self._reader.commit(head).tree, self._read)
        for merge in self._change.merges:
            commits = dict.fromkeys(draft.commit for draft in merge.drafts)
            yield self._head((head, *commits), merge.timestamp, merge.message)
            packages = ((draft.path, draft.tree) for draft in merge.drafts)
            yield from _edits(editor, merge.dropped_paths, packages)
            yield self._ask_commit(branch, *(draft.tag for draft in merge.drafts))
            head = f":{self._marks}"

    def _head(self, parents: Sequence[str], when: int, message: str) -> bytes:
        """The beginning of a commit; a parent is an id, a mark, or "" for none."""
        self._marks += 1
        who = encode_signature(self._change.identity, when)
        text = encode_message(message)
        scratch = SCRATCH_REF.encode()
        parent_ids = [parent.encode() for parent in parents if parent]
        onto = b"".join(
            b"%s %s\n" % (b"merge" if number else b"from", parent)
            for number, parent in enumerate(parent_ids)
        )
        begin = b"" if parent_ids else b"reset %s\n\n" % scratch
        lines = b"commit %s\nmark :%d\nauthor %s\ncommitter %s\n" % (scratch, self._marks, who, who)
        return b"%s%sdata %d\n%s\n%s" % (begin, lines, len(text), text, onto)

    def _ask_tree(self, path: str, what: str, planned: str) -> bytes:
        self._trees[self._lines] = (what, planned)
        self._lines += 1
        return b"ls %s\n" % (_quoted(path) if path else b'""')

    def _ask_commit(self, *refs: str) -> bytes:
        self._commits[self._lines] = refs
        self._lines += 1
        return b"\nget-mark :%d\n" % self._marks


def _edits(
    editor: TreeEditor, drop: Iterable[str], put: Iterable[tuple[str, str]]
) -> Iterator[bytes]:
    """Directories that go, then those that come; the editor sees what is in the way."""
    for path in drop:
        if editor.remove_directory(path):
            yield b"D %s\n" % _quoted(path) if path else b"deleteall\n"
    for path, tree in put:
        editor.put(path, tree)
        yield b"M 040000 %s %s\n" % (tree.encode(), _quoted(path) if path else b'""')


def _entries(above: str, entries: Mapping[str, TreeEntry]) -> Iterator[bytes]:
    for path, entry in entries.items():
        place = _quoted(above + path)
        yield b"M %s %s %s\n" % (entry.mode.encode(), entry.oid.encode(), place)


def _quoted(path: str) -> bytes:
    """A path as fast-import reads it. Raises InvalidInput for one that no tree may have."""
    raw = check_path(path).encode()
    return b'"%s"' % raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")

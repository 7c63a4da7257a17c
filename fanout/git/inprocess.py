"""The fast way of writing objects: all that a change brings, built here, as one pack.

No process is started. Each draft is written as what it differs in from the first draft of the
change, so that a push can send what is in the pack as it is.
"""

from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from fanout.git.alike import Alike
from fanout.git.commits import commit_bytes
from fanout.git.engine import Objects, check_grounds, check_tree, tree_reader
from fanout.git.ground import Ground
from fanout.git.layout import Layouts
from fanout.git.pack import BLOB, COMMIT, LARGEST, TREE, PackWriter
from fanout.git.publish import write_merges, write_vendor
from fanout.git.reader import MirrorReader, open_mirror
from fanout.git.trees import TreeEditor
from fanout.package.tree import Entry
from fanout.plan.repository import DraftCommit, FileCommit, RepositoryChange


class InProcess:
    """`fanout.git.engine.Engine` without git, for one change at a time.

    Python runs one thread at a time. Threads that build side by side take turns, all are done
    late, and the turns cost a fifth of the work; in a queue the first is pushed while the next one
    is built.
    """

    def __init__(self, largest: int = LARGEST) -> None:
        """`largest` is the size in bytes that no pack reaches."""
        self._largest = largest
        self._turn = Lock()

    def write(self, mirror: Path, change: RepositoryChange) -> Objects:
        """As the protocol says; PackTooLargeError when one pack cannot hold all of it."""
        with self._turn, open_mirror(mirror) as reader:
            check_grounds(change, reader)
            pack = PackWriter(mirror, self._largest)
            refs = _Writing(change, reader, pack).all()
        return Objects(refs, pack.finish())


class _Writing:
    """One change on its way into a pack."""

    def __init__(self, change: RepositoryChange, reader: MirrorReader, pack: PackWriter) -> None:
        self._change = change
        self._reader = reader
        self._pack = pack
        self._layouts = Layouts()
        self._read = tree_reader(change, reader, self._layouts)
        self._alike = Alike(pack, lambda oid: reader.has(oid.hex()))
        self._grounds: dict[str, Ground] = {}  # by commit
        self._blobs_done: set[str] = set()

    def all(self) -> dict[str, str]:
        change = self._change
        for stored in change.trees:
            check_tree("a directory", stored.tree, self._package(stored.entries).hex())
        refs = {draft.ref: self._draft(draft).hex() for draft in change.drafts}
        refs |= {commit.ref: self._files(commit).hex() for commit in change.files}
        if change.vendor is not None:
            refs[change.vendor.ref] = write_vendor(change, self._reader, self._read, self._pack)
        if change.merges:
            refs |= write_merges(change, self._reader, self._read, self._pack)
        return refs

    def _draft(self, draft: DraftCommit) -> bytes:
        tree = self._package(draft.entries)
        check_tree(draft.path, draft.tree, tree.hex())
        if draft.base not in self._grounds:
            self._grounds[draft.base] = Ground(self._reader.commit(draft.base).tree, self._read)
        root = self._grounds[draft.base].with_package(draft.path, tree, self._pack)
        parents, who = (draft.base, *draft.also), self._change.identity
        data = commit_bytes(root.hex(), parents, who, draft.when, draft.message)
        return self._alike.add(COMMIT, COMMIT, data)

    def _package(self, entries: Mapping[str, Entry]) -> bytes:
        layout = self._layouts.of(entries)
        blobs, done = self._change.blobs, self._blobs_done
        for path, (_, oid) in entries.items():
            if oid not in done and oid in blobs:
                written = self._alike.add((BLOB, path), BLOB, blobs[oid])
                check_tree(path, oid, written.hex())
                done.add(oid)

        def add(path: str, rows: list[bytes]) -> bytes:
            return self._alike.add((layout, path), TREE, b"".join(rows), rows)

        return layout.write(entries, add)

    def _files(self, commit: FileCommit) -> bytes:
        root = self._reader.commit(commit.parent).tree if commit.parent else ""
        editor = TreeEditor(root, self._read)
        for path in commit.drop:
            editor.drop_any(path)
        for path, data in commit.put.items():
            editor.put_file(path, self._alike.add((BLOB, path), BLOB, data))
        parents = (commit.parent,) if commit.parent else ()
        who = self._change.identity
        tree = editor.write(self._pack).hex()
        data = commit_bytes(tree, parents, who, commit.when, commit.message)
        return self._pack.add(COMMIT, data)

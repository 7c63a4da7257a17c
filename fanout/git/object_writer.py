"""Writer of the objects of one repository change: one pack, without a git process.

Each draft is written as deltas to the first draft of the change, so that a push can
send the content of the pack as it is. Objects depend on the change alone, not on clock
or environment: the same change yields the same ids on every machine.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock

from fanout.errors import Bug, ErrorLocation, InvalidInput
from fanout.git.git_errors import missing_object_error
from fanout.git.mirror_reader import MAX_TIMESTAMP, MirrorReader, describe_invalid_date, open_mirror
from fanout.git.pack import BLOB, COMMIT, TREE, DeltaWriter, PackWriter, compute_object_id
from fanout.git.tree_editor import BaseTree, ReadTree, TreeEditor, check_path
from fanout.package.tree_ids import TreeEntry
from fanout.plan.commit_statement import format_vendor_message, split_statements
from fanout.plan.observation.repository_state import (
    BranchUpdate,
    CommitIdentity,
    FileCommit,
    RepositoryChange,
    VendorCommit,
)
from fanout.values import Value, replace

BRANCH_REMEDY = "push a first commit to it, or correct spec.branch of the Repository"


class WrittenObjects(Value):
    """Commit ids by the ref that is to point to them, and the number of objects written."""

    refs: dict[str, str]
    count: int


def check_dependencies(change: RepositoryChange, reader: MirrorReader) -> None:
    """Check that the mirror has all objects the change depends on.

    Raises DamagedMirrorError, InvalidInput for a missing branch, Bug for a package without files.
    """
    if change.merges and not change.expected.get(change.branch):
        branch = change.branch.removeprefix("refs/heads/")
        raise InvalidInput(
            f"branch {branch} does not exist",
            reason="BranchMissing",
            remedy=BRANCH_REMEDY,
            where=ErrorLocation(object=change.remote.url),
        )
    packages = change.trees
    if not all(item.entries for item in packages):
        raise Bug("a package without a file is no directory", reason="TreeMismatch")
    files = {entry.oid for item in packages for entry in item.entries.values()}
    trees = {draft.tree for merge in change.merges for draft in merge.drafts}
    trees |= set(change.vendor.trees_by_path.values()) if change.vendor else set()
    commits = [commit for update in change.branches for commit in update.commits]
    for commit in commits:
        trees |= set(commit.trees_by_path.values())
    parents = {update.parent for update in change.branches}
    parents |= {oid for commit in commits for oid in commit.more_parents}
    parents |= {draft.commit for merge in change.merges for draft in merge.drafts}
    parents |= {oid for merge in change.merges for oid in merge.more_parents}
    parents |= {commit.parent for commit in change.files}
    parents |= {oid for commit in change.files for oid in commit.more_parents}
    parents |= {change.vendor.parent} if change.vendor else set()
    parents |= {change.expected[change.branch]} if change.merges else set()
    trees -= {item.tree for item in packages}
    # Checked before anything is written: a missing object would otherwise surface only in the
    # push, after the work is done.
    for needed in (files - change.blobs.keys(), trees, parents - {""}):
        if missing := sorted(oid for oid in needed if not reader.has(oid)):
            raise missing_object_error(missing[0])


def check_tree(path: str, planned: str, written: str) -> None:
    """Raise Bug if a directory or file was written with another id than planned."""
    # The plan computed the id from the same content; a difference would publish something
    # that nobody rendered or reviewed.
    if written != planned:
        raise Bug(
            f"{path or 'the root'} was written as {written or 'nothing'}, planned: {planned}",
            reason="TreeMismatch",
        )


class PackageLayout:
    """The directories of all packages that have the same paths with the same modes.

    The variants of a package differ in their contents alone, so sorting and encoding of the
    directory rows need not be repeated per variant.
    """

    def __init__(self, paths: Sequence[str], modes: Sequence[str]) -> None:
        """Compute the layout of files. Raises InvalidInput, and Bug for a file and directory."""
        # key to sort by, row, id
        rows_by_directory: dict[str, list[tuple[bytes, bytes, int]]] = {"": []}
        for number, (path, mode) in enumerate(zip(paths, modes, strict=True)):
            parent, _, name = check_path(path).rpartition("/")
            directory_path = parent
            while directory_path not in rows_by_directory:
                rows_by_directory[directory_path] = []
                directory_path = directory_path.rpartition("/")[0]
            rows_by_directory[parent].append(
                (name.encode(), b"%s %s\0" % (mode.encode(), name.encode()), number)
            )
        # Deepest first, so that each directory has its id before its parent needs it.
        # Of each row all but the id, and the index of that id.
        self._directories: list[tuple[str, tuple[tuple[bytes, int], ...]]] = []
        # Depth alone does not put the root last: its direct children have no slash either.
        for path in sorted(
            rows_by_directory, key=lambda it: (bool(it), it.count("/")), reverse=True
        ):
            rows = sorted(rows_by_directory[path])
            names = [key.rstrip(b"/") for key, _, _ in rows]
            if len(set(names)) < len(names):
                raise Bug(f"a path in {path!r} is a file and a directory", reason="TreeMismatch")
            if path:
                parent, _, directory_name = path.rpartition("/")
                raw, number = directory_name.encode(), len(paths) + len(self._directories)
                rows_by_directory[parent].append((raw + b"/", b"40000 %s\0" % raw, number))
            self._directories.append((path, tuple((row, number) for _, row, number in rows)))

    def write(
        self, entries: Mapping[str, TreeEntry], add: Callable[[str, list[bytes]], bytes]
    ) -> bytes:
        """Pass each directory of a package to `add`, deepest first; return the id of the root.

        `entries` are the files of the package in the order of the layout's paths. `add` writes a
        directory, given its path and rows, and returns its id.
        """
        ids = [bytes.fromhex(oid) for _, oid in entries.values()]
        for path, row_prefixes in self._directories:
            ids.append(add(path, [row + ids[number] for row, number in row_prefixes]))
        return ids[-1]


FindLayout = Callable[[Mapping[str, TreeEntry]], PackageLayout]
"""Function that returns the layout of a package; raises what `PackageLayout` raises."""


def memoize_layouts() -> FindLayout:
    """Return a function that has a memo of the layouts of one change, by paths and modes."""
    build = cache(PackageLayout)
    return lambda entries: build(tuple(entries), tuple([mode for mode, _ in entries.values()]))


def tree_reader(
    change: RepositoryChange, reader: MirrorReader, find_layout: FindLayout
) -> ReadTree:
    """Return a reader of directories of the mirror and of those the change will write."""
    new_trees: dict[str, bytes] = {}

    def add(_: str, rows: list[bytes]) -> bytes:
        data = b"".join(rows)
        oid = compute_object_id(TREE, data)
        new_trees[oid.hex()] = data
        return oid

    def read(oid: str) -> bytes:
        # Computed only on the first miss: only a package inside another new package needs it.
        if not reader.has(oid) and not new_trees:
            for item in change.trees:
                find_layout(item.entries).write(item.entries, add)
        return new_trees[oid] if oid in new_trees else reader.raw_tree(oid)

    return read


_FORBIDDEN_CHARACTERS = re.compile(r"[\x00-\x1f\x7f<>]")


def encode_signature(identity: CommitIdentity, when: int) -> bytes:
    """Encode `name <email> seconds +0000`. Raises InvalidInput for what git does not store."""
    name, email = identity.name.strip(), identity.email.strip()
    if not name or not email or _FORBIDDEN_CHARACTERS.search(name + email):
        raise InvalidInput(
            f"{identity.name!r} <{identity.email}> cannot be the author of a commit",
            reason="InvalidAuthor",
            remedy="use a name and an address without < > and control characters",
        )
    if not 0 <= when < MAX_TIMESTAMP:
        raise InvalidInput(describe_invalid_date(when), reason="InvalidTime")
    return f"{name} <{email}> {when} +0000".encode()


def encode_message(message: str) -> bytes:
    """Encode a commit message. Raises InvalidInput for a NUL, which git refuses."""
    if "\0" in message:
        raise InvalidInput("the commit message has a NUL character", reason="InvalidMessage")
    return message.encode()


def encode_commit(
    tree: str, parents: tuple[str, ...], identity: CommitIdentity, when: int, message: str
) -> bytes:
    """Encode a commit object with one identity as author and committer. Raises InvalidInput.

    `tree` and `parents` are hex ids, `when` is in seconds since the epoch.
    """
    # Author and committer are equal and the zone is fixed: ids must not depend on the machine.
    author = encode_signature(identity, when)
    head = [f"tree {tree}\n", *(f"parent {parent}\n" for parent in parents)]
    return b"%sauthor %s\ncommitter %s\n\n%s" % (
        "".join(head).encode(),
        author,
        author,
        encode_message(message),
    )


class ObjectWriter:
    """Writer of changes into packs, one change at a time.

    Python runs one thread at a time: threads that build packs concurrently all finish late,
    and switching costs a fifth of the work. In a queue the first change is pushed while the
    next one is built.
    """

    def __init__(self) -> None:
        self._lock = Lock()

    def write(self, mirror: Path, change: RepositoryChange) -> WrittenObjects:
        """Write all objects of the change as one pack, under the mirror's lock; no ref moves.

        Raises InvalidInput for a path that git does not store or a file in the way of a package,
        Bug for another tree than planned, OSError for a full disk, and what `check_dependencies`
        raises.
        """
        with self._lock, open_mirror(mirror) as reader:
            check_dependencies(change, reader)
            pack = PackWriter(mirror)
            refs = _ChangeWriter(change, reader, pack).write_all()
        return WrittenObjects(refs, pack.finish())


class _ChangeWriter:
    """State of one change while its objects are added to a pack."""

    def __init__(self, change: RepositoryChange, reader: MirrorReader, pack: PackWriter) -> None:
        self._change = change
        self._reader = reader
        self._pack = pack
        self._find_layout = memoize_layouts()
        self._read = tree_reader(change, reader, self._find_layout)
        self._delta_writer = DeltaWriter(pack, lambda oid: reader.has(oid.hex()))
        self._base_trees: dict[str, BaseTree] = {}  # by commit
        self._written_blobs: set[str] = set()

    def write_all(self) -> dict[str, str]:
        change = self._change
        for stored in change.trees:
            check_tree("a directory", stored.tree, self._write_package(stored.entries).hex())
        refs = {update.ref: self._write_branch(update) for update in change.branches}
        refs |= self._write_file_commits(change.files)
        if change.merges:
            refs |= self._write_merges(change.expected[change.branch])
        if change.vendor is not None:
            refs[change.vendor.ref] = self._write_vendor(change.vendor, refs)
        return refs

    def _write_branch(self, update: BranchUpdate) -> str:
        """Write the chain of commits; return the id of the last one."""
        head, first = update.parent, update.commits[0]
        if len(update.commits) == len(first.trees_by_path) == 1 and not first.dropped_paths:
            # Thousands of drafts are on one base, whose trees are read once.
            if head not in self._base_trees:
                self._base_trees[head] = BaseTree(self._reader.commit(head).tree, self._read)
            [(path, tree)] = first.trees_by_path.items()
            root = self._base_trees[head].with_package(path, bytes.fromhex(tree), self._pack)
            parents, author = (head, *first.more_parents), self._change.identity
            data = encode_commit(root.hex(), parents, author, first.timestamp, first.message)
            return self._delta_writer.add(COMMIT, COMMIT, data).hex()
        editor = self._edit_tree(head)
        for commit in update.commits:
            for path in commit.dropped_paths:
                editor.remove_directory(path)
            for path, tree in commit.trees_by_path.items():
                editor.put(path, tree)
            parents = (head, *commit.more_parents)
            head = self._write_commit(editor, parents, commit.timestamp, commit.message).hex()
        return head

    def _write_package(self, entries: Mapping[str, TreeEntry]) -> bytes:
        layout = self._find_layout(entries)
        blobs, written_blobs = self._change.blobs, self._written_blobs
        for path, (_, oid) in entries.items():
            if oid not in written_blobs and oid in blobs:
                # Files at the same path of different variants are similar: the path is the key of
                # the delta base.
                check_tree(path, oid, self._delta_writer.add((BLOB, path), BLOB, blobs[oid]).hex())
                written_blobs.add(oid)

        def add(path: str, rows: list[bytes]) -> bytes:
            return self._delta_writer.add((layout, path), TREE, b"".join(rows), rows)

        return layout.write(entries, add)

    def _write_file_commits(self, commits: Sequence[FileCommit]) -> dict[str, str]:
        """Write the commits, a chain for each branch; return the last one by branch."""
        heads: dict[str, str] = {}
        editors: dict[str, TreeEditor] = {}
        for commit in commits:
            ref = commit.ref
            editor = editors.get(ref) or editors.setdefault(ref, self._edit_tree(commit.parent))
            for path in commit.dropped_paths:
                editor.remove(path)
            for path, tree in commit.trees_by_path.items():
                editor.put(path, tree)
            for path, data in commit.content_by_path.items():
                editor.put_file(path, self._delta_writer.add((BLOB, path), BLOB, data))
            parent = heads.get(ref, commit.parent)
            parents = (*((parent,) if parent else ()), *commit.more_parents)
            heads[ref] = self._write_commit(
                editor, parents, commit.timestamp, commit.message, commit.identity
            ).hex()
        return heads

    def _write_vendor(self, vendor: VendorCommit, refs: Mapping[str, str]) -> str:
        """Write the commit; return its id, or that of the last one if its statements need several.

        `refs` has the commit of each publication of the change by its tag.
        """
        editor = self._edit_tree(vendor.parent)
        for path in vendor.dropped_paths:
            editor.remove_directory(path)
        for path, tree in vendor.trees_by_path.items():
            editor.put(path, tree)
        drafts = {draft.tag: draft for merge in self._change.merges for draft in merge.drafts}
        statements = list(vendor.statements)
        for number, statement in enumerate(statements):
            if statement.tag in drafts:
                merge = refs[statement.tag]
                # A push that was left half done may have stated the same merge already.
                is_repeated = merge == drafts[statement.tag].last_commit
                last = statement.number - 1 if is_repeated else statement.number
                statements[number] = replace(statement, merge=merge, number=last)
        head, previous = vendor.parent, vendor.last_statements
        for part in split_statements(statements, vendor.used_numbers):
            message = format_vendor_message(vendor.message, replace(part, previous=previous))
            parents = (head,) if head else ()
            head = self._write_commit(editor, parents, vendor.timestamp, message).hex()
            previous = head
        return head

    def _write_merges(self, head: str) -> dict[str, str]:
        """Write the chain of merge commits; return the ids of the branch and of all tags."""
        refs: dict[str, str] = {}
        editor = self._edit_tree(head)
        for merge in self._change.merges:
            for path in merge.dropped_paths:
                editor.remove_directory(path)
            for draft in merge.drafts:
                editor.put(draft.path, draft.tree)
            merged = dict.fromkeys(draft.commit for draft in merge.drafts)
            parents = (head, *merged, *merge.more_parents)
            head = self._write_commit(editor, parents, merge.timestamp, merge.message).hex()
            # Each tag points to the merge commit that published its draft, not to the final head:
            # a tag's tree must not contain packages that were published after it.
            refs.update((draft.tag, head) for draft in merge.drafts)
        return {**refs, self._change.branch: head}

    def _edit_tree(self, commit: str) -> TreeEditor:
        return TreeEditor(self._reader.commit(commit).tree if commit else "", self._read)

    def _write_commit(
        self,
        editor: TreeEditor,
        parents: tuple[str, ...],
        when: int,
        message: str,
        identity: CommitIdentity | None = None,
    ) -> bytes:
        tree = editor.write(self._pack).hex()
        data = encode_commit(tree, parents, identity or self._change.identity, when, message)
        return self._pack.add(COMMIT, data)

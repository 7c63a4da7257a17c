"""Reading of all revisions of a policy's status from the commits of its records branch."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from fanout.cluster.policy_state_files import (
    STATE_LIMITS,
    STATUS_DIRECTORY,
    UnreadableStateError,
    list_tree,
    parse_status_lines,
)
from fanout.errors import InvalidInput
from fanout.package.tree_ids import TreeEntry
from fanout.plan.history.recorded_publications import StatusRevision
from fanout.plan.observation.repository_state import Commit
from fanout.ports import ObjectReader


def read_status_revisions(reader: ObjectReader, head: str) -> Iterator[StatusRevision]:
    """Yield the changes of the status up to a commit of the records branch, oldest first.

    Only files that differ between two commits are read, and of those only the lines that differ.
    Files and lines that cannot be read are left out.
    """
    previous_tree: str | None = None
    files: Mapping[str, TreeEntry] = {}
    lines_by_file: dict[str, frozenset[bytes]] = {}
    key_by_line: dict[bytes, str] = {}
    for commit in reversed(list(_list_commits(reader, head))):
        tree = reader.paths(commit.oid, [STATUS_DIRECTORY])[STATUS_DIRECTORY].tree
        if tree == previous_tree:
            continue
        previous_tree, previous_files, files = tree, files, list_tree(reader, tree)
        removed: set[bytes] = set()
        added: set[bytes] = set()
        for name in sorted(previous_files.keys() | files.keys()):
            if previous_files.get(name) != files.get(name):
                old_lines = lines_by_file.pop(name, frozenset())
                new_lines = lines_by_file[name] = _read_lines(reader, files.get(name))
                removed |= old_lines - new_lines
                added |= new_lines - old_lines
        # A removed line was parsed when it was added.
        keys = {key_by_line.pop(line, "") for line in removed} - {""}
        changed: dict[str, Mapping[str, Any] | None] = dict.fromkeys(sorted(keys))
        for line, (key, value) in parse_status_lines(added).items():
            changed[key], key_by_line[line] = value, key
        if changed:
            yield StatusRevision(datetime.fromtimestamp(commit.timestamp, UTC), changed)


def _list_commits(reader: ObjectReader, head: str) -> Iterator[Commit]:
    """Yield the commits of the branch along first parents, newest first."""
    oid = head
    while oid and reader.has(oid):
        commit = reader.commit(oid)
        yield commit
        oid = next(iter(commit.parents), "")


def _read_lines(reader: ObjectReader, entry: TreeEntry | None) -> frozenset[bytes]:
    if entry is None:
        return frozenset()
    try:
        return frozenset(reader.blob(entry.oid, STATE_LIMITS.file_size).splitlines())
    except (InvalidInput, UnreadableStateError):
        return frozenset()

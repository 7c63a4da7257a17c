"""Reading of all revisions of a policy's status from the commits of its records branch."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from fanout.cluster.record_files import (
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

    Only files and lines that differ between two commits are read. Unreadable ones are left out.
    """
    previous_tree: str | None = None
    files: Mapping[str, TreeEntry] = {}
    lines_by_file: dict[str, frozenset[bytes]] = {}
    key_by_line: dict[bytes, str] = {}
    commits: list[Commit] = []  # along first parents, newest first
    oid = head
    while oid and reader.has(oid):
        commits.append(reader.commit(oid))
        oid = next(iter(commits[-1].parents), "")
    for commit in reversed(commits):
        tree = reader.paths(commit.oid, [STATUS_DIRECTORY])[STATUS_DIRECTORY].tree
        if tree == previous_tree:
            continue
        previous_tree, previous_files, files = tree, files, list_tree(reader, tree)
        removed: set[bytes] = set()
        added: set[bytes] = set()
        for name in sorted(previous_files.keys() | files.keys()):
            if previous_files.get(name) != files.get(name):
                old_lines = lines_by_file.pop(name, frozenset())
                new_lines: frozenset[bytes] = frozenset()
                if (entry := files.get(name)) is not None:
                    with suppress(InvalidInput, UnreadableStateError):
                        data = reader.blob(entry.oid, STATE_LIMITS.file_size)
                        new_lines = frozenset(data.splitlines())
                lines_by_file[name] = new_lines
                removed |= old_lines - new_lines
                added |= new_lines - old_lines
        # A removed line was parsed when it was added.
        keys = {key_by_line.pop(line, "") for line in removed} - {""}
        changed: dict[str, Mapping[str, Any] | None] = dict.fromkeys(sorted(keys))
        for line, (key, value) in parse_status_lines(added).items():
            changed[key], key_by_line[line] = value, key
        if changed:
            yield StatusRevision(datetime.fromtimestamp(commit.timestamp, UTC), changed)

"""Reader of policy state branches: records with author and instant, and the status.

Author and instant of a record come from the commit that first added its file, never
from its content, so a record cannot be back-dated by what it claims. Instants are those
of the committers' clocks; which of them count is decided on use
(`fanout.plan.evidence.record_times`). Whatever was read before is not read again.
(Design §2 "Who `by` is", §6 "Checks".)
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from fanout.api.reasons import Reason
from fanout.cluster.policy_state_files import (
    RECORDS_DIRECTORY,
    STATE_LIMITS,
    STATUS_DIRECTORY,
    UnreadableStateError,
    is_record_name_of,
    parse_record,
    parse_shard,
)
from fanout.errors import InvalidInput
from fanout.package.tree_ids import TreeEntry
from fanout.plan.observation.repository_state import Commit
from fanout.plan.records.policy_records import PolicyRecords, RecordEntry, RecordsKey
from fanout.ports import ObjectReader
from fanout.values import frozen, replace

_TRAILER = "Fanout-Record"
_TRAILER_PATTERN = re.compile(rf"^{_TRAILER}: (\S+)$", re.MULTILINE)


@frozen
class FirstCommit:
    """First commit of a file: committer, instant, and the blob id it added.

    Without the blob id only a commit message claims that the file was added there.
    """

    at: datetime
    by: str
    oid: str = ""


@frozen
class FirstCommitHistory:
    """First commits of all files ever added to `records`, in the order of addition."""

    head: str = ""
    tree: str | None = None  # of `records` at the head
    first_commits: Mapping[str, FirstCommit] = field(default_factory=dict)  # by file name


def build_message(subject: str, names: Iterable[str]) -> str:
    """Build the message of a commit that adds these records, named in trailers."""
    lines = "".join(f"{_TRAILER}: {name}\n" for name in dict.fromkeys(names))
    return f"{subject}\n\n{lines}"


def read_first_commits(
    reader: ObjectReader, head: str, previous: FirstCommitHistory, *, trust_messages: bool = True
) -> FirstCommitHistory:
    """Extend the history `previous` to `head`; commits it covers are not read again.

    Follows first parents: files that a person merges are added by the merge. Listing the
    directory at each commit would take quadratic time, so a commit that names its records
    is trusted, and the caller must verify each record by its hash. If that fails, or if a
    file has no first commit, call again without `previous` and with `trust_messages=False`.
    """
    commits, previous = _new_commits(reader, head, previous)
    tree = previous.tree
    first_commits = dict(previous.first_commits)
    files: Mapping[str, TreeEntry] | None = None  # of `tree`, if listed
    for commit in reversed(commits):
        parent_tree, tree = (
            tree,
            reader.paths(commit.oid, [RECORDS_DIRECTORY])[RECORDS_DIRECTORY].tree,
        )
        if tree == parent_tree:
            continue
        claimed_names = _TRAILER_PATTERN.findall(commit.message) if trust_messages else []
        added = {f"{name}.json": "" for name in claimed_names}
        if claimed_names:
            files = None
        else:
            parent_files = list_tree(reader, parent_tree) if files is None else files
            files = list_tree(reader, tree)
            added = {name: files[name].oid for name in files.keys() - parent_files.keys()}
        first_commit = FirstCommit(datetime.fromtimestamp(commit.timestamp, UTC), commit.committer)
        for name in sorted(added.keys() - first_commits.keys()):
            first_commits[name] = FirstCommit(first_commit.at, first_commit.by, added[name])
    return FirstCommitHistory(head, tree, first_commits)


def list_tree(reader: ObjectReader, tree: str | None) -> Mapping[str, TreeEntry]:
    """Return the files below a directory; none if the directory does not exist."""
    return reader.entries(tree, STATE_LIMITS) if tree else {}


def _new_commits(
    reader: ObjectReader, head: str, previous: FirstCommitHistory
) -> tuple[list[Commit], FirstCommitHistory]:
    commits: list[Commit] = []
    oid = head
    while oid and oid != previous.head:
        commits.append(reader.commit(oid))
        oid = next(iter(commits[-1].parents), "")
    # If the known head is not on the branch, the branch was rewritten and is read anew.
    return commits, previous if oid else FirstCommitHistory()


_FILE_MODES = ("100644", "100755")


@frozen
class PolicyStateShard:
    """One status file: its blob id and its lines by key."""

    oid: str = ""
    lines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@frozen
class PolicyStateBranch:
    """State of one policy, and what the next reading of its branch can reuse."""

    state: PolicyRecords = field(default_factory=PolicyRecords)
    history: FirstCommitHistory = field(default_factory=FirstCommitHistory)
    parsed: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)  # by blob id
    shards: Mapping[str, PolicyStateShard] = field(default_factory=dict)  # by path


def read_branch(
    reader: ObjectReader, head: str, key: RecordsKey, previous: PolicyStateBranch
) -> PolicyStateBranch:
    """Read the branch at `head`, reusing what `previous` has.

    An unreadable file is a message in `unreadable` of the state.
    """
    unreadable: list[str] = []
    try:
        history, files = _read_history(reader, head, previous.history, unreadable)
        parsed, records = _read_records(reader, key, (history, files), previous.parsed, unreadable)
        shards = read_shards(reader, head, previous.shards, unreadable)
    except InvalidInput as error:  # a submodule, for instance; other branches stay readable
        limited = error.reason == Reason.LIMIT_EXCEEDED  # the limits of packages do not apply here
        return PolicyStateBranch(
            PolicyRecords(head=head, unreadable=(error.problem if limited else str(error),))
        )
    lines = {name: line for shard in shards.values() for name, line in shard.lines.items()}
    state = PolicyRecords(
        head=head, records=records, status=dict(sorted(lines.items())), unreadable=tuple(unreadable)
    )
    return PolicyStateBranch(state, history, parsed, shards)


def read_shards(
    reader: ObjectReader, head: str, previous: Mapping[str, PolicyStateShard], unreadable: list[str]
) -> dict[str, PolicyStateShard]:
    """Read all status files at the head, by path.

    Append messages about others to `unreadable`.
    """
    shards: dict[str, PolicyStateShard] = {}
    for name, entry in sorted(_list_files(reader, head, STATUS_DIRECTORY, unreadable).items()):
        path = f"{STATUS_DIRECTORY}/{name}"
        # Content is addressed by its blob id: an equal id needs no other invalidation.
        if path in previous and previous[path].oid == entry.oid:
            shards[path] = previous[path]
            continue
        try:
            _check_regular(entry)
            shards[path] = PolicyStateShard(
                entry.oid, parse_shard(_read_content(reader, entry), path)
            )
        except UnreadableStateError as error:
            unreadable.append(f"{path} {error}; restore it from the commit before")
    return shards


def _list_files(
    reader: ObjectReader, head: str, directory: str, unreadable: list[str]
) -> Mapping[str, TreeEntry]:
    state = reader.paths(head, [directory])[directory]
    if state.problem:
        unreadable.append(f"{directory}: {state.problem}; move it away")
    return list_tree(reader, state.tree)


def _read_history(
    reader: ObjectReader, head: str, previous: FirstCommitHistory, unreadable: list[str]
) -> tuple[FirstCommitHistory, Mapping[str, TreeEntry]]:
    """Return the first commit of each file now in `records`, with the content it added."""
    files = _list_files(reader, head, RECORDS_DIRECTORY, unreadable)
    history = read_first_commits(reader, head, previous)
    verified = {
        name: _verify_first_commit(reader, name, entry, history) for name, entry in files.items()
    }
    # The message of a commit may lie about the files it adds; then each commit's directory
    # is compared instead, which is slower and cannot be forged.
    if None in verified.values():
        return read_first_commits(reader, head, FirstCommitHistory(), trust_messages=False), files
    first_commits = {
        **history.first_commits,
        **{name: commit for name, commit in verified.items() if commit},
    }
    return replace(history, first_commits=first_commits), files


def _verify_first_commit(
    reader: ObjectReader, name: str, entry: TreeEntry, history: FirstCommitHistory
) -> FirstCommit | None:
    """Return the first commit of a file with the content verified; None if unverifiable."""
    first_commit = history.first_commits.get(name)
    if first_commit is None or first_commit.oid:
        return first_commit
    try:
        data = _read_content(reader, entry)
    except UnreadableStateError:
        return None
    if is_record_name_of(name.removesuffix(".json"), data, first_commit.by):
        return replace(first_commit, oid=entry.oid)
    return None


def _read_content(reader: ObjectReader, entry: TreeEntry) -> bytes:
    try:
        return reader.blob(entry.oid, STATE_LIMITS.file_size)
    except InvalidInput:
        raise UnreadableStateError(f"has more than {STATE_LIMITS.file_size:,} bytes") from None


def _read_records(
    reader: ObjectReader,
    key: RecordsKey,
    listed_history: tuple[FirstCommitHistory, Mapping[str, TreeEntry]],
    previous: Mapping[str, tuple[str, Mapping[str, Any]]],
    unreadable: list[str],
) -> tuple[dict[str, tuple[str, Mapping[str, Any]]], tuple[RecordEntry, ...]]:
    """Return all parsed records by blob id, and the records in the order they were added."""
    history, files = listed_history
    parsed: dict[str, tuple[str, Mapping[str, Any]]] = {}
    records: list[RecordEntry] = []
    for file, first_commit in history.first_commits.items():
        entry = files.get(file)
        if entry is None:  # removed by a person, so it does not count
            continue
        try:
            name = _record_name(file, entry)
            if entry.oid != first_commit.oid:
                raise UnreadableStateError("was changed after it had been recorded")
            parsed[entry.oid] = previous.get(entry.oid) or parse_record(
                _read_content(reader, entry), key
            )
            kind, spec = parsed[entry.oid]
            records.append(
                RecordEntry(name=name, at=first_commit.at, by=first_commit.by, kind=kind, spec=spec)
            )
        except UnreadableStateError as error:
            unreadable.append(
                f"{RECORDS_DIRECTORY}/{file} {error}; restore it, or remove it with git"
            )
    return parsed, tuple(records)


def _record_name(file: str, entry: TreeEntry) -> str:
    name = file.removesuffix(".json")
    if name in ("", file) or "/" in name:
        raise UnreadableStateError("is not a record's file (*.json)")
    _check_regular(entry)
    return name


def _check_regular(entry: TreeEntry) -> None:
    if entry.mode not in _FILE_MODES:
        raise UnreadableStateError("is a symlink")

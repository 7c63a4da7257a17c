"""Files of policy state: format of records and status, and reading of state branches.

One file per record, `records/<x>/<x>/<x>/<time>-<hash>.json`. A commit writes each directory above
its files anew, so all of them are small however many records there are. Branches that earlier
versions of fanout began have files directly in `records`; with the first new record that directory
becomes `records/flat`, whose files are never written again. The status is in 256 files of lines, so
that a pass which changes one variant of ten thousand writes forty lines (docs/concepts/records.md).

Author and instant of a record come from the commit that first added its file, never from its
content, so a record cannot be back-dated by what it claims. Instants are those of the committers'
clocks; which of them count is decided on use (`fanout.plan.evidence.record_times`). Whatever was
read before is not read again (docs/concepts/records.md).
"""

import hashlib
import json
import re
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, count
from sys import intern
from typing import Any

from fanout.api.object_meta import Label
from fanout.api.reasons import Reason
from fanout.api.record_objects import Approval, Decision, Evidence
from fanout.api.validators.object_validation import validate_stored_record
from fanout.control_characters import escape_unprintable
from fanout.errors import InvalidInput
from fanout.package.package_limits import SizeLimits
from fanout.package.tree_ids import DIRECTORY_MODE, TreeEntry
from fanout.plan.observation.repository_state import Commit
from fanout.plan.records.policy_records import (
    RECORD_KINDS,
    PolicyRecords,
    RecordEntry,
    RecordsKey,
    RecordSpec,
    SubmittedRecord,
)
from fanout.plan.records.policy_status import parse_status
from fanout.ports import ObjectReader
from fanout.values import Value, asdict, field, replace

RECORDS_DIRECTORY = "records"
FLAT_DIRECTORY = f"{RECORDS_DIRECTORY}/flat"  # files of the layout of earlier versions
STATUS_DIRECTORY = "status"
_LEVELS = 3  # directories of 16 entries; at the limit of files each of the last has about 120 files
# Not configurable: lower limits would make existing records unreadable.
STATE_LIMITS = SizeLimits(files=500_000, size=1 << 30, depth=_LEVELS, file_size=16 << 20)
NO_POLICY = "_"  # not a valid object name
_COUNT_SUFFIX = re.compile(r"(?<=-[0-9a-f]{12})-[0-9]+$")


class UnreadableStateError(Exception):
    """A file is unreadable; the text ends a message that begins with the file's path."""


def branch_ref(install: str, key: RecordsKey) -> str:
    """Return the full ref name of the branch of a policy's state."""
    return f"refs/heads/fanout/{install}/{key.namespace}/{key.policy or NO_POLICY}"


def branch_pattern(install: str) -> re.Pattern[str]:
    """Return the pattern of all state branches; neither sweep log nor renderings match."""
    return re.compile(f"{re.escape(branch_prefix(install))}([^_/][^/]*)/([^/]+)")


def branch_prefix(install: str) -> str:
    """Return the ref prefix of the state branches of an installation."""
    return f"refs/heads/fanout/{install}/"


def parse_branch_ref(install: str, ref: str) -> RecordsKey | None:
    """Return the policy whose state the branch has; None for any other branch."""
    match = branch_pattern(install).fullmatch(ref)
    return RecordsKey(match[1], "" if match[2] == NO_POLICY else match[2]) if match else None


def encode_canonical(value: Mapping[str, Any]) -> bytes:
    """Encode a value canonically: JSON, sorted, compact, UTF-8, terminated by a newline."""
    text = json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return text.encode() + b"\n"


# ---- records -----------------------------------------------------------------------------------


def build_record_name(
    data: bytes, by: str, at: datetime, existing: Container[str] = frozenset()
) -> str:
    """Build a name that sorts by time and is not in `existing`.

    It is a valid object name, so that an approval can be revoked by it. The author `by` is part of
    the hash: two people who approve the same in one second are two approvals. Repetitions by one
    person in one second are numbered: `-2`, `-3`.
    """
    name = f"{at.astimezone(UTC):%Y%m%dt%H%M%Sz}-{_compute_hash(data, by)}"
    numbered = (f"{name}-{number}" for number in count(2))
    return next(candidate for candidate in chain([name], numbered) if candidate not in existing)


def is_record_name_of(name: str, data: bytes, by: str) -> bool:
    """Return whether the name was built for this content and author, which are unchanged then."""
    return _COUNT_SUFFIX.sub("", name).endswith(f"-{_compute_hash(data, by)}")


def _compute_hash(data: bytes, by: str) -> str:
    return hashlib.sha256(f"{by}\n".encode() + data).hexdigest()[:12]


def record_path(name: str) -> str:
    """Return the path of the record's file in its branch."""
    return f"{RECORDS_DIRECTORY}/{_sharded_path(f'{name}.json')}"


def _sharded_path(file: str) -> str:
    # By its name and not by the hash in it, which equal records of one second share.
    return "/".join((*hashlib.sha256(file.encode()).hexdigest()[:_LEVELS], file))


class RecordContent(Value):
    """Content of the file of a record: fields of its `RecordEntry`."""

    spec: RecordSpec
    uid: str = ""
    groups: tuple[str, ...] = ()


def parse_record(data: bytes, key: RecordsKey) -> RecordContent:
    """Parse a record of this policy. Raises UnreadableStateError."""
    record = _parse_json(data)
    spec = check_record(record, key)
    metadata = record.get("metadata", {})
    return RecordContent(spec, metadata.get("uid") or "", parse_groups(metadata))


def parse_groups(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the groups of the API that the metadata of a record names, one on each line."""
    groups = metadata.get("annotations", {}).get(Label.GROUPS.value, "")
    return tuple(group for group in groups.split("\n") if group)


def add_origin(record: SubmittedRecord) -> dict[str, Any]:
    """Return the record as it is stored: with the uid of its object and its author's groups."""
    metadata = {**record.manifest["metadata"], "uid": record.uid}
    if record.groups:
        metadata["annotations"] = {Label.GROUPS.value: "\n".join(record.groups)}
    return {**record.manifest, "metadata": metadata}


def check_record(record: Any, key: RecordsKey) -> RecordSpec:
    """Return the spec of a record given as plain data. Raises UnreadableStateError."""
    if not isinstance(record, dict) or record.get("kind") not in RECORD_KINDS:
        raise UnreadableStateError(f"is none of {', '.join(RECORD_KINDS)}")
    parsed, all_errors = validate_stored_record(record)
    errors = [it for it in all_errors if it.severity == "error"]
    if errors or not isinstance(parsed, Evidence | Approval | Decision):
        problems = "; ".join(f"{it.field}: {it.problem}" for it in errors)
        raise UnreadableStateError(f"is not valid: {problems}")
    namespace, spec = parsed.metadata.namespace, parsed.spec
    if (namespace, spec.policy) != (key.namespace, key.policy):
        owner = f"{namespace}/{spec.policy or NO_POLICY}"
        raise UnreadableStateError(f"belongs to policy {owner}")
    return spec


# ---- status ------------------------------------------------------------------------------------


def shard_path(key: str) -> str:
    """Return the path of the status file with the key's line."""
    return f"{STATUS_DIRECTORY}/{hashlib.sha256(key.encode()).hexdigest()[:2]}.jsonl"


def parse_shard(data: bytes, path: str) -> Mapping[str, Mapping[str, Any]]:
    """Parse the lines of a status file by key. Raises UnreadableStateError."""
    lines: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        key, value = _parse_status_line(line, number)
        # A line in the wrong file would survive the removal of its key in the right one.
        if key in lines or shard_path(key) != path:
            raise UnreadableStateError(f"has {key!r} twice or in the wrong file (line {number})")
        lines[key] = value
    return lines


def parse_status_lines(lines: Iterable[bytes]) -> dict[bytes, tuple[str, Mapping[str, Any]]]:
    """Parse single lines of status files into key and value; unreadable ones are left out."""
    parsed: dict[bytes, tuple[str, Mapping[str, Any]]] = {}
    for line in sorted(lines):
        with suppress(UnreadableStateError):
            parsed[line] = _parse_status_line(line)
    return parsed


def _parse_status_line(line: bytes, number: int = 1) -> tuple[str, Mapping[str, Any]]:
    value = _parse_json(line, f"in line {number} ")
    key = value.pop("key", None) if isinstance(value, dict) else None
    if not isinstance(key, str):
        raise UnreadableStateError(f"has no key in line {number}")
    return key, value


def encode_shard(lines: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Encode the lines of a status file, sorted by key."""
    return b"".join(encode_canonical({**value, "key": key}) for key, value in sorted(lines.items()))


def _parse_json(data: bytes, prefix: str = "") -> Any:
    try:
        return _DECODER.decode(data.decode())
    except (ValueError, RecursionError) as error:
        raise UnreadableStateError(f"{prefix}is not JSON: {error}") from error


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # The decoder shares keys within one line; of a large fleet all lines have the same ones, which
    # would take a tenth of the memory of its status.
    value = {intern(key): item for key, item in pairs}
    if len(value) != len(pairs):
        raise ValueError("a key occurs twice")
    return value


# `json.loads` would build a decoder for each of ten thousand lines.
_DECODER = json.JSONDecoder(object_pairs_hook=_reject_duplicate_keys)


_TRAILER = "Fanout-Record"
_TRAILER_PATTERN = re.compile(rf"^{_TRAILER}: (\S+)$", re.MULTILINE)


class FirstCommit(Value):
    """First commit of a file: committer, instant, and the blob id it added.

    Without the blob id only a commit message claims that the file was added there.
    """

    at: datetime
    by: str
    oid: str = ""


class RecordFile(Value):
    """File of a record: its path, mode and blob id."""

    path: str
    entry: TreeEntry


class RecordFileListing(Value):
    """Files below `records` by file name, or by path where no record is expected.

    `directories` has the content of each directory by its id, for the next listing.
    """

    files: Mapping[str, RecordFile] = field(default_factory=dict)
    directories: Mapping[str, Mapping[str, TreeEntry]] = field(default_factory=dict)


def list_records(
    reader: ObjectReader, tree: str | None, previous: RecordFileListing
) -> RecordFileListing:
    """Return the files below the tree of `records`; raises InvalidInput beyond the limits.

    Directories of `previous` are not read again.
    """
    files: dict[str, RecordFile] = {}
    directories: dict[str, Mapping[str, TreeEntry]] = {}
    pending = [("", tree)] if tree else []
    number = 0  # of directories; equal ones have one id
    while pending:
        prefix, oid = pending.pop()
        directories[oid] = previous.directories.get(oid) or reader.directory(oid, STATE_LIMITS)
        for name, entry in directories[oid].items():
            path = f"{prefix}{name}"
            if entry.mode == DIRECTORY_MODE:
                number += 1
                STATE_LIMITS.check_path(path, path.count("/") + 1)
                pending.append((f"{path}/", entry.oid))
                continue
            is_placed = path in (name, f"flat/{name}") or path == _sharded_path(name)
            file = RecordFile(f"{RECORDS_DIRECTORY}/{path}", entry)
            # A second file of one name is an error: nobody could know which of them counts.
            files[name if is_placed and name not in files else path] = file
        if max(len(files), number) > STATE_LIMITS.files:
            raise STATE_LIMITS.too_many_error()
    return RecordFileListing(files, directories)


class FirstCommitHistory(Value):
    """First commits of all files ever added to `records`, in the order of addition."""

    head: str = ""
    tree: str | None = None  # of `records` at the head
    first_commits: Mapping[str, FirstCommit] = field(default_factory=dict)  # by file name
    listing: RecordFileListing = field(default_factory=RecordFileListing)  # of `tree`


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
    commits: list[Commit] = []
    oid = head
    while oid and oid != previous.head:
        commits.append(reader.commit(oid))
        oid = next(iter(commits[-1].parents), "")
    # If the known head is not on the branch, the branch was rewritten and is read anew.
    previous = previous if oid else FirstCommitHistory()
    tree, listing, listed_tree = previous.tree, previous.listing, previous.tree
    first_commits = dict(previous.first_commits)
    for commit in reversed(commits):
        parent_tree = tree
        tree = reader.paths(commit.oid, [RECORDS_DIRECTORY])[RECORDS_DIRECTORY].tree
        if tree == parent_tree:
            continue
        claimed_names = _TRAILER_PATTERN.findall(commit.message) if trust_messages else []
        added = {f"{name}.json": "" for name in claimed_names}
        if not claimed_names:
            if listed_tree != parent_tree:
                listing = list_records(reader, parent_tree, listing)
            parent_files, listed_tree = listing.files, tree
            listing = list_records(reader, tree, listing)
            added = {
                name: listing.files[name].entry.oid
                for name in listing.files.keys() - parent_files.keys()
            }
        at = datetime.fromtimestamp(commit.timestamp, UTC)
        for name in sorted(added.keys() - first_commits.keys()):
            first_commits[name] = FirstCommit(at, commit.committer, added[name])
    if listed_tree != tree:
        listing = list_records(reader, tree, listing)
    return FirstCommitHistory(head, tree, first_commits, listing)


def list_tree(reader: ObjectReader, tree: str | None) -> Mapping[str, TreeEntry]:
    """Return the files below a directory; none if the directory does not exist."""
    return reader.entries(tree, STATE_LIMITS) if tree else {}


_FILE_MODES = ("100644", "100755")


class PolicyStateShard(Value):
    """One status file: its blob id and its lines by key."""

    oid: str = ""
    lines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class PolicyStateBranch(Value):
    """State of one policy, and what the next reading of its branch can reuse."""

    state: PolicyRecords = field(default_factory=PolicyRecords)
    history: FirstCommitHistory = field(default_factory=FirstCommitHistory)
    parsed: Mapping[str, RecordContent] = field(default_factory=dict)  # by blob id
    shards: Mapping[str, PolicyStateShard] = field(default_factory=dict)  # by path


def read_branch(
    reader: ObjectReader, head: str, key: RecordsKey, previous: PolicyStateBranch
) -> PolicyStateBranch:
    """Read the branch at `head`, reusing what `previous` has; errors are in `unreadable`."""
    unreadable: list[str] = []
    try:
        history = _read_history(reader, head, previous.history, unreadable)
        parsed, records = _read_records(reader, key, history, previous.parsed, unreadable)
        shards = read_shards(reader, head, previous.shards, unreadable)
    except InvalidInput as error:  # a submodule, for instance; other branches stay readable
        limited = error.reason == Reason.LIMIT_EXCEEDED  # the limits of packages do not apply here
        return PolicyStateBranch(
            PolicyRecords(head=head, unreadable=(error.problem if limited else str(error),))
        )
    lines = {name: line for shard in shards.values() for name, line in shard.lines.items()}
    state = PolicyRecords(
        head=head,
        records=records,
        status=parse_status(dict(sorted(lines.items()))),
        unreadable=tuple(unreadable),
    )
    return PolicyStateBranch(state, history, parsed, shards)


def read_shards(
    reader: ObjectReader, head: str, previous: Mapping[str, PolicyStateShard], unreadable: list[str]
) -> dict[str, PolicyStateShard]:
    """Read all status files at the head, by path. Append messages about others to `unreadable`."""
    shards: dict[str, PolicyStateShard] = {}
    directory = _find_directory(reader, head, STATUS_DIRECTORY, unreadable)
    for name, entry in sorted(list_tree(reader, directory).items()):
        path = f"{STATUS_DIRECTORY}/{name}"
        # Content is addressed by its blob id: an equal id needs no other invalidation.
        if path in previous and previous[path].oid == entry.oid:
            shards[path] = previous[path]
            continue
        try:
            _check_regular(entry)
            lines = parse_shard(_read_content(reader, entry), path)
            shards[path] = PolicyStateShard(entry.oid, lines)
        except UnreadableStateError as error:
            unreadable.append(
                f"{escape_unprintable(path)} {error}; restore it from an earlier commit"
            )
    return shards


def _find_directory(
    reader: ObjectReader, head: str, directory: str, unreadable: list[str]
) -> str | None:
    state = reader.paths(head, [directory])[directory]
    if state.problem:
        unreadable.append(f"{directory}: {state.problem}; move it away")
    return state.tree


def _read_history(
    reader: ObjectReader, head: str, previous: FirstCommitHistory, unreadable: list[str]
) -> FirstCommitHistory:
    """Return the first commit of each file now in `records`, with the content it added."""
    _find_directory(reader, head, RECORDS_DIRECTORY, unreadable)
    history = read_first_commits(reader, head, previous)
    first_commits = dict(history.first_commits)
    for name, file in history.listing.files.items():
        if (first_commit := first_commits.get(name)) is not None and not first_commit.oid:
            try:
                data = _read_content(reader, file.entry)
                is_right = is_record_name_of(name.removesuffix(".json"), data, first_commit.by)
            except UnreadableStateError:
                is_right = False
            first_commit = replace(first_commit, oid=file.entry.oid) if is_right else None
        # The message of a commit may lie about the files it adds; then each commit's directory
        # is compared instead, which is slower and cannot be forged.
        if first_commit is None:
            return read_first_commits(reader, head, FirstCommitHistory(), trust_messages=False)
        first_commits[name] = first_commit
    return replace(history, first_commits=first_commits)


def _read_content(reader: ObjectReader, entry: TreeEntry) -> bytes:
    try:
        return reader.blob(entry.oid, STATE_LIMITS.file_size)
    except InvalidInput:
        raise UnreadableStateError(f"has more than {STATE_LIMITS.file_size:,} bytes") from None


def _read_records(
    reader: ObjectReader,
    key: RecordsKey,
    history: FirstCommitHistory,
    previous: Mapping[str, RecordContent],
    unreadable: list[str],
) -> tuple[dict[str, RecordContent], tuple[RecordEntry, ...]]:
    """Return all parsed records by blob id, and the records in the order they were added."""
    parsed: dict[str, RecordContent] = {}
    records: list[RecordEntry] = []
    for file_name, first_commit in history.first_commits.items():
        file = history.listing.files.get(file_name)
        if file is None:  # removed by a person, so it does not count
            continue
        entry, name = file.entry, file_name.removesuffix(".json")
        try:
            if name in ("", file_name) or "/" in name:
                raise UnreadableStateError("is not the file of a record (*.json)")
            _check_regular(entry)
            if entry.oid != first_commit.oid:
                raise UnreadableStateError("was changed after it was recorded")
            content = previous.get(entry.oid) or parse_record(_read_content(reader, entry), key)
            parsed[entry.oid], at, by = content, first_commit.at, first_commit.by
            records.append(RecordEntry(name=name, at=at, by=by, **asdict(content)))
        except UnreadableStateError as error:
            unreadable.append(
                f"{escape_unprintable(file.path)} {error}; restore it, or remove it with git"
            )
    return parsed, tuple(records)


def _check_regular(entry: TreeEntry) -> None:
    if entry.mode not in _FILE_MODES:
        raise UnreadableStateError("is a symlink")

"""Policy state (records and status) in Git, one branch per policy (docs/concepts/records.md).

Every write is a compare-and-swap of the branch, so processes on many machines may share one
repository. Records are only ever added. Nothing is written if nothing changed. A branch of records
only grows: one that does not descend from its last observed head was put back, by a restored backup
or by somebody who wants a suspension forgotten. The observed heads are a file of this machine;
without it, publications still name records (`fanout.reconcile.records.lost_records`).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from fanout.cluster.record_files import (
    FLAT_DIRECTORY,
    RECORDS_DIRECTORY,
    PolicyStateBranch,
    PolicyStateShard,
    UnreadableStateError,
    add_origin,
    branch_pattern,
    branch_prefix,
    branch_ref,
    build_message,
    build_record_name,
    check_record,
    encode_canonical,
    encode_shard,
    list_records,
    parse_branch_ref,
    read_branch,
    read_shards,
    record_path,
    shard_path,
)
from fanout.cluster.records_repository import RecordsRepository
from fanout.cluster.status_history import read_status_revisions
from fanout.disk_cache import read_cache_value, write_cache_file
from fanout.errors import Bug, Denied, ErrorLocation, FanoutError, InvalidInput, Unavailable
from fanout.package.tree_ids import blob_id
from fanout.plan.history.recorded_publications import StatusRevision
from fanout.plan.observation.repository_state import CommitIdentity, FileCommit
from fanout.plan.records.policy_records import (
    LostBranch,
    PolicyRecords,
    RecordEntry,
    RecordsKey,
    RewoundBranch,
    StatusChange,
    SubmittedRecord,
    last_acceptance,
)
from fanout.retries import retry_conflicts
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import Value, replace, write_json

_HEADS_FORMAT = "heads of records, 1"


class ObservedHead(Value, array_like=True):
    """Head of a branch, and the last Decision on it that accepted records put back."""

    head: str = ""
    accepted: str = ""


class ObservedHeads:
    """Last observed heads of one records repository by full ref name, stored in one file."""

    def __init__(self, directory: Path | None, url: str) -> None:
        """Load the heads of a directory that may be deleted; None keeps them in memory only."""
        name = f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.json"
        self._path = directory / name if directory is not None else None
        self._heads = self._read()

    def get(self, ref: str) -> ObservedHead:
        """Return the last observed head of the branch; empty if it was never observed."""
        return self._heads.get(ref, ObservedHead())

    def match(self, heads: Mapping[str, str], prefix: str) -> bool:
        """Return whether all observed branches below `prefix` still have their observed heads."""
        observed = {ref: it.head for ref, it in self._heads.items() if ref.startswith(prefix)}
        return all(heads.get(ref, "") == head for ref, head in observed.items())

    def store(self, observed: Mapping[str, ObservedHead]) -> None:
        """Store the heads of these branches; nothing is written if nothing changed."""
        previous = self._heads
        changed = {ref: head for ref, head in observed.items() if previous.get(ref) != head}
        if not changed:
            return
        self._heads = {**previous, **changed}
        if self._path is None:
            return
        stored = self._read()
        # An entry that another process changed meanwhile is newer and stays.
        own_changes = {
            ref: it for ref, it in changed.items() if stored.get(ref) in (None, previous.get(ref))
        }
        content = write_json({**stored, **own_changes}, order="deterministic")
        write_cache_file(self._path, content, _HEADS_FORMAT)

    def _read(self) -> dict[str, ObservedHead]:
        if self._path is None:
            return {}
        return read_cache_value(self._path, _HEADS_FORMAT, dict[str, ObservedHead]) or {}


class PolicyStateStore:
    """Implementation of `fanout.ports.RecordStore` on Git, for one pass at a time."""

    def __init__(
        self,
        repository: RecordsRepository,
        install: str,
        identity: CommitIdentity,
        observed_heads: ObservedHeads | None = None,
        *,
        ignore_observed_heads: bool = False,
        keeps_last_read: bool = False,
    ) -> None:
        """Use the repository for one installation; `identity` is the committer of the status.

        `ignore_observed_heads` accepts branches that were put back, for an explicit fresh start.
        `keeps_last_read`: a repository that cannot be read has the records that were read last.
        """
        self._keeps_last_read = keeps_last_read
        self._last_states: Mapping[RecordsKey, PolicyRecords] = {}
        self._repository = repository
        self._observed_heads = observed_heads or ObservedHeads(None, repository.remote.url)
        self._ignore_observed_heads = ignore_observed_heads
        self._install = install
        self._identity = identity
        self._branches: dict[RecordsKey, PolicyStateBranch] = {}
        self._held: Mapping[RecordsKey, str] = {}  # why their status must not change
        # Blob ids of the status files by path, as this process last read or wrote them.
        self._status_files: dict[RecordsKey, Mapping[str, str]] = {}
        self._unknown_branches = 0  # of the last listing: those that are no records of it
        self._changed_elsewhere: set[RecordsKey] = set()  # and not taken since

    # ---- reading -------------------------------------------------------------------------------

    def read(self, keys: Sequence[RecordsKey]) -> Mapping[RecordsKey, PolicyRecords]:
        """Return the state of these policies, by one listing; unchanged branches are not read.

        An unreadable file is a message in the state of its policy. Raises Unavailable, Denied.
        """
        return self._read_states(self._list_heads(keys))

    def read_all(self, keys: Sequence[RecordsKey]) -> Mapping[RecordsKey, PolicyRecords]:
        """Return the state of these policies and of all others that have records."""
        try:
            states = self._read_states(dict.fromkeys(keys, "") | self.heads())
        except (Unavailable, Denied) as error:
            if not self._keeps_last_read:
                raise
            states = {key: PolicyRecords(failure=error) for key in keys}
            # The same objects each time: memos compare by identity.
            self._last_states = states | {
                key: state if state.outdated else replace(state, outdated=str(error))
                for key, state in self._last_states.items()
                # Without records nothing tells a first draft from lost records.
                if state.head and state.failure is None
            }
            return self._last_states
        # One renamed below the same prefix has the records of another policy than its name says.
        misnamed = sum(bool(states[key].unreadable) for key in states.keys() - set(keys))
        others = self._unknown_branches + misnamed
        missing = [key for key in keys if not states[key].head] if others else []
        if missing:
            url = self._repository.remote.url
            names = {key: self._branch_ref(key).removeprefix("refs/heads/") for key in missing}
            lost = {
                key: replace(states[key], lost_branch=LostBranch(name, url, others))
                for key, name in names.items()
            }
            states = {**states, **lost}
        self._last_states = states
        return self._last_states

    def find_push_refusal(self) -> str:
        """Return the words of the last push if the repository refused it, else ""."""
        return self._repository.push_refusal.read()

    def read_status_revisions(self, key: RecordsKey) -> Sequence[StatusRevision]:
        """Return all changes of a policy's status, oldest first, up to the head read last."""
        if not (head := self._last_read(key).state.head):
            return ()
        with self._repository.reader() as reader:
            return tuple(read_status_revisions(reader, head))

    def heads(self) -> dict[RecordsKey, str]:
        """Return the heads of all policy state branches. Raises Unavailable, Denied."""
        prefix = branch_prefix(self._install)
        refs = self._repository.list_branches(prefix)
        self._unknown_branches = sum(not it.startswith(prefix) for it in refs)
        head_by_key = {
            parse_branch_ref(self._install, ref): head for ref, head in sorted(refs.items())
        }
        return {key: head for key, head in head_by_key.items() if key is not None}

    def heads_unchanged(self, heads: Mapping[RecordsKey, str]) -> bool:
        """Return whether these are the observed heads; else branches may have been put back."""
        refs = {self._branch_ref(key): head for key, head in heads.items()}
        return self._observed_heads.match(refs, branch_prefix(self._install))

    def take_changed_elsewhere(self, keys: Iterable[RecordsKey]) -> bool:
        """Return whether another process has written the status of one of these policies."""
        changed = self._changed_elsewhere.intersection(keys)
        self._changed_elsewhere -= changed
        return bool(changed)

    def _read_states(self, heads: Mapping[RecordsKey, str]) -> Mapping[RecordsKey, PolicyRecords]:
        def read(key: RecordsKey, head: str) -> PolicyStateBranch:
            # The error of a damaged mirror closes the reader, which marks it to be made again.
            with self._repository.reader() as reader:
                return read_branch(reader, head, key, self._last_read(key))

        failed: dict[RecordsKey, PolicyRecords] = {}
        moved = [key for key, head in heads.items() if head != self._last_read(key).state.head]
        for key in filter(heads.__getitem__, moved):
            refusal = self._repository.refused.get(heads[key])
            if refusal is not None:  # fails this policy alone
                failed[key] = PolicyRecords(head=heads[key], failure=refusal)
                continue
            branch = run_isolated(partial(read, key, heads[key]))
            if isinstance(branch, Bug):  # fails this policy alone; retried at the next read
                failed[key] = PolicyRecords(head=heads[key], failure=branch)
            elif isinstance(branch, FanoutError):
                raise branch
            else:
                self._branches[key] = branch
                files = {path: shard.oid for path, shard in branch.shards.items()}
                if self._status_files.get(key, {}) != files:
                    self._changed_elsewhere.add(key)
                    self._status_files[key] = files
        records_by_key: dict[RecordsKey, PolicyRecords] = {}
        for key, head in heads.items():
            policy_records = self._last_read(key).state if head else PolicyRecords()
            if policy_records.unreadable:
                name = self._branch_ref(key).removeprefix("refs/heads/")
                location = f"{self._repository.remote.url}, branch {name}"
                messages = tuple(f"{location}: {line}" for line in policy_records.unreadable)
                policy_records = replace(policy_records, unreadable=messages)
            records_by_key[key] = policy_records
        return self._check_descent(records_by_key | failed)

    def _check_descent(
        self, records_by_key: Mapping[RecordsKey, PolicyRecords]
    ) -> Mapping[RecordsKey, PolicyRecords]:
        """Compare the branches with their observed heads; store those that descend from them."""
        observed = {key: self._observed_heads.get(self._branch_ref(key)) for key in records_by_key}
        moved = [
            key
            for key, policy_records in records_by_key.items()
            if policy_records.head != observed[key].head and policy_records.failure is None
        ]
        checked, new_heads = dict(records_by_key), {}
        for key in moved:
            policy_records, previous = records_by_key[key], observed[key]
            decision = last_acceptance(policy_records.records)
            current = ObservedHead(policy_records.head, decision.name if decision else "")
            # A new accepting Decision on the branch itself ends the alarm: it was recorded after
            # the branch was put back.
            is_expected = (
                self._ignore_observed_heads
                or not previous.head
                or current.accepted != previous.accepted
                or self._is_descendant(policy_records.head, previous.head)
            )
            if not is_expected:
                rewound = self._describe_rewound(key, policy_records, previous.head)
                checked[key] = replace(policy_records, rewound=rewound)
            # A person may restore an unreadable branch to an earlier state.
            elif not policy_records.unreadable:
                new_heads[self._branch_ref(key)] = current
        self._observed_heads.store(new_heads)
        return checked

    def _is_descendant(self, head: str, ancestor: str) -> bool:
        if not head:
            return False
        with self._repository.reader() as reader:
            return reader.contains(head, ancestor)

    def _describe_rewound(
        self, key: RecordsKey, policy_records: PolicyRecords, lost_head: str
    ) -> RewoundBranch:
        url, name = self._repository.remote.url, self._branch_ref(key).removeprefix("refs/heads/")
        location = f"branch {name} of {url}"
        try:
            with self._repository.reader() as reader:
                lost_branch = read_branch(reader, lost_head, key, PolicyStateBranch())
        except FanoutError:  # the mirror was created anew and lacks the old commits
            return RewoundBranch(location, lost_head)
        names = {record.name for record in policy_records.records}
        lost_records = tuple(it for it in lost_branch.state.records if it.name not in names)
        return RewoundBranch(location, lost_head, lost_records)

    def empty_problem(self) -> str:
        """Describe the location if this installation has no records, else ""."""
        return self._repository.explain_missing(branch_pattern(self._install))

    def _last_read(self, key: RecordsKey) -> PolicyStateBranch:
        return self._branches.get(key, PolicyStateBranch())

    def _branch_ref(self, key: RecordsKey) -> str:
        return branch_ref(self._install, key)

    def _list_heads(self, keys: Sequence[RecordsKey]) -> dict[RecordsKey, str]:
        heads = self._repository.heads(map(self._branch_ref, keys))
        return {key: heads[self._branch_ref(key)] for key in keys}

    # ---- writing -------------------------------------------------------------------------------

    def append(
        self,
        key: RecordsKey,
        records: Sequence[Mapping[str, Any]],
        author: CommitIdentity,
        now: datetime,
    ) -> tuple[str, ...]:
        """Add records in one commit and return their names.

        `by` is the author and `at` the instant of the commit. The same record in the same second
        gets another name. Raises InvalidInput for a record that could not be read back, Conflict if
        the branch moves under each attempt for half a minute, Unavailable or Denied.
        """
        for record in records:
            _check_record(record, key)
        existing_names = self._list_record_names(key, self._list_heads([key])[key])
        by, names, files = f"{author.name} <{author.email}>", [], {}
        for record in records:
            data = encode_canonical(record)
            names.append(build_record_name(data, by, now, existing_names))
            files[names[-1]] = data
        kinds = ", ".join(sorted({str(record["kind"]) for record in records}))
        text = build_message(f"Record {kinds}", names)

        def add() -> None:
            head = self._list_heads([key])[key]
            existing = self._list_record_names(key, head)
            # Retries use the names of the first attempt, so that nothing is written twice.
            missing = {
                record_path(name): data for name, data in files.items() if name not in existing
            }
            if missing:
                commit = self._build_commit(key, head, missing, text, now)
                self._push_commits([self._with_shards(commit)], author)

        retry_conflicts(add)
        return tuple(names)

    def append_once(
        self, key: RecordsKey, records: Sequence[SubmittedRecord], now: datetime
    ) -> Sequence[RecordEntry]:
        """Add records as `fanout.ports.RecordStore` specifies, each as a commit of its author.

        Raises what `append` raises, and InvalidInput if the branch is unreadable or was put back.
        """
        stored = [add_origin(record) for record in records]
        for record in stored:
            _check_record(record, key)

        def add() -> Sequence[RecordEntry]:
            entries = self._read_entries(key)
            missing = [
                (record, encode_canonical(manifest))
                for record, manifest in zip(records, stored, strict=True)
                if record.uid not in entries
            ]
            if not missing:
                return [entries[record.uid] for record in records]
            head = self._last_read(key).state.head
            names = set(self._list_record_names(key, head))
            # A commit for each record, so that the order of the records is that of commits.
            commits = []
            for record, data in missing:
                by = f"{record.author.name} <{record.author.email}>"
                name = build_record_name(data, by, now, names)
                names.add(name)
                text = build_message(f"Record {record.manifest['kind']}", [name])
                commit = self._build_commit(key, head, {record_path(name): data}, text, now)
                commits.append(replace(commit, identity=record.author))
            commits[0] = self._with_shards(commits[0])
            self._push_commits(commits, self._identity)
            # Read back: what is returned is what the branch says.
            entries = self._read_entries(key)
            return [entries[record.uid] for record in records]

        return retry_conflicts(add)

    def _read_entries(self, key: RecordsKey) -> Mapping[str, RecordEntry]:
        """Return the records of a policy that were taken in, by uid."""
        state = self.read([key])[key]
        if state.failure is not None:
            raise state.failure
        if state.unreadable:
            raise InvalidInput(state.unreadable[0], reason="RecordUnreadable")
        return {record.uid: record for record in state.records if record.uid}

    def _with_shards(self, commit: FileCommit) -> FileCommit:
        """Return the commit of records, which also puts those of the flat layout aside, once."""
        if not commit.parent:
            return commit
        # A branch has one of these at least if its records are not flat.
        directories = (FLAT_DIRECTORY, *(f"{RECORDS_DIRECTORY}/{it}" for it in "0123456789abcdef"))
        with self._repository.reader() as reader:
            states = reader.paths(commit.parent, [RECORDS_DIRECTORY, *directories])
        tree = states[RECORDS_DIRECTORY].tree
        if tree is None or any(states[it].tree is not None for it in directories):
            return commit
        return replace(
            commit, dropped_paths=(RECORDS_DIRECTORY,), trees_by_path={FLAT_DIRECTORY: tree}
        )

    def hold_status(self, problems: Mapping[RecordsKey, str]) -> None:
        """Refuse to change the status of these policies, with these sentences."""
        self._held = problems

    def find_hold(self, key: RecordsKey) -> InvalidInput | None:
        """Return why the status of a policy must not change, or None."""
        return _unreadable_error(key, self._held[key]) if key in self._held else None

    def put_status(
        self, changes: Mapping[RecordsKey, StatusChange], now: datetime
    ) -> Mapping[RecordsKey, str]:
        """Write the changed status lines of all policies in one atomic push; return the heads.

        Raises Conflict, Unavailable, Denied; InvalidInput for an unreadable file or a held status.
        """
        for key in sorted(changes):
            if (hold := self.find_hold(key)) is not None:
                raise hold
        commits, written = [], {}
        for key, change in sorted(changes.items()):
            if files := self._changed_shards(key, change):
                written[key] = files
                text = f"Status of {key.namespace}/{key.policy or 'variants without policy'}\n"
                commits.append(self._build_commit(key, change.expected, files, text, now))
        refs = self._push_commits(commits, self._identity) if commits else {}
        for key, files in written.items():
            ids = {path: blob_id(data) if data else "" for path, data in files.items()}
            present = {**self._status_files.get(key, {}), **ids}
            self._status_files[key] = {path: oid for path, oid in present.items() if oid}
        heads = {key: refs.get(self._branch_ref(key), "") for key in changes}
        return {key: head or changes[key].expected for key, head in heads.items()}

    def _changed_shards(self, key: RecordsKey, change: StatusChange) -> dict[str, bytes]:
        """Return the new content of each status file that changes; b"" removes the file."""
        shards: Mapping[str, PolicyStateShard] = {}
        if change.expected:
            unreadable: list[str] = []
            last_shards = self._last_read(key).shards
            with self._repository.reader() as reader:
                shards = read_shards(reader, change.expected, last_shards, unreadable)
            if unreadable:
                branch = self._branch_ref(key)
                problem = f"cannot read the status on branch {branch}: {unreadable[0]}"
                raise _unreadable_error(key, problem)
        changed_lines: dict[str, dict[str, Mapping[str, Any]]] = {}
        for name, value in change.lines.items():
            path = shard_path(name)
            old_lines = shards.get(path, PolicyStateShard()).lines
            if old_lines.get(name) == value:
                continue
            lines = changed_lines.setdefault(path, dict(old_lines))
            if value is None:
                del lines[name]
            else:
                lines[name] = value
        files = {path: encode_shard(lines) for path, lines in changed_lines.items()}
        return {
            path: data
            for path, data in files.items()
            if (blob_id(data) if data else "") != shards.get(path, PolicyStateShard()).oid
        }

    def _list_record_names(self, key: RecordsKey, head: str) -> frozenset[str]:
        if not head:
            return frozenset()
        if (refusal := self._repository.refused.get(head)) is not None:
            raise refusal
        with self._repository.reader() as reader:
            tree = reader.paths(head, [RECORDS_DIRECTORY])[RECORDS_DIRECTORY].tree
            files = list_records(reader, tree, self._last_read(key).history.listing).files
            return frozenset(name.removesuffix(".json") for name in files)

    def _build_commit(
        self, key: RecordsKey, parent: str, files: Mapping[str, bytes], text: str, at: datetime
    ) -> FileCommit:
        put = {path: data for path, data in sorted(files.items()) if data}
        return FileCommit(
            ref=self._branch_ref(key),
            parent=parent,
            content_by_path=put,
            dropped_paths=tuple(sorted(files.keys() - put.keys())),
            message=text,
            timestamp=int(at.timestamp()),
        )

    def _push_commits(self, commits: Sequence[FileCommit], by: CommitIdentity) -> Mapping[str, str]:
        expected = {commit.ref: commit.parent for commit in commits}
        written = self._repository.change(commits, expected, by)
        observed = {commit.ref: self._observed_heads.get(commit.ref) for commit in commits}
        self._observed_heads.store(
            {
                ref: replace(previous, head=written[ref])
                for ref, previous in observed.items()
                # Own commits on a branch that was put back must not hide that it was.
                if not previous.head or self._is_descendant(written[ref], previous.head)
            }
        )
        return written


def _unreadable_error(key: RecordsKey, problem: str) -> InvalidInput:
    where = ErrorLocation(f"UpstreamPolicy/{key.policy}" if key.policy else "")
    return InvalidInput(problem, reason="RecordsUnreadable", where=where)


def _check_record(record: Mapping[str, Any], key: RecordsKey) -> None:
    try:
        check_record(dict(record), key)
    except UnreadableStateError as error:
        raise InvalidInput(f"the record {error}", reason="InvalidRecord") from error

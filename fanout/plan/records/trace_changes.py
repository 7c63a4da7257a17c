"""Traces of records in the repositories of a policy: which are due, and their commits.

A record that stops something leaves one outside the records repository, too. All else may be
forgotten with restored records without anything being published that a person had stopped.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from fanout.api.gate_vocabulary import Action
from fanout.api.record_objects import ApprovalSpec
from fanout.plan.actions import ActionKind, PlanAction
from fanout.plan.observation.repository_state import (
    CommitIdentity,
    FileCommit,
    RecordTrace,
    RepositoryChange,
    RepositoryState,
    format_trace,
)
from fanout.plan.records.policy_records import RecordEntry, RecordsKey
from fanout.selection.ref_names import record_traces_ref
from fanout.values import Value

# Actions of decisions that stop or take back something; revoked approvals do so, too. A decision to
# accept older records is among them: by it an even older copy is noticed.
_STOPPING_ACTIONS = frozenset(
    {Action.SUSPEND, Action.ROLLBACK, Action.SKIP, Action.WITHDRAW, Action.ACCEPT_RECORDS}
)
_NO_POLICY = "_"  # not a valid object name


class DueTrace(Value):
    """Trace that a repository does not have; None: that of records that are given up is removed."""

    state: RepositoryState
    path: str
    trace: RecordTrace | None


def trace_path(key: RecordsKey) -> str:
    """Return the path of the trace of these records in its branch."""
    return f"{key.namespace}/{key.policy or _NO_POLICY}"


def find_last_stop(records: Sequence[RecordEntry]) -> RecordTrace | None:
    """Return the trace of the last record that stops something."""
    for record in reversed(records):
        is_revocation = isinstance(record.spec, ApprovalSpec) and bool(record.spec.revokes)
        if is_revocation or record.action in _STOPPING_ACTIONS:
            return RecordTrace(record.name, record.at)
    return None


def find_lost_traces(
    states: Iterable[RepositoryState],
    key: RecordsKey,
    record_names: Collection[str],
    accepted_at: datetime | None,
) -> Iterator[tuple[RepositoryState, RecordTrace]]:
    """Yield traces of records that are not on record, and that nobody has given up since."""
    for state in states:
        trace = state.record_traces.get(trace_path(key))
        if trace is None or trace.record in record_names:
            continue
        if accepted_at is None or accepted_at < trace.at:
            yield state, trace


def find_due_traces(
    states: Iterable[RepositoryState], key: RecordsKey, last_stop: RecordTrace | None
) -> tuple[DueTrace, ...]:
    """Return the traces that repositories do not have yet; in those that cannot be read, too."""
    path = trace_path(key)
    name = last_stop.record if last_stop is not None else ""
    due: list[DueTrace] = []
    for state in states:
        present = state.record_traces.get(path)
        # The first branch of an empty repository would become its default one.
        is_usable = state.head or state.failure is not None
        if is_usable and (present.record if present is not None else "") != name:
            due.append(DueTrace(state, path, last_stop))
    return tuple(due)


def build_trace_actions(
    writes: Iterable[DueTrace], key: RecordsKey, names: Mapping[str, str], install: str
) -> tuple[PlanAction, ...]:
    """Build the actions that report traces of a policy to repositories that answer.

    `names` are those of the repositories' objects by their key; others are named by their URL.
    """
    ref = record_traces_ref(install)
    return tuple(
        PlanAction(
            kind=ActionKind.WRITE_TRACE,
            namespace=key.namespace,
            policy=key.policy,
            repository=names.get(write.state.key, write.state.remote.url),
            ref=ref,
            expected=write.state.refs.get(ref, ""),
            detail=f"name {write.trace.record}" if write.trace else "name no record",
        )
        for write in writes
        if write.state.failure is None
    )


def build_trace_changes(
    writes: Iterable[DueTrace], install: str, identity: CommitIdentity
) -> tuple[RepositoryChange, ...]:
    """Build one commit for each repository that can be read, on top of its branch of traces."""
    by_remote: dict[str, dict[str, DueTrace]] = {}
    for write in writes:
        if write.state.failure is None:
            by_remote.setdefault(write.state.remote.key, {})[write.path] = write
    ref = record_traces_ref(install)
    changes: list[RepositoryChange] = []
    for _, by_path in sorted(by_remote.items()):
        state, paths = by_path[min(by_path)].state, sorted(by_path)
        head = state.refs.get(ref, "")
        present = {path: trace for path in paths if (trace := by_path[path].trace) is not None}
        times = (int(trace.at.timestamp()) for trace in present.values())
        commit = FileCommit(
            ref=ref,
            parent=head,
            content_by_path={path: format_trace(trace) for path, trace in present.items()},
            dropped_paths=tuple(path for path in paths if path not in present),
            message="Name the last records that stop something\n",
            # Not the clock: a push that is repeated makes the same commit.
            timestamp=max(times, default=state.head_time),
        )
        changes.append(
            RepositoryChange(
                remote=state.remote, identity=identity, expected={ref: head}, files=(commit,)
            )
        )
    return tuple(changes)

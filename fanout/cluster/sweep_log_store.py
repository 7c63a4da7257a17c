"""Log of the last sweep of each schedule, so that a sweep missed meanwhile is made up.

It changes with every sweep, unlike all else in the records repository, hence a branch
of its own. Each entry is a commit on top of the previous one, so that servers which
refuse forced pushes accept it (docs/concepts/schedules.md).
"""

from collections.abc import Mapping
from datetime import datetime

from fanout.api.durations import format_instant
from fanout.cluster.record_files import STATE_LIMITS, encode_canonical
from fanout.cluster.records_repository import RecordsRepository
from fanout.errors import InvalidInput
from fanout.plan.observation.repository_state import CommitIdentity, FileCommit
from fanout.plan.records.logged_sweep import LoggedSweep
from fanout.retries import retry_conflicts
from fanout.values import as_data, read_json_as

LOG_FILE = "sweeps.json"


class SweepLogStore:
    """File of sweep instants by `namespace/name` of the PromotionPolicy, for one process."""

    def __init__(
        self, repository: RecordsRepository, install: str, identity: CommitIdentity
    ) -> None:
        self._repository = repository
        self._ref = f"refs/heads/fanout/{install}/_sweeps"  # not a valid namespace
        self._identity = identity

    def read(self) -> Mapping[str, LoggedSweep]:
        """Return the entries by PromotionPolicy. Raises InvalidInput, Unavailable, Denied."""
        return self._read()[1]

    def write(self, changes: Mapping[str, LoggedSweep | None], at: datetime) -> None:
        """Write the changed entries, if any; None removes one. An unreadable file is replaced.

        Raises Conflict if the branch moves under each attempt for half a minute, Unavailable or
        Denied.
        """

        def put() -> None:
            try:
                head, entries = self._read()
            except InvalidInput:
                head, entries = self._repository.heads([self._ref])[self._ref], {}
            changed = dict(entries)
            for name, new in changes.items():
                old = entries.get(name)
                # A later entry of the same schedule by any process stays.
                if new is None:
                    changed.pop(name, None)
                elif (
                    old is None
                    or old.at < new.at
                    or not old.applies_to(new.schedule, new.time_zone, at)
                ):
                    changed[name] = new
            if changed == entries:
                return
            lines = {
                name: {**as_data(entry), "at": format_instant(entry.at)}
                for name, entry in sorted(changed.items())
            }
            commit = FileCommit(
                ref=self._ref,
                parent=head,
                content_by_path={LOG_FILE: encode_canonical(lines)},
                dropped_paths=(),
                message="Sweeps by schedule\n",
                timestamp=int(at.timestamp()),
            )
            self._repository.change([commit], {self._ref: head}, self._identity)

        # Read again in each attempt: the process that won the race may have logged a later sweep.
        retry_conflicts(put)

    def _read(self) -> tuple[str, dict[str, LoggedSweep]]:
        if not (head := self._repository.heads([self._ref])[self._ref]):
            return "", {}
        with self._repository.reader() as reader:
            entry = reader.entry(reader.commit(head).tree, LOG_FILE)
            data = reader.blob(entry.oid, STATE_LIMITS.file_size) if entry else b""
        try:
            return head, read_json_as(data, type=dict[str, LoggedSweep])
        except (ValueError, RecursionError) as error:
            branch = self._ref.removeprefix("refs/heads/")
            location = f"{LOG_FILE} on branch {branch} of {self._repository.remote.url}"
            raise InvalidInput(
                f"cannot read {location}: {error}",
                reason="RecordUnreadable",
                remedy="the next sweep replaces it and does not repeat earlier sweeps",
            ) from error

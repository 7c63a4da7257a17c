"""When each schedule last had its sweep, so that one missed while nobody ran can be made up.

The only thing that moves with the clock in the records repository, hence a branch of its own. Each
time is a commit on the one before: servers that refuse forced pushes take it. (Design §3.)
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fanout.api.durations import parse_instant
from fanout.api.faults import BadValue
from fanout.cluster.books import LIMITS, canonical
from fanout.cluster.contention import until_it_wins
from fanout.cluster.records_repository import RecordsRepository
from fanout.errors import InvalidInput
from fanout.gates.instants import from_the_future
from fanout.plan.repository import FileCommit, Identity
from fanout.ports import Reader
from fanout.values import frozen

FILE = "sweeps.json"


@frozen
class Swept:
    """Up to when the sweeps of a schedule are done, and which schedule that was."""

    at: datetime
    schedule: str
    time_zone: str

    def tells_of(self, schedule: str, time_zone: str, now: datetime) -> bool:
        """Is it about this schedule, and by a clock that can be right?"""
        same = (self.schedule, self.time_zone) == (schedule, time_zone)
        return same and not from_the_future(self.at, now)


class SweepLog:
    """One file of times, by `namespace/name` of the PromotionPolicy. One process may use it."""

    def __init__(self, repository: RecordsRepository, install: str, identity: Identity) -> None:
        self._repository = repository
        self._ref = f"refs/heads/fanout/{install}/_sweeps"  # no namespace can be called so
        self._identity = identity

    def read(self) -> Mapping[str, Swept]:
        """What is on record. Raises InvalidInput when it is not understood, Unavailable, Denied."""
        return self._read()[1]

    def write(self, changes: Mapping[str, Swept | None], at: datetime) -> None:
        """Put these; None removes. Nothing is written when nothing changes.

        Raises Conflict when the branch moved under each attempt of half a minute, Unavailable or
        Denied. What was there and is not understood is replaced.
        """

        def put() -> None:
            head, there = self._understood()
            wanted = _changed(there, changes, at)
            if wanted != there:
                self._append(head, wanted, at)

        until_it_wins(put)

    def _read(self) -> tuple[str, dict[str, Swept]]:
        head = self._repository.heads([self._ref])[self._ref]
        if not head:
            return "", {}
        with self._repository.reader() as reader:
            return head, self._parsed(_content(reader, head))

    def _understood(self) -> tuple[str, dict[str, Swept]]:
        try:
            return self._read()
        except InvalidInput:
            return self._repository.heads([self._ref])[self._ref], {}

    def _parsed(self, data: bytes) -> dict[str, Swept]:
        try:
            return {name: _swept(line) for name, line in json.loads(data).items()}
        except (BadValue, ValueError, AttributeError, KeyError, TypeError) as error:
            branch = self._ref.removeprefix("refs/heads/")
            raise InvalidInput(
                f"{FILE} on branch {branch} of {self._repository.remote.url} is not understood:"
                f" {error}",
                reason="RecordUnreadable",
                remedy="it is replaced at the next sweep; what was missed before is not made up",
            ) from error

    def _append(self, head: str, swept: Mapping[str, Swept], at: datetime) -> None:
        lines = {name: _plain(one) for name, one in sorted(swept.items())}
        commit = FileCommit(
            ref=self._ref,
            parent=head,
            put={FILE: canonical(lines)},
            drop=(),
            message="Sweeps by schedule\n",
            when=int(at.timestamp()),
        )
        self._repository.change([commit], {self._ref: head}, self._identity)


def _changed(
    there: Mapping[str, Swept], changes: Mapping[str, Swept | None], now: datetime
) -> dict[str, Swept]:
    """What is to be on record; a later sweep of the same schedule, by whomever, is kept."""
    wanted = dict(there)
    for name, new in changes.items():
        old = there.get(name)
        if new is None:
            wanted.pop(name, None)
        elif old is None or old.at < new.at or not old.tells_of(new.schedule, new.time_zone, now):
            wanted[name] = new
    return wanted


def _content(reader: Reader, head: str) -> bytes:
    entry = reader.entry(reader.commit(head).tree, FILE)
    return reader.blob(entry.oid, LIMITS.file_size) if entry else b""


def _plain(swept: Swept) -> dict[str, Any]:
    return {
        "at": f"{swept.at:%Y-%m-%dT%H:%M:%SZ}",
        "schedule": swept.schedule,
        "timeZone": swept.time_zone,
    }


def _swept(line: Mapping[str, Any]) -> Swept:
    return Swept(parse_instant(line["at"]), str(line["schedule"]), str(line["timeZone"]))

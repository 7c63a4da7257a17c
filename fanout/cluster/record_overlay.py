"""Record store that writes nothing: the records of another store, and those added in memory.

For dry runs, and for commands that create records as objects of a cluster. A policy that got a
record has a head of its own, because what is kept between passes is kept by head.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from fanout.api.gate_vocabulary import Action
from fanout.cluster.record_files import (
    build_record_name,
    check_record,
    encode_canonical,
    parse_groups,
)
from fanout.errors import Bug
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_records import (
    PolicyRecords,
    RecordEntry,
    RecordsKey,
    StatusChange,
    SubmittedRecord,
)
from fanout.ports import RecordStore
from fanout.values import replace


class RecordOverlay:
    """Implementation of `fanout.ports.RecordStore` that keeps new records in memory."""

    def __init__(
        self, store: RecordStore, create: Callable[[Mapping[str, Any]], str] | None = None
    ) -> None:
        """Show the records of `store`; `create` creates the object of a new one, and names it."""
        self._store = store
        self._create = create
        self._added: dict[RecordsKey, tuple[RecordEntry, ...]] = {}
        self.take_changed_elsewhere = store.take_changed_elsewhere
        self.heads_unchanged = store.heads_unchanged
        self.heads = store.heads
        self.empty_problem = store.empty_problem
        self.find_push_refusal = store.find_push_refusal
        self.read_status_revisions = store.read_status_revisions
        self.manifests: list[Mapping[str, Any]] = []  # of all new records, in order

    def read(self, keys: Sequence[RecordsKey]) -> Mapping[RecordsKey, PolicyRecords]:
        """Read like `fanout.ports.RecordStore`, new records included."""
        return self._add_records(self._store.read(keys))

    def read_all(self, keys: Sequence[RecordsKey]) -> Mapping[RecordsKey, PolicyRecords]:
        """Read like `fanout.ports.RecordStore`, new records included."""
        return self._add_records(self._store.read_all(keys))

    def append(
        self,
        key: RecordsKey,
        records: Sequence[Mapping[str, Any]],
        author: CommitIdentity,
        now: datetime,
    ) -> tuple[str, ...]:
        """Keep the records in memory, and return the names that they would get."""
        by, names = f"{author.name} <{author.email}>", []
        existing = {it.name for it in self.read([key])[key].records}
        for record in records:
            data = encode_canonical(record)
            spec = check_record(json.loads(data), key)
            name = self._create(record) if self._create else ""
            name = name or build_record_name(data, by, now, existing)
            groups = parse_groups(record["metadata"])
            entry = RecordEntry(name=name, at=now, by=by, spec=spec, groups=groups)
            self._added[key] = (*self._added.get(key, ()), entry)
            metadata = {**record["metadata"], "name": name}
            self.manifests.append({**json.loads(data), "metadata": metadata})
            existing.add(name)
            names.append(name)
        return tuple(names)

    def append_once(
        self,
        key: RecordsKey,  # noqa: ARG002 as of the port
        records: Sequence[SubmittedRecord],  # noqa: ARG002 as of the port
        now: datetime,  # noqa: ARG002 as of the port
    ) -> Sequence[RecordEntry]:
        """Refuse: a dry run takes nothing in."""
        raise Bug("a dry run was about to take in records")

    def hold_status(self, problems: Mapping[RecordsKey, str]) -> None:
        """Do nothing: no status is written."""

    def find_hold(self, key: RecordsKey) -> None:
        """Return None: nothing is held."""

    def put_status(
        self,
        changes: Mapping[RecordsKey, StatusChange],  # noqa: ARG002 as of the port
        now: datetime,  # noqa: ARG002 as of the port
    ) -> Mapping[RecordsKey, str]:
        """Refuse: a dry run plans, and executes nothing."""
        raise Bug("a dry run was about to write the status of a policy")

    def _add_records(
        self, records_by_key: Mapping[RecordsKey, PolicyRecords]
    ) -> Mapping[RecordsKey, PolicyRecords]:
        extended = dict(records_by_key)
        for key, policy_records in records_by_key.items():
            if added := self._added.get(key, ()):
                is_accepted = any(it.action is Action.ACCEPT_RECORDS for it in added)
                extended[key] = replace(
                    policy_records,
                    head=f"{policy_records.head}+{added[-1].name}",
                    records=(*policy_records.records, *added),
                    rewound=None if is_accepted else policy_records.rewound,
                )
        return extended

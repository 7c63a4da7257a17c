"""Records as people create them in a cluster: objects, before and after they are taken in."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fanout.errors import FanoutError
from fanout.plan.records.policy_records import RecordsKey
from fanout.values import Value


class ClusterUser(Value):
    """User of a cluster: name, and groups of the API."""

    name: str
    groups: tuple[str, ...] = ()


class RecordState(Value):
    """State of a record's object, from its status: on record, refused, or waiting."""

    record: str = ""  # name in the records repository
    at: datetime | None = None  # since when the status holds
    reason: str = ""  # why it is refused or waits
    message: str = ""
    is_refused: bool = False  # for ever; otherwise it waits


class RecordObject(Value):
    """Object of a record, as the API server has it."""

    kind: str
    namespace: str
    name: str
    uid: str
    by: str  # user, proven by admission
    groups: tuple[str, ...]  # for which the user speaks, proven too
    created_at: datetime
    generation: int
    manifest: Mapping[str, Any]  # apiVersion, kind, spec, and metadata with namespace alone
    state: RecordState

    @property
    def key(self) -> RecordsKey:
        """Policy whose record it is."""
        spec = self.manifest.get("spec")
        policy = spec.get("policy") if isinstance(spec, Mapping) else None
        return RecordsKey(self.namespace, policy if isinstance(policy, str) else "")

    @property
    def identity(self) -> str:
        """Kind, namespace and name for messages."""
        return f"{self.kind}/{self.namespace}/{self.name}"


class RecordListing(Value):
    """Objects that are not on record, by their creation, and whether their authors are proven.

    `admission_problem`: the admission policies are not as they have to be, so nobody is who an
    object says. `admitted_since`: when they were written last, and in force.
    """

    objects: tuple[RecordObject, ...]
    admission_problem: FanoutError | None = None
    admitted_since: datetime | None = None

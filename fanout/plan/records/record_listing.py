"""Records as people create them in a cluster: objects and their status, before and after intake.

The status says whether a record is on record, and whether it counts. Two write it: the intake, and
after each pass the writer of statuses. Both build it here, so that they write the same bytes.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fanout.api.results import Condition
from fanout.api.view_base import ConditionStatus, dump_views, status_of
from fanout.errors import FanoutError
from fanout.gates.record_effect import RecordEffect
from fanout.plan.records.policy_records import RecordsKey
from fanout.values import Value, replace


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


RECORDED, EFFECTIVE, READY, STALLED = "Recorded", "Effective", "Ready", "Stalled"


def build_record_status(
    state: RecordState, at: datetime, effect: RecordEffect | None = None
) -> dict[str, Any]:
    """Return the status of an object, without generations.

    `at`: since when, where the state does not tell. `effect`: of a record that a pass has seen.
    """
    since, is_recorded = state.at or at, status_of(is_true=bool(state.record))
    recorded = Condition(RECORDED, is_recorded, state.reason or RECORDED, state.message, since)
    conditions = [recorded, replace(recorded, type=READY)]
    if state.is_refused:
        conditions.append(replace(recorded, type=STALLED, status=ConditionStatus.TRUE))
    if effect is not None:
        # No record tells when others took the effect away: since then at the latest.
        effective = status_of(is_true=effect.is_effective)
        conditions.append(Condition(EFFECTIVE, effective, effect.reason, effect.message, since))
    return {
        "conditions": dump_views(conditions),
        **({"record": state.record} if state.record else {}),
    }

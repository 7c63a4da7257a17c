"""Status of a record's object: whether it is on record, and whether it counts.

Two write it: the intake, and after each pass the writer of statuses. Both build it here, so that
they write the same bytes.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from fanout.api.results import Condition
from fanout.api.view_base import ConditionStatus, dump_views, status_of
from fanout.gates.record_effect import RecordEffect
from fanout.plan.records.record_listing import RecordState
from fanout.values import replace

RECORDED, EFFECTIVE, READY, STALLED = "Recorded", "Effective", "Ready", "Stalled"


def build_record_status(
    state: RecordState, at: datetime, effect: RecordEffect | None = None
) -> dict[str, Any]:
    """Return the status of an object, without generations.

    `at`: since when, where the state does not tell. `effect`: of a record that a pass has seen.
    """
    return {
        "conditions": dump_views(_build_conditions(state, state.at or at, effect)),
        **({"record": state.record} if state.record else {}),
    }


def _build_conditions(
    state: RecordState, since: datetime, effect: RecordEffect | None
) -> Iterator[Condition]:
    recorded = Condition(
        RECORDED,
        status_of(is_true=bool(state.record)),
        state.reason or RECORDED,
        state.message,
        since,
    )
    yield recorded
    yield replace(recorded, type=READY)
    if state.is_refused:
        yield replace(recorded, type=STALLED, status=ConditionStatus.TRUE)
    if effect is not None:
        # No record tells when others took the effect away: since then at the latest.
        effective = status_of(is_true=effect.is_effective)
        yield Condition(EFFECTIVE, effective, effect.reason, effect.message, since)

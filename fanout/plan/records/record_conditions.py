"""Status of a record's object: whether it is on record, and whether it counts.

Two write it: the intake, and after each pass the writer of statuses. Both build it here, so that
they write the same bytes.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from fanout.api.durations import format_instant
from fanout.gates.record_effect import RecordEffect
from fanout.plan.records.record_listing import RecordState

RECORDED, EFFECTIVE, READY, STALLED = "Recorded", "Effective", "Ready", "Stalled"


def build_record_status(
    state: RecordState, at: datetime, effect: RecordEffect | None = None
) -> dict[str, Any]:
    """Return the status of an object, without generations.

    `at`: since when, where the state does not tell. `effect`: of a record that a pass has seen.
    """
    return {
        "conditions": list(_build_conditions(state, format_instant(state.at or at), effect)),
        **({"record": state.record} if state.record else {}),
    }


def _build_conditions(
    state: RecordState, since: str, effect: RecordEffect | None
) -> Iterator[dict[str, Any]]:
    shared = {
        "reason": state.reason or RECORDED,
        "message": state.message,
        "lastTransitionTime": since,
    }
    is_recorded = _format_status(is_true=bool(state.record))
    yield {"type": RECORDED, "status": is_recorded, **shared}
    yield {"type": READY, "status": is_recorded, **shared}
    if state.is_refused:
        yield {"type": STALLED, "status": "True", **shared}
    if effect is not None:
        yield {
            "type": EFFECTIVE,
            "status": _format_status(is_true=effect.is_effective),
            "reason": effect.reason.value,
            "message": effect.message,
            # No record tells when others took the effect away: since then at the latest.
            "lastTransitionTime": since,
        }


def _format_status(*, is_true: bool) -> str:
    return "True" if is_true else "False"

"""Instants of conditions, with and without one on record."""

from operator import itemgetter
from typing import Any

import pytest

from fanout.plan.written_objects import (
    ConditionState,
    TransitionTimes,
    add_transition_times,
    merge_present,
)

TIMES = TransitionTimes(created="2026-01-01T00:00:00Z", observed="2026-01-05T00:00:00Z")
CREATED, SECOND, THIRD, OBSERVED = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3, 5))
INSTANTS: list[tuple[str, str, tuple[str, str] | None, str]] = [
    ("a new object without a record: its creation", "", None, CREATED),
    ("a new object with a record: the record", SECOND, None, SECOND),
    ("the same status without a record: as it is", "", ("True", THIRD), THIRD),
    ("another status without a record: the pass", "", ("False", THIRD), OBSERVED),
    ("a newer record: the record", THIRD, ("True", SECOND), THIRD),
    ("an older record than is shown: as it is", SECOND, ("True", THIRD), THIRD),
    ("an older record, another status: not back", SECOND, ("False", THIRD), THIRD),
]


@pytest.mark.parametrize(
    ("recorded", "present", "expected"),
    [it[1:] for it in INSTANTS],
    ids=map(itemgetter(0), INSTANTS),
)
def test_instants_of_conditions(recorded: str, present: Any, expected: str):
    condition = {"type": "Ready", "status": "True"}
    if recorded:
        condition["lastTransitionTime"] = recorded
    earlier = {"Ready": ConditionState(*present)} if present else {}
    (completed,) = add_transition_times([condition], earlier, TIMES)
    assert completed["lastTransitionTime"] == expected


def test_a_condition_that_begins_has_the_instant_of_the_pass():
    present = {"Ready": ConditionState("True", THIRD)}
    condition = {"type": "Stalled", "status": "True"}
    (completed,) = add_transition_times([condition], present, TIMES)
    assert completed["lastTransitionTime"] == OBSERVED


def test_before_the_first_pass_no_instant_is_made_up():
    present = {"Ready": ConditionState("True", THIRD)}
    times = TransitionTimes(created=CREATED, observed="")
    conditions = [{"type": "Ready", "status": "False"}, {"type": "Stalled", "status": "True"}]
    completed = add_transition_times(conditions, present, times)
    assert [it["lastTransitionTime"] for it in completed] == [THIRD, THIRD]


def test_a_partial_status_replaces_what_is_about_progress():
    present = {
        "state": "Verifying",
        "conditions": [{"type": "Ready"}, {"type": "Stalled"}, {"type": "Edited"}],
    }
    status = {"conditions": [{"type": "Ready", "status": "False"}]}
    merged = merge_present(status, {"state": "Held", "stage": "dev"}, present)
    assert merged["state"] == "Verifying"
    assert merged["stage"] == "dev"
    assert merged["conditions"] == [{"type": "Ready", "status": "False"}, {"type": "Edited"}]

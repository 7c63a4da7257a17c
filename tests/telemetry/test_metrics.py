"""Counts of events with labels."""

import pytest

from fanout.errors import Unavailable
from fanout.telemetry.metrics import EventCounters, EventName

COUNT, SECONDS = EventName.GIT_OPERATION, EventName.GIT_SECONDS


def test_counts_are_by_labels():
    events = EventCounters()
    events.add(EventName.HOOK, "queued")
    events.add(EventName.HOOK, "queued", number=2)
    events.add(EventName.HOOK, "unsigned")
    assert events.read(EventName.HOOK) == {("queued",): 3, ("unsigned",): 1}
    assert events.read(EventName.NOTIFICATION) == {}


RESULTS = [
    (Unavailable("no answer", reason="GitTimeout"), "GitTimeout"),
    (KeyboardInterrupt(), "error"),
]


@pytest.mark.parametrize(("error", "result"), RESULTS, ids=["an error", "an interrupt"])
def test_an_operation_is_counted_with_its_result_and_its_time(error, result):
    events = EventCounters()
    with events.operation(COUNT, SECONDS, "fetch"):
        pass
    with pytest.raises(type(error)), events.operation(COUNT, SECONDS, "fetch"):
        raise error
    assert events.read(COUNT) == {("fetch", "success"): 1, ("fetch", result): 1}
    assert events.read(SECONDS).keys() == {("fetch",)}

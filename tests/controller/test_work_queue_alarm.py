"""The alarm clock with real instants, each a fraction of a second away."""

from datetime import UTC, datetime, timedelta
from time import monotonic, sleep

import pytest

from fanout.controller.work_queue import RequeueTimer, Trigger, TriggerKey, WorkQueue

ONE = TriggerKey(Trigger.SWEEP, "platform", "one")
TWO = TriggerKey(Trigger.SWEEP, "platform", "two")
SAME_NAME = TriggerKey(Trigger.INSTANT, "platform", "one")


@pytest.fixture
def queue():
    return WorkQueue(monotonic)


@pytest.fixture
def alarm(queue):
    alarm = RequeueTimer(queue.add)
    yield alarm
    alarm.shutdown()


def take(queue):
    """Wait for keys, and serve them."""
    keys = queue.take()
    queue.done(keys)
    return keys


def soon(milliseconds):
    return datetime.now(UTC) + timedelta(milliseconds=milliseconds)


def test_the_alarm_rings_at_the_instant_and_not_before(alarm, queue):
    instant = soon(100)
    alarm.set(ONE, instant)
    assert tuple(take(queue)) == (ONE,)
    assert datetime.now(UTC) >= instant


def test_an_instant_long_past_rings_at_once(alarm, queue):
    alarm.set(ONE, datetime(2020, 1, 1, tzinfo=UTC))
    assert tuple(take(queue)) == (ONE,)


def test_an_instant_replaces_the_one_before(alarm, queue):
    alarm.set(ONE, soon(100))
    alarm.set(ONE, soon(3_600_000))
    alarm.set(TWO, soon(200))
    assert tuple(take(queue)) == (TWO,)


def test_a_nearer_instant_replaces_a_farther_one(alarm, queue):
    alarm.set(ONE, datetime(9000, 1, 1, tzinfo=UTC))
    alarm.set(ONE, soon(50))
    assert tuple(take(queue)) == (ONE,)


def test_a_cancelled_alarm_does_not_ring(alarm, queue):
    alarm.set(ONE, soon(100))
    alarm.cancel(ONE)
    alarm.cancel(TWO)
    alarm.set(TWO, soon(200))
    assert tuple(take(queue)) == (TWO,)


def test_keys_of_one_name_and_two_triggers_are_two_alarms(alarm, queue):
    alarm.set(ONE, soon(50))
    alarm.set(SAME_NAME, soon(100))
    assert (*take(queue), *take(queue)) == (ONE, SAME_NAME)


def test_after_shutdown_nothing_rings(queue):
    alarm = RequeueTimer(queue.add)
    alarm.set(ONE, soon(50))
    alarm.shutdown()
    sleep(0.2)
    assert not queue.take_due()


def test_a_shutdown_at_the_very_instant_ends_in_peace(queue):
    """Its thread may be starting the job; pytest reports a thread that ends with an error."""
    for _ in range(100):
        alarm = RequeueTimer(queue.add)
        alarm.set(ONE, soon(0))
        take(queue)
        alarm.shutdown()

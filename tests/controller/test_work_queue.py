"""The work queue: due times, duplicates, keys in hand, and closing."""

import threading
from time import monotonic

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fanout.controller.work_queue import WorkQueue

PATIENCE = 20  # seconds, for a slow machine


@pytest.fixture
def clock():
    return [100.0]


@pytest.fixture
def queue(clock):
    return WorkQueue(lambda: clock[0])


def test_all_that_is_due_is_taken_at_once_in_order_and_once(queue):
    for key in "abacab":
        queue.add(key)
    assert tuple(queue.take_due()) == ("a", "b", "c")
    assert tuple(queue.take_due()) == ()


def test_keys_are_taken_in_the_order_of_their_due_times(queue, clock):
    queue.add_after("a", 3)
    queue.add_after("b", 1)
    queue.add_after("c", 2)
    clock[0] += 2
    assert queue.take_due() == {"b": 101, "c": 102}
    clock[0] += 1
    assert queue.take_due() == {"a": 103}


def test_the_earlier_due_time_wins(queue, clock):
    queue.add_after("a", 5)
    queue.add_after("a", 2)
    queue.add_after("a", 9)
    clock[0] += 2
    assert queue.take_due() == {"a": 102}
    clock[0] += 100
    assert queue.take_due() == {}


def test_a_key_in_hand_that_is_added_again_comes_when_it_is_done(queue):
    queue.add("a")
    queue.take_due()
    queue.add("a")
    assert queue.take_due() == {}
    queue.done("a")
    assert tuple(queue.take_due()) == ("a",)


def test_a_key_that_is_put_back_keeps_its_time_and_is_one_with_what_came_meanwhile(queue, clock):
    queue.add("a")
    taken = queue.take_due()
    clock[0] += 5
    queue.add("a")
    queue.restore(taken)
    assert queue.take_due() == {"a": 100}
    queue.done("a")
    assert queue.take_due() == {}


def test_a_key_that_is_discarded_does_not_come(queue, clock):
    queue.add_after("a", 1)
    assert "a" in queue
    queue.discard("a")
    queue.discard("b")
    clock[0] += 2
    assert "a" not in queue
    assert queue.take_due() == {}


def test_a_key_that_is_not_chosen_stays_due(queue):
    for key in "abc":
        queue.add(key)
    assert tuple(queue.take_due(lambda due: [it for it in due if it != "b"])) == ("a", "c")
    assert queue.list_due().keys() == set("abc")
    assert tuple(queue.take_due()) == ("b",)


def test_waiting_keys_are_due_or_in_hand(queue, clock):
    queue.add_after("later", 10)
    queue.add("a")
    queue.take_due()
    clock[0] += 1
    queue.add("b")
    assert queue.list_due() == {"a": 100, "b": 101}
    queue.done("a")
    assert queue.list_due() == {"b": 101}


def take_beside(queue, **options):
    """Take on another thread; return the thread, and what it gets."""
    results = []
    thread = threading.Thread(target=lambda: results.append(queue.take(**options)))
    thread.start()
    return thread, results


def test_taking_waits_for_another_thread():
    queue = WorkQueue(monotonic)
    thread, results = take_beside(queue)
    queue.add("a")
    thread.join(PATIENCE)
    assert tuple(results[0]) == ("a",)


def test_taking_waits_for_a_due_time_and_for_a_nearer_one():
    queue = WorkQueue(monotonic)
    queue.add_after("far", 3600)
    thread, results = take_beside(queue)
    queue.add_after("near", 0.1)
    thread.join(PATIENCE)
    assert tuple(results[0]) == ("near",)


def test_taking_waits_for_a_key_that_is_chosen():
    queue = WorkQueue(monotonic)
    queue.add("a")
    thread, results = take_beside(queue, choose=lambda due: [it for it in due if it == "b"])
    queue.add_after("b", 0.05)
    thread.join(PATIENCE)
    assert tuple(results[0]) == ("b",)
    assert tuple(queue.take()) == ("a",)


def test_a_key_that_falls_due_while_the_taker_sleeps_has_not_waited(queue, clock):
    """Else a process that was stopped for an hour would seem to hang for as long."""
    queue.add_after("a", 0.05)
    thread, results = take_beside(queue)
    clock[0] += 3600
    assert queue.list_due() in ({}, {"a": 3700})
    thread.join(PATIENCE)
    assert results == [{"a": 3700}]


def test_closing_wakes_the_taker():
    queue = WorkQueue(monotonic)
    thread, results = take_beside(queue)
    queue.close()
    thread.join(PATIENCE)
    assert results == [None]


def test_a_closed_queue_gives_nothing_more():
    queue = WorkQueue(monotonic)
    queue.add("a")
    queue.close()
    assert (queue.take(), queue.take()) == (None, None)


def test_keys_from_many_threads_all_arrive():
    queue = WorkQueue(monotonic)
    threads = [
        threading.Thread(
            target=lambda part=part: [queue.add_after((part, n), n / 10_000) for n in range(200)]
        )
        for part in range(4)
    ]
    for thread in threads:
        thread.start()
    taken = []
    while len(taken) < 800:
        taken += queue.take()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == len(taken) == 800


class QueueModel(RuleBasedStateMachine):
    """Any use of the queue, beside what it must be: a due time for each key that waits.

    Nothing is lost, nothing comes before its time, the earlier time wins, and no key is handed
    out a second time before it is done.
    """

    keys = st.sampled_from("abcd")
    delays = st.integers(0, 5)

    @initialize()
    def begin(self):
        self.now = 0
        self.queue = WorkQueue(lambda: self.now)
        self.waiting, self.in_hand = {}, {}

    @rule(key=keys, delay=delays)
    def add(self, key, delay):
        self.queue.add_after(key, delay)
        self.waiting[key] = min(self.now + delay, self.waiting.get(key, self.now + delay))

    @rule(key=keys)
    def discard(self, key):
        self.queue.discard(key)
        self.waiting.pop(key, None)

    @rule(seconds=delays)
    def wait(self, seconds):
        self.now += seconds

    @rule(chosen=st.sets(keys))
    def take(self, chosen):
        taken = self.queue.take_due(lambda due: [it for it in due if it in chosen])
        expected = {
            key: at
            for key, at in self.waiting.items()
            if key in chosen and at <= self.now and key not in self.in_hand
        }
        assert taken == expected
        assert list(taken.values()) == sorted(taken.values())
        for key in taken:
            self.in_hand[key] = self.waiting.pop(key)

    @rule(keys=st.sets(keys))
    def finish(self, keys):
        self.queue.done(keys)
        for key in keys:
            self.in_hand.pop(key, None)

    @rule(keys=st.sets(keys))
    def put_back(self, keys):
        returned = {key: self.in_hand.pop(key) for key in keys & self.in_hand.keys()}
        self.queue.restore(returned)
        for key, at in returned.items():
            self.waiting[key] = min(at, self.waiting.get(key, at))

    @invariant()
    def what_waits_is_known(self):
        due = {key: at for key, at in self.waiting.items() if at <= self.now}
        assert self.queue.list_due() == {**due, **self.in_hand}
        assert {key for key in "abcd" if key in self.queue} == self.waiting.keys()


TestQueue = QueueModel.TestCase

"""The queue: duplicates are forgotten, one taker gets all, closing wakes it."""

import threading
from time import monotonic

from hypothesis import given
from hypothesis import strategies as st

from fanout.controller.trigger_queue import TriggerQueue

SOON, LONG = 0.01, 30


def test_all_that_waits_is_taken_at_once_in_order_and_once():
    queue = TriggerQueue()
    for key in "abacab":
        queue.put(key)
    assert tuple(queue.take(SOON)) == ("a", "b", "c")
    assert tuple(queue.take(SOON)) == ()


def test_a_key_that_was_taken_can_be_put_again():
    queue = TriggerQueue()
    queue.put("a")
    queue.take(SOON)
    queue.put("a")
    assert tuple(queue.take(SOON)) == ("a",)


def test_taking_waits_for_another_thread():
    queue = TriggerQueue()
    thread = threading.Timer(0.05, queue.put, ["a"])
    thread.start()
    assert tuple(queue.take(LONG)) == ("a",)
    thread.join()


def test_taking_from_an_empty_queue_ends():
    start = monotonic()
    assert tuple(TriggerQueue().take(SOON)) == ()
    assert monotonic() - start < LONG


def test_closing_wakes_the_taker():
    queue = TriggerQueue()
    thread = threading.Timer(0.05, queue.close)
    thread.start()
    assert queue.take(LONG) is None
    thread.join()


def test_a_closed_queue_gives_nothing_more():
    queue = TriggerQueue()
    queue.put("a")
    queue.close()
    assert (queue.take(LONG), queue.take(LONG)) == (None, None)


@given(st.lists(st.lists(st.integers(0, 3))))
def test_no_key_is_lost_and_none_comes_twice(batches):
    queue = TriggerQueue()
    for batch in batches:
        for key in batch:
            queue.put(key)
        assert tuple(queue.take(0)) == tuple(dict.fromkeys(batch))


def test_keys_from_many_threads_all_arrive():
    queue = TriggerQueue()
    threads = [
        threading.Thread(target=lambda part=part: [queue.put((part, n)) for n in range(200)])
        for part in range(4)
    ]
    for thread in threads:
        thread.start()
    taken = []
    while len(taken) < 800:
        taken += queue.take(LONG)
    for thread in threads:
        thread.join()
    assert len(set(taken)) == len(taken) == 800

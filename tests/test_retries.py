"""Pauses of random length."""

import random

from fanout.retries import choose_pause


def test_a_pause_is_between_both_ends_and_random():
    pauses = [choose_pause(0.5, 1) for _ in range(100)]
    assert all(0.5 <= it <= 1 for it in pauses)
    assert len(set(pauses)) > 1


def test_pauses_leave_the_state_that_others_draw_from():
    before = random.getstate()
    choose_pause(0, 1)
    assert random.getstate() == before

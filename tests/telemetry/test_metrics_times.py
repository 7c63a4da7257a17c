"""Every moment is charged to one phase; what threads do is counted beside it."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from fanout.telemetry.metrics import PHASES, PhaseTime, PhaseTimes


class Clock:
    """Stands still but for what a test lets go by."""

    def __init__(self):
        self.now = PhaseTime()

    def pass_by(self, clock, own=0, children=0):
        self.now += PhaseTime(clock, own, children)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def times(clock):
    return PhaseTimes(lambda: clock.now)


def charged(times):
    return {name: spent.clock for name, spent in times.read().items() if spent.clock}


def test_time_in_no_phase_is_charged_to_else(times, clock):
    clock.pass_by(3)
    assert charged(times) == {"else": 3}


def test_a_phase_within_a_phase_is_not_charged_to_the_outer_one(times, clock):
    with times.phase("judging"):
        clock.pass_by(1)
        with times.phase("rendering"):
            clock.pass_by(10)
        clock.pass_by(2)
    clock.pass_by(5)
    assert charged(times) == {"judging": 3, "rendering": 10, "else": 5}


def test_a_phase_that_comes_again_is_added_up(times, clock):
    for _ in range(3):
        with times.phase("records"):
            clock.pass_by(2, own=1, children=0.5)
    assert times.read()["records"] == PhaseTime(6, 3, 1.5)


def test_a_phase_that_fails_has_ended(times, clock):
    with pytest.raises(OSError, match="disk"), times.phase("writing"):
        clock.pass_by(1)
        raise OSError("disk")
    clock.pass_by(4)
    assert charged(times) == {"writing": 1, "else": 4}


def test_a_new_pass_begins_at_nothing(times, clock):
    with times.phase("names"), times.work("asking"):
        clock.pass_by(1)
    times.reset()
    assert charged(times) == {}
    assert times.threads("names") == {}


def test_a_phase_that_is_not_known_is_a_mistake(times):
    with pytest.raises(KeyError), times.phase("dreaming"):
        pass


def test_threads_count_for_the_phase_that_waits_for_them(times):
    def work(what):
        with times.work(what):
            pass

    with times.phase("writing"), ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ["git push", "git push", "git fetch"]))
    assert set(times.threads("writing")) == {"git push", "git fetch"}
    assert times.threads("listings") == {}


def test_by_the_real_clock_the_phases_add_up():
    times = PhaseTimes()
    with times.phase("files"):
        sum(range(1000))
    spent = times.read()
    assert list(spent) == list(PHASES)
    assert spent["files"].clock > 0
    assert spent["files"].process > 0

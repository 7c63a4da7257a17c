"""The loop where what is declared, or records, change while a pass runs or fails."""

import threading
from time import monotonic, sleep

from controller.test_run_loop import PATIENCE, A, B, Observer, Play, report

from fanout.controller import run_loop as module
from fanout.controller.loop_health import STALL_LIMIT
from fanout.controller.run_loop import IntakeReport
from fanout.errors import Unavailable
from fanout.values import replace


def test_declarations_read_by_a_pass_are_used_by_the_next_pass_and_wake_their_policies(files):
    files.policy("a")
    seen = []

    def answer(number, now):
        seen.append(play.loop._reader.declared)
        if number == 1:
            files.policy("b")
            play.concerned = frozenset({B})
            play.loop.adopt(files.read())
        return report(now)

    play = Play(files, answer=answer)
    with play:
        play.until(lambda: len(play.modes) == 2)
    assert play.modes[1].subjects == {B}
    names = [[it.metadata.name for it in declared.policies] for declared in seen]
    assert names == [["a"], ["a", "b"]]


def test_equal_declarations_read_by_a_pass_are_no_change(files):
    files.policy("a")
    play = Play(files, answer=lambda number, now: play.loop.adopt(play.declared) or report(now))
    with play:
        play.until(lambda: len(play.modes) == 1)
        sleep(0.2)
    assert len(play.modes) == 1


class Taking(Play):
    """A loop that takes in records about the policies that wait."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.waiting, self.complete, self.intakes = set(), True, 0
        self.loop._dependencies = replace(self.loop._dependencies, take_in=self.take_in)

    def take_in(self, now):
        self.intakes += 1
        taken = frozenset(self.waiting)
        self.waiting.clear()
        return IntakeReport(taken, self.complete)


def test_policies_of_records_stay_pending_until_a_pass_succeeds(files, monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    files.policy("a").policy("b")

    def answer(number, now):
        if number == 2:
            raise Unavailable("the API server restarts")
        return report(now)

    with Taking(files, answer=answer) as play:
        play.until(lambda: len(play.modes) == 1)
        play.waiting.add(A)
        play.loop.notify_records()
        play.until(lambda: len(play.modes) == 3)
    assert [it.subjects for it in play.modes[1:]] == [{A}, {A}]


def test_records_that_could_not_be_taken_in_are_tried_again(files, monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(module, "FILE_CHECK_INTERVAL", 0.01)
    files.policy("a").policy("b")
    play = Taking(files)
    play.complete = False  # before the first round
    with play:
        play.until(lambda: play.intakes >= 4)
        play.complete = True
        play.waiting.add(A)
        play.until(lambda: len(play.modes) == 2)
        before = play.intakes
        sleep(0.2)
        assert play.intakes == before
    assert play.modes[1].subjects == {A}


def test_a_loop_that_cannot_read_what_is_declared_is_not_healthy(files, monkeypatch):
    files.policy("a")
    advance = [0.0]
    with Play(files, clock=lambda: monotonic() + advance[0]) as play:
        play.until(lambda: len(play.modes) == 1)
        entered, leave = threading.Event(), threading.Event()

        def read():
            entered.set()
            assert leave.wait(PATIENCE)
            return play.declared

        monkeypatch.setattr(play, "read", read)
        play.loop.wake()
        assert entered.wait(PATIENCE)
        advance[0] = STALL_LIMIT + 60
        assert play.loop.health().is_stalled
        leave.set()
        monkeypatch.undo()


def test_an_observer_gets_what_the_keys_of_its_round_were_derived_from(files):
    class Reader(Observer):
        def __init__(self):
            super().__init__()
            self.declared = []

        def begin_round(self, waits, declared):
            self.declared.append([it.metadata.name for it in declared.policies])

    files.policy("a")
    observer = Reader()

    def answer(number, now):
        if number == 1:
            files.policy("b")
            play.loop.adopt(files.read())
        return report(now)

    play = Play(files, answer=answer, observers=[observer])
    with play:
        play.until(lambda: len(observer.ends) == 2)
    assert observer.declared == [["a"], ["a", "b"]]


def test_a_server_that_answers_again_ends_the_pause_after_a_failure(files, monkeypatch):
    files.policy("a")
    monkeypatch.setattr(module, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(module, "MAX_PAUSE", 3600.0)

    def answer(number, now):
        if number == 1:
            raise Unavailable("the API server cannot be reached")
        return report(now)

    with Play(files, answer=answer) as play:
        play.until(lambda: play.loop.health().failure)
        play.loop.notify_return()
        play.until(lambda: len(play.modes) == 2)
    assert not play.loop.health().failure


def test_a_server_that_answers_again_has_records_taken_in(files, monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(module, "MAX_PAUSE", 3600.0)
    attempts = []

    def take_in(now):
        attempts.append(now)
        return IntakeReport(is_complete=len(attempts) > 1)

    play = Play(files)
    play.loop._dependencies = replace(play.loop._dependencies, take_in=take_in)
    with play:
        play.until(lambda: play.loop.health().ended_rounds)
        play.loop.notify_return()
        play.until(lambda: len(attempts) == 2)

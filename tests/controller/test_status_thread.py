"""The thread that has statuses written between rounds, with a writer that is played."""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from fleet import Fleet

from fanout.controller import status_thread as module
from fanout.controller.loop_health import ScheduledPass
from fanout.controller.status_thread import StatusThread
from fanout.errors import Unavailable
from fanout.plan.written_objects import ObjectName, PolicyEvent, WrittenObject
from fanout.ports import WriterResult
from fanout.reconcile.pass_scope import PassMode, list_subjects

PATIENCE = 20.0  # seconds


class PlayedWriter:
    """Writer that notes what it is to write, in how much time it likes."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.written: list[ObjectName] = []
        self.failing: set[ObjectName] = set()
        self.turns = 0

    def start(self, notify: Callable[[], None]) -> None:
        """Watch nothing."""

    def stop(self) -> None:
        """Watch nothing."""

    def list_made(self) -> dict[tuple[str, str], str]:
        return {}

    def list_records(self) -> dict[str, ObjectName]:
        return {}

    def find_changed(self) -> list[ObjectName]:
        return []

    def write(
        self, objects: Iterable[WrittenObject], await_turn: Callable[[], None]
    ) -> WriterResult:
        number = 0
        for item in objects:
            sleep(self.seconds)
            await_turn()
            self.turns += 1
            self.written.append(item.name)
            number += 1
        return WriterResult(number, frozenset(self.failing), "no" if self.failing else "")

    def remove(self, names: Iterable[ObjectName]) -> WriterResult:
        return WriterResult(len(list(names)), frozenset(), "")

    def record(self, events: Iterable[PolicyEvent]) -> WriterResult:
        return WriterResult(len(list(events)), frozenset(), "")

    def names(self, kind: str) -> set[str]:
        return {it.name for it in self.written if it.kind == kind}


class Rounds:
    """Rounds of a program whose objects change before each of them."""

    def __init__(self, fleet: Fleet, program: Any, thread: StatusThread) -> None:
        self.fleet, self.program, self.thread = fleet, program, thread
        self.number = 0

    def play(self, *, changes: bool = True) -> None:
        self.number += 1
        if changes:
            self.fleet.site("ams", "dev", "edge", retention=f"{self.number}d")
        declared = self.program.read_declared()
        self.thread.begin_round([], declared)
        report = self.program.sweep(PassMode(publish=False))
        self.thread.end_round(ScheduledPass(report, list_subjects(declared)), None)


def await_true(condition: Callable[[], bool], problem: str) -> None:
    end = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < end, problem
        sleep(0.01)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet.build(tmp_path)


def test_all_statuses_are_written_although_rounds_follow_each_other(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "MAX_DELAY", 0.1)
    monkeypatch.setattr(module, "WRITE_PAUSE", 0.05)
    monkeypatch.setattr(module, "SETTLE_TIME", 0.05)
    writer = PlayedWriter(seconds=0.1)  # longer than a round, for each object
    thread = StatusThread(writer)
    with fleet.opened(long_running=True) as program:
        rounds = Rounds(fleet, program, thread)
        with thread.run():
            end = monotonic() + PATIENCE
            # That of ams is left to the next pass each time, because the pass itself changed it.
            while len(writer.names("PackageVariant")) < 2:
                assert monotonic() < end, f"{rounds.number} rounds, {len(writer.written)} writes"
                rounds.play()
    assert rounds.number > 5, "the rounds were too long to tell"


def test_variants_of_a_policy_that_is_gone_are_not_created_again(fleet: Fleet):
    writer = PlayedWriter()
    thread = StatusThread(writer)
    with fleet.opened(long_running=True) as program:
        rounds = Rounds(fleet, program, thread)
        rounds.play()
        rounds.play(changes=False)
        batch = thread._queue.take(())
        objects = batch.list_objects({}, thread._queue.has_result)
        first, kinds = next(objects), {it.name.kind for it in batch.list_objects({})}
        assert "PackageVariant" in kinds
        assert first.name.kind == "UpstreamPolicy"
        for path in (fleet.root / "policies").glob("*policy*.yaml"):
            path.unlink()
        thread._queue.update(None, program.read_declared())
        assert "PackageVariant" not in {it.name.kind for it in objects}


def test_writes_wait_for_a_round_for_a_moment_each(fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WRITE_PAUSE", 0.05)
    thread = StatusThread(PlayedWriter())
    with fleet.opened(long_running=True) as program:
        thread.begin_round([], program.read_declared())
    begin = monotonic()
    threads = [threading.Thread(target=thread.await_turn) for _ in range(8)]
    for it in threads:
        it.start()
    for it in threads:
        it.join()
    assert monotonic() - begin < 8 * 0.05, "one connection must not wait for the other"


def test_a_failed_status_is_written_again(fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "RETRY_PAUSE", 0.05)
    writer = PlayedWriter()
    thread = StatusThread(writer)
    with fleet.opened(long_running=True) as program:
        rounds = Rounds(fleet, program, thread)
        with thread.run():
            rounds.play()
            rounds.play(changes=False)
            await_true(lambda: len(writer.names("PackageVariant")) > 0, "nothing is written")
            await_true(lambda: thread.is_idle, "it does not come to rest")
            (name, *_) = sorted(it for it in writer.written if it.kind == "PackageVariant")
            writer.failing.add(name)
            before = writer.written.count(name)
            rounds.play()
            rounds.play(changes=False)
            await_true(lambda: writer.written.count(name) > before + 1, "it is not tried again")
            writer.failing.clear()
            await_true(lambda: thread.is_idle, "it does not come to rest")


def test_a_round_that_fails_at_first_shows_policies_alone(fleet: Fleet):
    writer = PlayedWriter()
    thread = StatusThread(writer)
    with fleet.opened(long_running=True) as program, thread.run():
        thread.begin_round([], program.read_declared())
        thread.end_round(None, Unavailable("no answer", reason="RemoteUnavailable"))
        await_true(lambda: bool(writer.names("UpstreamPolicy")), "the failure is not shown")
        await_true(lambda: thread.is_idle, "it does not come to rest")
    assert not writer.names("PackageVariant")


def test_an_obstacle_delays_every_status_until_it_ends(fleet: Fleet):
    writer, obstacle = PlayedWriter(), ["another installation writes"]
    thread = StatusThread(writer, find_obstacle=lambda: obstacle[0])
    with fleet.opened(long_running=True) as program:
        rounds = Rounds(fleet, program, thread)
        for _ in range(3):
            rounds.play(changes=False)
        assert thread.show() == "another installation writes"
        assert writer.written == []
        obstacle[0] = ""
        assert thread.show() == ""
    assert writer.names("UpstreamPolicy") == {"monitoring"}
    assert len(writer.names("PackageVariant")) == 3

"""Waiting for a turn on an event loop: order, deferral, and callers that give up."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta

import pytest

from fanout.forge.governor import CallDeferred, CallQueue, Governor
from fanout.plan.pull_requests.call_limits import CallKind, CallLimits

READ, WRITE, CREATION = CallKind.READ, CallKind.WRITE, CallKind.CREATION


class Calls:
    """Calls that hold their turn until they are ended, with a clock that the test sets."""

    def __init__(self, limits: CallLimits) -> None:
        self.now = 0.0
        self.governor = Governor(limits)
        self.queue = CallQueue(self.governor, "git.example.com", lambda: self.now)
        self.started: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    def begin(self, name: str, kind: CallKind = READ, policy: str = "p") -> asyncio.Task[None]:
        async def call() -> None:
            async with self.queue.turn(kind, policy):
                self.started.append(name)
                await self._ends.setdefault(name, asyncio.Event()).wait()

        return asyncio.create_task(call())

    def end(self, name: str) -> None:
        self._ends.setdefault(name, asyncio.Event()).set()


def run(test: Callable[[], Coroutine[object, object, None]]) -> None:
    asyncio.run(test())


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_turn_ends_with_its_block_and_the_next_begins():
    async def test() -> None:
        calls = Calls(CallLimits(in_flight=1))
        tasks = [calls.begin(name) for name in "abc"]
        await settle()
        assert calls.started == ["a"]
        calls.end("a")
        await settle()
        assert calls.started == ["a", "b"]
        calls.end("b")
        calls.end("c")
        await asyncio.gather(*tasks)
        assert calls.started == ["a", "b", "c"]

    run(test)


def test_a_caller_that_gives_up_while_it_waits_leaves_the_queue():
    async def test() -> None:
        calls = Calls(CallLimits(in_flight=1))
        first, second, third = (calls.begin(name) for name in "abc")
        await settle()
        second.cancel()
        calls.end("a")
        calls.end("c")
        await asyncio.gather(first, third)
        assert calls.started == ["a", "c"]
        with pytest.raises(asyncio.CancelledError):
            await second

    run(test)


def test_a_caller_that_gives_up_in_the_moment_of_its_turn_takes_no_place():
    async def test() -> None:
        calls = Calls(CallLimits(in_flight=1))
        first, second, third = (calls.begin(name) for name in "abc")
        await settle()
        calls.end("a")
        second.cancel()  # before the loop runs the end of the first one
        calls.end("c")
        await asyncio.wait_for(asyncio.gather(first, third), 10)
        with pytest.raises(asyncio.CancelledError):
            await second
        assert calls.governor.admit(0.0) == []

    run(test)


def test_an_error_in_the_block_frees_the_place():
    async def test() -> None:
        calls = Calls(CallLimits(in_flight=1))
        with pytest.raises(ValueError):
            async with calls.queue.turn(READ, "p"):
                raise ValueError
        calls.end("a")
        await asyncio.wait_for(calls.begin("a"), 10)

    run(test)


def test_a_deferred_call_says_when_it_is_possible():
    async def test() -> None:
        calls = Calls(CallLimits(creations_per_hour=1))
        calls.end("a")
        await calls.begin("a", CREATION)
        calls.now, before = 600.5, datetime.now(UTC)
        with pytest.raises(CallDeferred) as failure:
            await calls.begin("b", CREATION)
        until = failure.value.until
        assert before + timedelta(seconds=2999) <= until
        assert until <= datetime.now(UTC) + timedelta(seconds=3001)
        assert str(failure.value) == (
            "the limit of new pull requests for git.example.com is reached; it is possible at "
            + until.strftime("%Y-%m-%dT%H:%M:%SZ")
        )

    run(test)


def test_a_host_that_asks_for_a_pause_defers_those_who_wait():
    async def test() -> None:
        calls = Calls(CallLimits(in_flight=1))
        first, second = calls.begin("a"), calls.begin("b")
        await settle()
        calls.governor.hold_until(1000.0)
        calls.end("a")
        await first
        with pytest.raises(CallDeferred):
            await second

    run(test)


def test_a_call_that_waits_for_time_alone_starts_by_itself():
    async def test() -> None:
        calls = Calls(CallLimits(write_spacing=0.05))
        loop = asyncio.get_running_loop()
        calls.queue._clock = loop.time
        for name in "ab":
            calls.end(name)
        tasks = [calls.begin(name, WRITE) for name in "ab"]
        await asyncio.wait_for(asyncio.gather(*tasks), 10)
        assert calls.started == ["a", "b"]

    run(test)

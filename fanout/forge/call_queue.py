"""Waiting of calls for the turn that the governor gives them, on one event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from fanout.errors import RateLimited
from fanout.forge.governor import Governor
from fanout.plan.pull_requests.call_estimate import CallKind


class CallDeferred(RateLimited):
    """The governor deferred a call; asking it again at once would only repeat that."""


class CallQueue:
    """Calls that wait for their turn. Used by the tasks of one event loop."""

    def __init__(self, governor: Governor, host: str, clock: Callable[[], float]) -> None:
        """Create a queue; `host` is what messages name."""
        self._governor = governor
        self._host = host
        self._clock = clock
        self._turns: dict[int, asyncio.Future[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, kind: CallKind, policy: str) -> AsyncIterator[None]:
        """Wait until a call may be made, and hold its place meanwhile. Raises CallDeferred."""
        call = self._governor.enqueue(kind, policy)
        future = self._turns[call.ticket] = asyncio.get_running_loop().create_future()
        try:
            self._dispatch()
            await future
            yield
        finally:
            # Also for a caller that was cancelled while it waited.
            del self._turns[call.ticket]
            self._governor.remove(call)
            self._dispatch()

    def _dispatch(self) -> None:
        now = self._clock()
        for entry in self._governor.defer(now):
            calls = "new pull requests" if entry.call.kind is CallKind.CREATION else "calls"
            deferral = CallDeferred(
                f"the limit of {calls} for {self._host} is reached",
                until=instant_after(entry.instant - now),
            )
            self._settle(entry.call.ticket, deferral)
        for call in self._governor.admit(now):
            self._settle(call.ticket)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        instant = self._governor.next_change(now)
        if instant is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(instant - now, self._dispatch)

    def _settle(self, ticket: int, error: CallDeferred | None = None) -> None:
        future = self._turns[ticket]
        if future.cancelled():  # its task has not run since
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


def instant_after(seconds: float) -> datetime:
    """Return the instant in so many seconds, in UTC and rounded up to a whole second."""
    instant = datetime.now(UTC) + timedelta(seconds=seconds)
    return instant.replace(microsecond=0) + timedelta(seconds=instant.microsecond > 0)

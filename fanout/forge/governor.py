"""Pacing of the calls of one account of a host.

The decisions have no clock: each method takes the instant, in seconds of any clock that does not
go back. `CallQueue` waits in between, on the event loop of the calls (`forge.forge_http`).

A limit counts over a sliding window: of `calls_per_minute` calls, no period of 60 s has more. A
token bucket would allow twice as many in one period, which hosts answer with longer blocks.
"""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from math import inf

from fanout.errors import RateLimited
from fanout.plan.pull_requests.call_limits import HOUR, MINUTE, CallKind, CallLimits
from fanout.values import Value

_SAME_RESET = 2.0  # seconds: ends of one period, by clocks of whole seconds


class QueuedCall(Value):
    """Call that waits for its turn; tickets are in order of arrival."""

    ticket: int
    kind: CallKind
    policy: str
    pool: str = ""  # of the host, that the call is counted in


class DeferredCall(Value):
    """Call that is not made because it would wait for too long, and when it could be."""

    call: QueuedCall
    instant: float


class SlidingWindow:
    """Starts of calls within one period, which may cost `limit` together."""

    def __init__(self, limit: int, period: float) -> None:
        """Create an empty window; `period` in seconds."""
        self._limit = limit
        self._period = period
        self._used = 0
        self._starts: deque[tuple[float, str, int]] = deque()
        self.calls_by_policy: Counter[str] = Counter()

    def free(self, now: float) -> int:
        """Return how many calls of cost 1 may start now."""
        self._forget_before(now)
        return max(self._limit - self._used, 0)

    def earliest(self, now: float, position: int = 0, cost: int = 1) -> float:
        """Return the instant at which a call may start if `position` others start before it."""
        self._forget_before(now)
        excess = self._used + position + cost - self._limit
        if excess <= 0:
            return now
        for start, _, freed in self._starts:
            excess -= freed
            if excess <= 0:
                return start + self._period
        return now + self._period

    def record(self, policy: str, now: float, cost: int = 1) -> None:
        """Count a call that starts now."""
        self._starts.append((now, policy, cost))
        self._used += cost
        self.calls_by_policy[policy] += 1

    def _forget_before(self, now: float) -> None:
        while self._starts and self._starts[0][0] + self._period <= now:
            _, policy, cost = self._starts.popleft()
            self._used -= cost
            self.calls_by_policy[policy] -= 1
            if not self.calls_by_policy[policy]:
                del self.calls_by_policy[policy]


class PoolQuota:
    """Calls of one pool that a host still takes until an instant, as its answers say."""

    def __init__(self) -> None:
        """Know no limit."""
        self._remaining = inf
        self._reset = self._ends = -inf

    def observe(self, remaining: int, reset: float, ends: float) -> None:
        """Take over what an answer says. Answers arrive in any order, and late.

        `reset` is the end of the period by the host's clock, which tells periods apart; `ends` is
        the same by the caller's.
        """
        if reset > self._reset + _SAME_RESET:
            self._remaining, self._reset, self._ends = remaining, reset, ends
        elif reset >= self._reset - _SAME_RESET:
            self._remaining = min(self._remaining, remaining)
            self._ends = min(self._ends, ends)  # that of the answer which was the least late

    def earliest(self, now: float, in_flight: int) -> float:
        """Return the instant at which a call may start beside `in_flight` calls of the pool."""
        # Those have no answer yet, so what they cost is not in any.
        return now if now >= self._ends or self._remaining > in_flight else self._ends


class RefusalBackoff:
    """Waits after refusals for which a host names no end: a minute, and twice as long each time."""

    def __init__(self) -> None:
        """Know no refusal."""
        self._refusals = 0
        self._concerns_reads = False

    def record_refusal(self, kind: CallKind) -> float:
        """Return for how many seconds no call is made."""
        self._refusals += 1
        self._concerns_reads = kind is CallKind.READ
        return min(MINUTE * 2.0 ** min(self._refusals - 1, 10), HOUR)

    def record_success(self, kind: CallKind) -> None:
        """Forget the refusals. A read shows nothing about writes that are refused."""
        if self._concerns_reads or kind is not CallKind.READ:
            self._refusals = 0


class Governor:
    """Queue of the calls to one host: which may start, which wait, and which are deferred.

    Of calls that may start, the one goes first whose policy made the fewest in the last
    minute; so a policy with one request does not wait behind a thousand of another.
    """

    def __init__(self, limits: CallLimits) -> None:
        """Create a governor that has seen no calls."""
        self._limits = limits
        self._minute = SlidingWindow(limits.calls_per_minute, MINUTE)
        self._creations = SlidingWindow(limits.creations_per_hour, HOUR)
        self._points = _open_window(limits.points_per_minute, MINUTE)
        self._content = [
            window
            for limit, period in (
                (limits.content_per_minute, MINUTE),
                (limits.content_per_hour, HOUR),
            )
            if (window := _open_window(limit, period)) is not None
        ]
        self._queue: dict[int, QueuedCall] = {}
        self._in_flight: dict[int, QueuedCall] = {}
        self._next_ticket = 0
        self._next_write = -inf
        self._held_until = -inf
        self._quotas: defaultdict[str, PoolQuota] = defaultdict(PoolQuota)
        self._shares: dict[str, int] = {}  # creations left by policy

    def enqueue(self, kind: CallKind, policy: str, pool: str = "") -> QueuedCall:
        """Add a call to the queue."""
        call = QueuedCall(self._next_ticket, kind, policy, pool)
        self._next_ticket += 1
        self._queue[call.ticket] = call
        return call

    def remove(self, call: QueuedCall) -> None:
        """Forget a call that has ended, was deferred, or that nobody waits for any more."""
        self._queue.pop(call.ticket, None)
        self._in_flight.pop(call.ticket, None)

    def hold_until(self, instant: float) -> None:
        """Start no call before this instant: the host asks for that (Retry-After)."""
        self._held_until = max(self._held_until, instant)

    def observe_quota(self, pool: str, remaining: int, reset: float, ends: float) -> None:
        """Take over how many calls of a pool the host takes, as `PoolQuota` does."""
        self._quotas[pool].observe(remaining, reset, ends)

    def remaining_calls(self, now: float) -> Mapping[str, int]:
        """Return how many calls, creations and other content the limits allow now."""
        remaining = {"calls": self._minute.free(now), "creations": self._creations.free(now)}
        if self._content:
            remaining["content"] = min(it.free(now) for it in self._content)
        return remaining

    def share_creations(self, demand: Mapping[str, int], now: float) -> None:
        """Divide the creations that the host still takes among the policies that want some.

        `demand`: number of creations by policy, for one pass; it replaces the previous one.
        A policy that is not in it gets none, unless it is empty: then nothing is divided.
        """
        free = self._creations.free(now)
        self._shares = dict(share_fairly(free, demand, self._creations.calls_by_policy))

    def admit(self, now: float) -> list[QueuedCall]:
        """Return the calls that start now, in order, and count them as started."""
        admitted = []
        while len(self._in_flight) < self._limits.in_flight:
            ready = [call for call in self._queue.values() if self._earliest(call, now) <= now]
            if not ready:
                break
            call = min(ready, key=lambda it: (self._minute.calls_by_policy[it.policy], it.ticket))
            del self._queue[call.ticket]
            self._in_flight[call.ticket] = call
            self._minute.record(call.policy, now)
            if self._points is not None:
                self._points.record(call.policy, now, call.kind.points)
            if call.kind is not CallKind.READ:
                self._next_write = now + self._limits.write_spacing
            if call.kind.is_content:
                for window in self._content:
                    window.record(call.policy, now)
            if call.kind is CallKind.CREATION:
                self._creations.record(call.policy, now)
                if self._shares:
                    self._shares[call.policy] -= 1
            admitted.append(call)
        return admitted

    def defer(self, now: float) -> list[DeferredCall]:
        """Return the calls that would wait beyond the limit of patience, and remove them."""
        deferred = [
            DeferredCall(call, instant)
            for call in self._queue.values()
            if (instant := self._earliest(call, now)) > now + self._limits.patience
        ]
        for entry in deferred:
            del self._queue[entry.call.ticket]
        return deferred

    def next_change(self, now: float) -> float | None:
        """Return the instant at which time alone lets a call start; None if none waits for it."""
        instants = [self._earliest(call, now) for call in self._queue.values()]
        return min((instant for instant in instants if instant > now), default=None)

    def _earliest(self, call: QueuedCall, now: float) -> float:
        """Return the instant from which the limits allow a call, others in the queue aside."""
        in_flight = sum(it.pool == call.pool for it in self._in_flight.values())
        instants = [now, self._held_until, self._minute.earliest(now)]
        if call.pool in self._quotas:
            instants.append(self._quotas[call.pool].earliest(now, in_flight))
        if self._points is not None:
            instants.append(self._points.earliest(now, cost=call.kind.points))
        if call.kind is not CallKind.READ:
            instants.append(self._next_write)
        if call.kind.is_content:
            instants += (it.earliest(now) for it in self._content)
        if call.kind is CallKind.CREATION:
            # What is left may belong to other policies; the next one is free after all of theirs.
            has_share = not self._shares or self._shares.get(call.policy)
            position = 0 if has_share else self._creations.free(now)
            instants.append(self._creations.earliest(now, position))
        return max(instants)


def _open_window(limit: int | None, period: float) -> SlidingWindow | None:
    return None if limit is None else SlidingWindow(limit, period)


def share_fairly(
    budget: int, demand: Mapping[str, int], calls_by_policy: Mapping[str, int]
) -> Mapping[str, int]:
    """Divide a budget so that no policy gets less than another unless it wants less.

    (max-min fairness.) What cannot be divided goes to those with the fewest calls so far,
    then by name.
    """
    shares = dict.fromkeys(demand, 0)
    while open_policies := [policy for policy in demand if shares[policy] < demand[policy]]:
        each, rest = divmod(budget, len(open_policies))
        if each == 0:
            open_policies.sort(key=lambda it: (calls_by_policy.get(it, 0), it))
            for policy in open_policies[:rest]:
                shares[policy] += 1
            break
        for policy in open_policies:
            granted = min(each, demand[policy] - shares[policy])
            shares[policy] += granted
            budget -= granted
    return shares


class CircuitBreaker:
    """Memory of failures in a row of one host; after a few, calls fail without being made.

    Without it a pass over a thousand repositories would wait for a thousand timeouts of a
    host that is down. One call without an answer is enough: the next would wait for as long.
    """

    def __init__(
        self, failures: int = 3, seconds: float = 30.0, longest_seconds: float = 300.0
    ) -> None:
        """Create a closed breaker, which opens for `seconds` after `failures` in a row.

        After a call without an answer it opens at once, and for twice as long with each in a row,
        up to `longest_seconds`.
        """
        self._limit = failures
        self._seconds = seconds
        self._longest_seconds = longest_seconds
        self._failures = self._silences = 0
        self._open_until = -inf

    def is_open(self, now: float) -> bool:
        """Return whether calls fail without being made."""
        return now < self._open_until

    def record_failure(self, now: float) -> None:
        """Count a call without a usable answer."""
        self._failures += 1
        if self._failures >= self._limit:
            self._open_until = now + self._seconds

    def record_silence(self, now: float) -> None:
        """Count a call without an answer in time."""
        pause = min(self._seconds * 2.0 ** min(self._silences, 30), self._longest_seconds)
        self._silences += 1
        self._open_until = max(self._open_until, now + pause)

    def record_success(self) -> None:
        """Forget the failures: the host answered."""
        self._failures = self._silences = 0
        self._open_until = -inf


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
    async def turn(self, kind: CallKind, policy: str, pool: str = "") -> AsyncIterator[None]:
        """Wait until a call may be made, and hold its place meanwhile. Raises CallDeferred."""
        call = self._governor.enqueue(kind, policy, pool)
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

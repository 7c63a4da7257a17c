"""When a variant can change by itself: an instant before which nothing about it does, or none.

Where a person or a machine has to do something first there is none, whatever else ends meanwhile.
(Design §6, "Order and change".)
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from fanout.api.reasons import Reason
from fanout.gates.after import Gate
from fanout.gates.answer import CheckView, State
from fanout.gates.census import Member
from fanout.gates.facts import Hold
from fanout.gates.instants import soonest
from fanout.gates.rules import Verdict

TIME_ALONE = "time alone"

_NEXT_PASS = frozenset({Reason.NO_DRAFT, Reason.SWEEP_AWAITED})
"""What the program does by itself in its next pass: it adds nothing to what is waited for."""


class Landing(NamedTuple):
    """When enough of those in flight are through, and who can see to it."""

    who: str
    until: datetime | None = None


class Flight:
    """Those in flight, in the order in which time alone ends it for them."""

    def __init__(self, members: Iterable[Member]) -> None:
        timed = sorted((at, it.facts.name, it) for it in members if (at := _ends(it)) is not None)
        self._ends = [at for at, _, _ in timed]
        ready = (number for number, (_, _, it) in enumerate(timed) if not _runs_out(it))
        self._alone = next(ready, len(timed))  # how many of the first have nothing to be answered

    def landing(self, needed: int, otherwise: str) -> Landing:
        """When so many of them are ready or have failed, if time alone does it.

        Its `who` is `otherwise` where somebody still answers checks; they may do it sooner.
        """
        if needed > len(self._ends):
            return Landing(otherwise)
        who = TIME_ALONE if needed <= self._alone else otherwise
        return Landing(who, self._ends[needed - 1])


def landing(members: Collection[Member], otherwise: str) -> Landing:
    """When all of these are ready or have failed, if time alone does it."""
    return Flight(members).landing(len(members), otherwise)


def _ends(member: Member) -> datetime | None:
    """When its flight is over by itself. What is on its way to something else goes on then."""
    if member.state is not State.VERIFYING or member.on_its_way:
        return None
    if member.fails_at is None or member.ready_at is None:
        return member.fails_at or member.ready_at
    return min(member.fails_at, member.ready_at)


def _runs_out(member: Member) -> bool:
    """Is all that its checks need said already, so that it will be ready by time alone?"""
    return member.ready_at is not None and member.fails_at is None


def of_published(member: Member, holds: Iterable[Hold], now: datetime) -> datetime | None:
    """Of what is published: the first of its timers, for each of them changes something.

    What has passed stands: the end of its freshness is none of them.
    """
    asked = (it.until for it in member.checks if it.verdict is not Verdict.PASSED)
    return soonest([member.wake, *asked, *(it.until for it in holds)], now)


def of_waiting(
    holds: Sequence[Hold], checks: Sequence[CheckView], gate: Gate | None, now: datetime
) -> datetime | None:
    """Of what waits: when all that holds it is over, if time alone ends all of it.

    A check that waits for its answer is asked, or times out, at instants of its own. Of the gate
    not every hold has to end: `gate` knows when enough of them have.
    """
    after = gate.holds if gate is not None else ()
    if not (holds or checks or after):
        return None  # so it is for most
    asked = [it for it in checks if it.verdict is not Verdict.PASSED]
    timers = (it.until for it in asked if it.reason != Reason.APPROVAL_MISSING)
    gated = {id(hold) for hold in after}
    ends = [it.until for it in holds if id(it) not in gated and it.reason not in _NEXT_PASS]
    if gate is not None and after:
        ends.append(gate.next)
    over = all_over(ends) if not asked else None
    return soonest([over, *timers], now)


def all_over(ends: Iterable[datetime | None]) -> datetime | None:
    """The last of these instants; None where one of them is not known, or there is none."""
    found = list(ends)
    known = [end for end in found if end is not None]
    return max(known) if known and len(known) == len(found) else None

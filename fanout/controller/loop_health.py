"""Health of the loop, and the observer of its rounds, for probes and metrics."""

from collections.abc import Sequence
from typing import Protocol

from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassSubject
from fanout.values import Value

# A restart helps only where a pass hangs. The longest that makes progress clones hundreds of
# repositories, and one that fails is tried again after five minutes at most.
STALL_LIMIT = 1800.0  # seconds


class LoopHealth(Value):
    """State of the loop at one instant; seconds are by the monotonic clock."""

    waiting: int = 0  # triggers
    # While triggers wait, or what is declared is being read: since the first trigger came, the
    # reading began or a pass ended, whichever was last.
    seconds_without_pass: float = 0.0
    ended_rounds: int = 0  # that did not fail as a whole, with or without a pass
    failure: str = ""  # error of the last round; "": it succeeded

    @property
    def is_stalled(self) -> bool:
        """True if triggers wait and no pass has ended for too long."""
        return self.seconds_without_pass > STALL_LIMIT

    @property
    def is_ready(self) -> bool:
        """True if a round has ended, and the last one did not fail.

        A pass that did not fail reached the records; without a policy there is none to make.
        """
        return self.ended_rounds > 0 and not self.failure


class ScheduledPass(Value):
    """Pass that a round made, and all policies and variants that were declared then."""

    report: PassReport
    declared: frozenset[PassSubject]


class LoopObserver(Protocol):
    """Observer of the loop, called on the loop's thread. What it raises ends nothing."""

    def begin_round(self, waits: Sequence[float], declared: DeclaredObjects) -> None:  # noqa: ARG002 of observers
        """Take note of a round that begins.

        `waits` has the seconds since each of its keys was queued, without keys that an earlier
        round failed to serve. `declared`: what its keys were derived from.
        """
        return

    def end_round(self, made_pass: ScheduledPass | None, failure: FanoutError | None) -> None:
        """Take note of a round that ended: with its pass, its error, or nothing to evaluate."""

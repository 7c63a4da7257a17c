"""What authors and administrators want of a policy's stages, as the evaluator knows it.

Durations are timedeltas; a share is a Fraction and a number an int, as `fanout.api.amounts` reads.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from fractions import Fraction
from typing import Any

from fanout.values import frozen

HAND_WRITTEN = ""  # the one stage of a PackageVariant that belongs to no policy
Amount = int | Fraction


class Verdict(StrEnum):
    """Three values; only *failed* withdraws what has passed."""

    PASSED = "passed"
    FAILED = "failed"
    PENDING = "pending"


class Require(StrEnum):
    """How many of the stages before must have passed."""

    ALL = "All"
    ANY = "Any"
    MAJORITY = "Majority"


@frozen
class After:
    """The stages before, how many of them must have passed, and for how long each is to soak."""

    stages: tuple[str, ...]
    require: Require = Require.ALL
    soak: timedelta = timedelta(0)
    at_least: Amount | None = None  # instead of `require`


class Way(StrEnum):
    """How a check is answered; the words of a policy's file."""

    REPORT = "report"
    OBJECT = "object"
    PROMETHEUS = "prometheus"
    HTTP = "http"
    COMMIT_STATUS = "commitStatus"


@frozen
class CheckRule:
    """A check that people report (`report`), or that a machine is asked about."""

    name: str
    way: Way = Way.REPORT
    timeout: timedelta | None = None  # so long without an answer is a failure
    fresh_for: timedelta | None = None  # for how long an answer counts
    settle: timedelta | None = None  # how long after publication it is first asked
    names_revision: bool = False  # a machine's answer says what it has seen


@frozen
class ApprovalRule:
    """`requires: approval`: so many distinct people of these."""

    name: str
    at_least: int
    subjects: frozenset[str]  # resolved from the groups by the PromotionPolicies; people as `by`
    groups: tuple[str, ...] = ()  # as written, for messages
    expires: timedelta | None = None
    timeout: timedelta | None = None  # so long after its release the draft has failed
    separation: bool = False  # nobody approves what they have changed themselves


class Strategy(StrEnum):
    """How the number of variants in flight grows."""

    ALL_AT_ONCE = "AllAtOnce"
    LINEAR = "Linear"
    EXPONENTIAL = "Exponential"


@frozen
class RolloutRule:
    """How fast a revision goes through the variants of a stage."""

    strategy: Strategy = Strategy.ALL_AT_ONCE
    step: int = 1
    factor: Fraction = Fraction(2)
    max_in_flight: Amount | None = None
    max_failures: Amount = 0
    min_ready: timedelta = timedelta(0)
    progress_deadline: timedelta | None = None


AT_ONCE = RolloutRule()

Variables = Mapping[str, Any]


@frozen
class Condition:
    """One entry of `propagateWhen`: its text, and a pure callable over a row of variables.

    The callable yields what the expression yields, a `selection.model.Broken` for an error, or
    UNKNOWN where nobody has asked the sandbox yet.
    """

    text: str
    ask: Callable[[Variables], object]


class Unknown:
    """The one value UNKNOWN is of this type."""


UNKNOWN = Unknown()


@frozen
class StageRule:
    """One stage of a policy as its author and the administrator want it."""

    name: str
    after: After | None = None
    verification: tuple[CheckRule, ...] = ()
    requires: tuple[CheckRule | ApprovalRule, ...] = ()
    rollout: RolloutRule = AT_ONCE
    propagate_when: tuple[Condition, ...] = ()
    control_flow: bool = False  # it has no targets and only joins others
    pin: str = ""  # the revision that it goes back to and stays at
    automatic: bool = False  # an administrator switched automation on
    opposed: tuple[str, ...] = ()  # PromotionPolicies that do not, where others do
    suspended: bool = False  # by spec

    @property
    def approvals(self) -> tuple[ApprovalRule, ...]:
        """What people are asked before publication."""
        return tuple(rule for rule in self.requires if isinstance(rule, ApprovalRule))

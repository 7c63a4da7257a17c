"""The evaluator's answer: what may happen now, why no more, and when that can change."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from fanout.gates.facts import Answer, Hold, StageHistory
from fanout.gates.rules import Variables, Verdict
from fanout.values import frozen


class State(StrEnum):
    """Where a variant is on its way; exactly one holds."""

    DRAFTED = "Drafted"  # has or is to get a draft, not released
    RELEASED = "Released"  # may change, something it `requires` is missing
    PROPOSED = "Proposed"  # may be merged now
    VERIFYING = "Verifying"  # published at the candidate, not all checks answered
    READY = "Ready"
    FAILED = "Failed"
    SUSPENDED = "Suspended"
    HELD = "Held"
    SKIPPED = "Skipped"  # a person took it out of the rollout of the candidate


@frozen
class CheckView:
    """How one check of one variant or stage stands."""

    name: str
    verdict: Verdict
    sentence: str
    at: datetime | None = None
    reason: str = ""  # CamelCase; "" when it has passed
    who: str = ""  # who can answer it
    until: datetime | None = None  # when it can change by itself
    last: datetime | None = None  # when it was last said; `at` is since when it is said
    passes: datetime | None = None  # when it will have passed if nobody says anything more


@frozen
class VariantDecision:
    """What may happen to one variant now, and why no more."""

    name: str
    stage: str
    candidate: str
    state: State
    release: bool = False  # it is released by this pass: a grant is to be recorded
    publish: bool = False  # its standing draft may be merged now
    checks: tuple[CheckView, ...] = ()
    holds: tuple[Hold, ...] = ()
    answers: tuple[Answer, ...] = ()  # what is to be on record of its machine checks from now on
    next: datetime | None = None  # when something about it changes by itself


@frozen
class Aggregates:
    """A stage's variants in numbers, as `propagateWhen` sees them when the pass begins."""

    total: int = 0  # that count for the candidate
    updated: int = 0  # released for the candidate, or published at it
    ready: int = 0  # at the candidate, with the inputs that it is to have
    in_flight: int = 0  # released and neither ready nor failed, whatever the revision
    failed: int = 0  # at the candidate

    def variables(self) -> Mapping[str, int]:
        """As expressions see them, under `stage`."""
        return {
            "total": self.total,
            "updated": self.updated,
            "ready": self.ready,
            "inFlight": self.in_flight,
            "failed": self.failed,
        }


@frozen
class OtherRevision:
    """A revision that a stage might be expected to take instead of its candidate, and why not."""

    revision: str
    holds: tuple[Hold, ...]
    newer: bool = True  # it waits behind the candidate; else it can pass no more


@frozen
class StageDecision:
    """One stage: its candidate, how each revision stands in it, and what it waits for."""

    name: str
    candidate: str  # "" when the policy's rule allows no revision
    verdict: Verdict  # of the candidate in this stage
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)  # by revision
    gate: Verdict = Verdict.PASSED  # `after` (soak included) for the candidate
    holds: tuple[Hold, ...] = ()
    counts: Mapping[State, int] = field(default_factory=dict)
    queued: tuple[str, ...] = ()  # newer revisions that wait behind the candidate
    others: tuple[OtherRevision, ...] = ()  # the newest of those, and the last that was dropped
    eligible: tuple[str, ...] = ()  # what can be or become the candidate as things stand
    released: tuple[str, ...] = ()  # the variants that this pass releases, in their order
    halted: bool = False  # by too many failures
    aggregates: Aggregates = Aggregates()
    budget: int | None = None  # how many may be in flight; None: as many as there are
    next: datetime | None = None  # when time alone changes something


@frozen
class Wanted:
    """A question of `propagateWhen` that nobody has answered yet."""

    text: str
    variables: Variables


@frozen
class PolicyDecision:
    """The evaluator's whole answer; `history` is what the status must remember from now on."""

    stages: Mapping[str, StageDecision]
    variants: Mapping[str, VariantDecision]
    history: Mapping[tuple[str, str], StageHistory]
    holds: tuple[Hold, ...] = ()
    next: datetime | None = None  # when to look again: the first instant that any timer knows
    unanswered: tuple[Wanted, ...] = ()  # while there are any, nothing of this is to be done

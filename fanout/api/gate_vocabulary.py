"""Closed vocabularies of stages, checks and decisions, shared by the objects and the gates.

This module imports no model: the policy evaluator reads these words too, and must not load
the validation of documents for them.
"""

from enum import StrEnum


class ConflictWinner(StrEnum):
    """Side whose value resolves a merge conflict."""

    UPSTREAM = "upstream"
    LOCAL = "local"


class Require(StrEnum):
    """Number of listed stages that must have passed."""

    ALL = "All"
    ANY = "Any"
    MAJORITY = "Majority"


class RolloutStrategy(StrEnum):
    """Growth of the number of variants in flight."""

    ALL_AT_ONCE = "AllAtOnce"
    LINEAR = "Linear"
    EXPONENTIAL = "Exponential"


class Verdict(StrEnum):
    """Result of a check, a gate or a stage; only FAILED withdraws what has passed."""

    PASSED = "passed"
    FAILED = "failed"
    PENDING = "pending"


class VariantState(StrEnum):
    """State of a variant between draft and ready; exactly one applies."""

    DRAFTED = "Drafted"  # has or is to get a draft, not released
    RELEASED = "Released"  # may be drafted, but a result of `requires` is missing
    PROPOSED = "Proposed"  # may be merged now
    VERIFYING = "Verifying"  # published at the candidate, with checks pending
    READY = "Ready"
    FAILED = "Failed"
    SUSPENDED = "Suspended"
    HELD = "Held"
    SKIPPED = "Skipped"  # skipped for the candidate by a person


RELEASED_STATES = (VariantState.RELEASED, VariantState.PROPOSED)


class StageState(StrEnum):
    """State of a stage in one word; of those that apply, the first."""

    HALTED = "Halted"  # by too many failures
    FAILED = "Failed"  # at the candidate
    SUSPENDED = "Suspended"  # itself or its policy
    PASSED = "Passed"
    PENDING = "Pending"


class CheckMethod(StrEnum):
    """Method by which a check is answered; values are the words of the policy file."""

    REPORT = "report"
    OBJECT = "object"
    PROMETHEUS = "prometheus"
    HTTP = "http"
    COMMIT_STATUS = "commitStatus"


class Action(StrEnum):
    """Action of a decision."""

    PUBLISH = "Publish"
    ROLLBACK = "Rollback"
    SKIP = "Skip"
    RETRY = "Retry"
    SUSPEND = "Suspend"
    RESUME = "Resume"
    CONFIRM_REMOVAL = "ConfirmRemoval"
    RESOLVE = "Resolve"
    WITHDRAW = "Withdraw"
    ACCEPT_RECORDS = "AcceptRecords"


GATE_ACTIONS = (
    Action.PUBLISH,
    Action.ROLLBACK,
    Action.SKIP,
    Action.RETRY,
    Action.SUSPEND,
    Action.RESUME,
)
"""Actions about which the policy evaluator decides; the others concern records and removal."""


class OverridableGate(StrEnum):
    """Gate that a Publish decision may override; no other gate can be."""

    AFTER = "after"
    SOAK = "soak"
    REQUIRES = "requires"
    VERIFICATION = "verification"
    WINDOW = "window"
    BUDGET = "budget"

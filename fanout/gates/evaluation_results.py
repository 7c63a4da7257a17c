"""Results of a gate evaluation: what may happen now and what blocks the rest."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from fanout.api.gate_vocabulary import Verdict
from fanout.api.results import Hold, StageResult
from fanout.gates.gate_facts import CheckAnswer, RevisionHistory
from fanout.pending_inputs import ExpressionRequest
from fanout.values import Value


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


class StageState(StrEnum):
    """State of a stage in one word; of those that apply, the first."""

    HALTED = "Halted"  # by too many failures
    FAILED = "Failed"  # at the candidate
    SUSPENDED = "Suspended"  # itself or its policy
    PASSED = "Passed"
    PENDING = "Pending"


class CheckResult(Value):
    """Result of one check for one variant or stage."""

    name: str
    verdict: Verdict
    message: str
    at: datetime | None = None  # since when the verdict applies
    reason: str = ""  # CamelCase; "" when it has passed
    who: str = ""  # who can report the result
    until: datetime | None = None  # when it can change without an event
    latest: datetime | None = None  # of the last equal report; `at` is of the first
    passes_at: datetime | None = None  # when it will have passed if nothing more is reported
    approvers: tuple[str, ...] = ()  # whose approvals count, by the names that they gave them under
    approvals: tuple[str, ...] = ()  # names of the approvals that count


class VariantEvaluation(Value):
    """Evaluation of one variant: its state, what this pass does to it, what blocks it."""

    name: str
    stage: str
    candidate: str
    state: VariantState
    release: bool = False  # this pass releases it and records the grant
    released_by: tuple[str, ...] = ()  # `Kind/name` of the objects that let it be released
    # Names of active decisions about newer revisions, which a publication does not use up.
    waiting: tuple[str, ...] = ()
    publish: bool = False  # its open draft may be merged now
    # The gates let its draft be merged, whether or not the draft itself can be yet.
    let_through: bool = False
    checks: tuple[CheckResult, ...] = ()
    holds: tuple[Hold, ...] = ()
    # Answers of its machine checks to keep on record; what is not listed is dropped from it.
    answers: tuple[CheckAnswer, ...] = ()
    next: datetime | None = None  # next change without an event


def find_stage_state(verdict: Verdict, *, halted: bool, suspended: bool) -> StageState:
    """Return the state of a stage; `suspended`: itself or its policy."""
    applies = {
        StageState.HALTED: halted,
        StageState.FAILED: verdict is Verdict.FAILED,
        StageState.SUSPENDED: suspended,
        StageState.PASSED: verdict is Verdict.PASSED,
    }
    return next((state for state, is_so in applies.items() if is_so), StageState.PENDING)


class PolicyEvaluation(Value):
    """Evaluation of one policy; `history` is what the status must remember from now on."""

    stages: Mapping[str, StageResult]
    variants: Mapping[str, VariantEvaluation]
    history: Mapping[tuple[str, str], RevisionHistory]
    holds: tuple[Hold, ...] = ()
    next: datetime | None = None  # first instant at which the policy must be evaluated again
    # While there are any, the evaluation assumes answers and must not be carried out.
    unanswered: tuple[ExpressionRequest, ...] = ()

"""What kind of thing a reason of the gates is: a short closed list, to be counted and compared.

`fanout simulate` says the class of each reason, and scenarios expect classes: sentences may be
worded better one day, and a class stays what it is.
"""

from collections.abc import Mapping
from enum import StrEnum

from fanout.api.reasons import Reason


class ReasonClass(StrEnum):
    """The classes; `meaning` explains each in a line."""

    meaning: str

    def __new__(cls, word: str, meaning: str) -> "ReasonClass":
        """A member: the text is the word."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member

    SUSPENDED = "suspended", "a person has stopped it"
    OFFLINE = "offline", "the target says that it is away"
    SKIPPED = "skipped", "a person took the variant out of the rollout"
    DEADLINE = "deadline", "a variant was in flight for too long"
    STAGE = "stage", "a stage before has not passed the revision"
    SOAK = "soak", "a stage before has not been ready for long enough"
    HALTED = "halted", "too many variants of the stage have failed"
    GROUP = "group", "a group of the rollout that comes first has not passed"
    BUDGET = "budget", "as many variants are in flight as may be"
    WINDOW = "window", "publication is not allowed at this time"
    APPROVAL = "approval", "people have to approve the draft"
    EVIDENCE = "evidence", "a check is not answered, or has failed"
    DEPENDENCY = "dependency", "something else has to be ready first"
    CONDITION = "condition", "an expression of propagateWhen is not true"
    CONFLICT = "conflict", "what people changed needs a look or a decision"
    AUTOMATION = "automation", "it is not automation's to do, or not in this pass"
    DECISION = "decision", "a person's decision has nothing to act on"
    DRAFT = "draft", "there is no draft to publish"
    REVISION = "revision", "the revision is not one that may be taken"
    TARGETS = "targets", "there is nothing in the stage, or the target is in none"
    STUCK = "stuck", "the policy as a whole does not move, or too fast"
    ERROR = "error", "it cannot be rendered, written or published"


_MEMBERS: Mapping[ReasonClass, tuple[Reason, ...]] = {
    ReasonClass.SUSPENDED: (Reason.SUSPENDED,),
    ReasonClass.OFFLINE: (Reason.OFFLINE,),
    ReasonClass.SKIPPED: (Reason.SKIPPED,),
    ReasonClass.DEADLINE: (Reason.DEADLINE_EXCEEDED,),
    ReasonClass.STAGE: (Reason.AFTER_PENDING, Reason.AFTER_FAILED),
    ReasonClass.SOAK: (Reason.SOAK_RUNNING, Reason.SOAK_CUT_SHORT),
    ReasonClass.HALTED: (Reason.HALTED,),
    ReasonClass.GROUP: (Reason.GROUP_AWAITS,),
    ReasonClass.BUDGET: (Reason.BUDGET_EXHAUSTED,),
    ReasonClass.WINDOW: (Reason.WINDOW_CLOSED,),
    ReasonClass.APPROVAL: (Reason.APPROVAL_MISSING,),
    ReasonClass.EVIDENCE: (
        Reason.VERIFICATION_PENDING,
        Reason.VERIFICATION_FAILED,
        Reason.CONTRADICTION,
        Reason.CHECK_SETTLING,
        Reason.CHECK_TIMED_OUT,
        Reason.ANSWER_STALE,
        Reason.MIN_READY_RUNNING,
        Reason.REQUIRES_FAILED,
        Reason.WRONG_REVISION,
        Reason.FROM_THE_FUTURE,
    ),
    ReasonClass.DEPENDENCY: (Reason.DEPENDENCY_PENDING, Reason.SOURCE_AWAITS),
    ReasonClass.CONDITION: (Reason.PROPAGATION_HELD, Reason.EXPRESSION_ERROR),
    ReasonClass.CONFLICT: (
        Reason.MERGE_CONFLICT,
        Reason.ADOPTION_AWAITS,
        Reason.EDITED_DOWNSTREAM,
    ),
    ReasonClass.AUTOMATION: (Reason.AUTOMATION_OFF, Reason.SWEEP_AWAITED),
    ReasonClass.DECISION: (Reason.DECISION_WAITS,),
    ReasonClass.DRAFT: (Reason.NO_DRAFT,),
    ReasonClass.REVISION: (
        Reason.NO_REVISION,
        Reason.NEVER_PUBLISHED,
        Reason.PINNED,
        Reason.SERIALIZED,
        Reason.REVISION_QUEUED,
        Reason.WOULD_GO_BACK,
    ),
    ReasonClass.TARGETS: (Reason.NO_TARGETS, Reason.NOTHING_COUNTS, Reason.NOT_IN_STAGE),
    ReasonClass.STUCK: (Reason.STUCK, Reason.STARVING),
}
# A variant with one of these stays failed or held until a person mends what is wrong: an object, a
# package, a draft, what runs in the cluster. Waiting for a gate, for time or for a person's
# decision (an approval, a promotion) is none of them. `fanout sweep` exits with 3.
TO_MEND: frozenset[str] = frozenset(
    {
        Reason.ADOPTION_BASE_MISSING,
        Reason.BASE_MISSING,
        Reason.CHECK_TIMED_OUT,
        Reason.CONTRADICTION,
        Reason.DEADLINE_EXCEEDED,
        Reason.DRAFT_BROKEN,
        Reason.EDITED_DOWNSTREAM,
        Reason.EXPRESSION_ERROR,
        Reason.MERGE_CONFLICT,
        Reason.PACKAGE_BROKEN,
        Reason.REQUIRED_INJECTION_MISSING,
        Reason.REQUIRES_FAILED,
        Reason.TAG_MISSING,
        Reason.TAG_MOVED,
        Reason.TOO_MANY_REMOVALS,
        Reason.VERIFICATION_FAILED,
    }
)
CLASSES: Mapping[str, ReasonClass] = {
    reason.value: found for found, reasons in _MEMBERS.items() for reason in reasons
}


def class_of(reason: str) -> ReasonClass:
    """The class of a reason; one that is not of the gates keeps a variant from being made."""
    return CLASSES.get(reason, ReasonClass.ERROR)

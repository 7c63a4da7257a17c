"""What the gate engine is told and what it answers, as plain values.

The evaluator knows nothing of Git, files or API objects: `plan` fills these in from what the pass
observed, a scenario file will fill in the same ones. Instants are aware datetimes in UTC, durations
timedeltas.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

HAND_WRITTEN = ""  # the one stage of a PackageVariant that belongs to no policy


class Verdict(StrEnum):
    """Three values; only *failed* withdraws what has passed."""

    PASSED = "passed"
    FAILED = "failed"
    PENDING = "pending"


class Require(StrEnum):
    """How many of the stages before must have passed."""

    ALL = "All"
    ANY = "Any"


@dataclass(frozen=True, slots=True)
class After:
    """The stages before, and for how long each must have been ready."""

    stages: tuple[str, ...]
    require: Require = Require.ALL
    soak: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """`requires: approval`: so many distinct people of these."""

    name: str
    at_least: int
    subjects: frozenset[str]  # resolved from the groups by the PromotionPolicies; people as `by`
    groups: tuple[str, ...] = ()  # as written, for messages
    expires: timedelta | None = None


@dataclass(frozen=True, slots=True)
class StageRule:
    """One stage of a policy as its author and the administrator want it."""

    name: str
    after: After | None = None
    verification: tuple[str, ...] = ()  # names of `report` checks
    requires: tuple[ApprovalRule, ...] = ()
    automatic: bool = False  # an administrator switched automation on
    suspended: bool = False  # by spec


# ---- what was recorded -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Evidence:
    """An answer to a check, from one reporter, about a stage or some of its variants."""

    name: str
    at: datetime
    by: str
    stage: str
    check: str
    status: Verdict
    revision: str = ""
    commit: str = ""
    variants: tuple[str, ...] = ()  # empty: all of the stage
    link: str = ""


@dataclass(frozen=True, slots=True)
class Approval:
    """One person's yes to draft trees; `revokes` names an earlier approval that is taken back."""

    name: str
    at: datetime
    by: str
    stage: str
    check: str
    revision: str
    trees: frozenset[str] = frozenset()
    variants: tuple[str, ...] = ()
    revokes: str = ""


class Action(StrEnum):
    """What a person can decide."""

    PUBLISH = "Publish"
    SUSPEND = "Suspend"
    RESUME = "Resume"


class Override(StrEnum):
    """What a Publish decision may lift, and nothing else."""

    AFTER = "after"
    SOAK = "soak"
    REQUIRES = "requires"
    VERIFICATION = "verification"


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision about a policy, a stage (if named) or variants (if named)."""

    name: str
    at: datetime
    by: str
    action: Action
    stage: str = ""
    variants: tuple[str, ...] = ()
    revision: str = ""
    trees: frozenset[str] = frozenset()  # of the drafts that a Publish is about
    overrides: frozenset[Override] = frozenset()
    reason: str = ""
    expires: datetime | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """All that was said about one policy, in the order in which it was recorded."""

    evidence: tuple[Evidence, ...] = ()
    approvals: tuple[Approval, ...] = ()
    decisions: tuple[Decision, ...] = ()
    removals: Mapping[str, datetime] = field(default_factory=dict)  # variant → when last removed


@dataclass(frozen=True, slots=True)
class StageHistory:
    """What the status remembers of one revision in one stage, because nothing else does."""

    passed: datetime | None = None  # since when the stage's verdict is passed; None: it is not
    left: datetime | None = None  # when the stage moved on from the revision
    soaked: timedelta = timedelta(0)  # longest unbroken time ready, as of `left`


# ---- what was observed -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hold:
    """One reason why something does not go on, for people."""

    reason: str  # CamelCase, from fanout.api.reasons
    sentence: str
    who: str = ""  # who can do something about it
    since: datetime | None = None
    until: datetime | None = None  # when it ends by itself


@dataclass(frozen=True, slots=True)
class Published:
    """What a variant has in force."""

    revision: str
    digest: str
    tree: str
    at: datetime
    commits: frozenset[str] = frozenset()  # commits at which evidence about this counts
    undone: Hold | None = None  # somebody took it back on the branch


@dataclass(frozen=True, slots=True)
class Draft:
    """A variant's open draft as it stands on its branch."""

    revision: str
    digest: str
    tree: str
    current: bool = True  # it is what the candidate's rendering asks for
    disputed: int = 0  # values that both sides changed and nobody has decided
    adopts: bool = False  # its package is one that fanout did not write
    moves: bool = False  # it is for another place than the published package's


@dataclass(frozen=True, slots=True)
class Grant:
    """A release on record: the variant may change to exactly this."""

    revision: str
    digest: str
    at: datetime


@dataclass(frozen=True, slots=True)
class VariantFacts:
    """One variant, as observed."""

    name: str
    stage: str
    target: str
    priority: int = 0
    published: Published | None = None
    draft: Draft | None = None
    grant: Grant | None = None
    suspended: bool = False  # by spec
    held: Hold | None = None  # it cannot be rendered, written or published, and why
    failed: Hold | None = None  # its rendering failed for the candidate
    removed: datetime | None = None  # when a person last decided that it goes

    @property
    def stepped(self) -> datetime | None:
        """When it took its last step. What was said before that was said about another step.

        That is its publication; for one that has none, its removal by a person.
        """
        return self.published.at if self.published is not None else self.removed


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """Everything the evaluator may look at."""

    name: str
    stages: tuple[StageRule, ...]  # in the order written
    variants: tuple[VariantFacts, ...]
    revisions: tuple[str, ...]  # those the policy's rule allows, oldest first
    records: Records
    history: Mapping[tuple[str, str], StageHistory]  # by (stage, revision)
    now: datetime
    suspended: bool = False  # by spec
    sweep: bool = True  # False: only what a person decided is published in this pass


# ---- the answer --------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class CheckView:
    """How one check of one variant or stage stands."""

    name: str
    verdict: Verdict
    sentence: str
    at: datetime | None = None
    reason: str = ""  # CamelCase; "" when it has passed
    who: str = ""  # who can answer it
    until: datetime | None = None  # when it can change by itself


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    eligible: tuple[str, ...] = ()  # what can be or become the candidate as things stand
    next: datetime | None = None


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """The evaluator's whole answer; `history` is what the status must remember from now on."""

    stages: Mapping[str, StageDecision]
    variants: Mapping[str, VariantDecision]
    history: Mapping[tuple[str, str], StageHistory]
    holds: tuple[Hold, ...] = ()
    next: datetime | None = None

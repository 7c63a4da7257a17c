"""Facts about one policy that the gate evaluator reads, and the evaluation that it returns.

The evaluator knows nothing of Git, files or API objects: `plan` fills the facts in from what the
pass observed, a scenario file fills in the same ones. Instants are aware datetimes in UTC,
durations timedeltas.
"""

from collections.abc import Mapping
from datetime import datetime

from fanout.api.results import CheckAnswer, Hold, MachineVerdict, StageResult, VariantResult
from fanout.calendar.publication_calendar import PublicationCalendar
from fanout.gates.gate_rules import StageRule, Variables
from fanout.gates.record_facts import RecordFacts
from fanout.gates.revision_history import RevisionHistory
from fanout.pending_inputs import ExpressionRequest
from fanout.values import Value, field


class Publication(Value):
    """Published state of a variant: what is in force downstream."""

    revision: str
    digest: str
    tree: str
    at: datetime
    commits: frozenset[str] = frozenset()  # commits at which evidence about this counts
    reads: Mapping[str, str] = field(default_factory=dict)  # cluster objects in it: key → version
    reverted: Hold | None = None  # reverted on the branch by a person
    last_evidence: str = ""  # the last evidence on record then; instants may be equal
    since: datetime | None = None  # start of the revision if earlier than `at`
    # Names of earlier decisions about other revisions that it did not carry out.
    waiting: frozenset[str] = frozenset()


class DraftFacts(Value):
    """A variant's draft as its branch has it, or as it will be written once it is released."""

    revision: str
    digest: str
    tree: str
    current: bool = True  # it equals the candidate's rendering
    conflict_count: int = 0  # undecided merge conflicts
    adopts: bool = False  # its package is one that fanout did not write
    moves: bool = False  # it is for another location than the publication
    reads: Mapping[str, str] = field(default_factory=dict)  # cluster objects in it: key → version
    authors: frozenset[str] = frozenset()  # authors of its edits, in the form of `by`
    has_commits: bool = False  # people have committed to its branch
    commits: frozenset[str] = frozenset()  # commits at which evidence about this counts
    written: datetime | None = None  # first time with this digest; None: unknown
    # Why a released draft cannot be published yet: it is not written, or waits for others on its
    # branch.
    publish_hold: Hold | None = None
    release_hold: Hold | None = None  # why it cannot be released now, although the gates are open


class Grant(Value):
    """A recorded release: the variant may change to exactly this revision and digest."""

    revision: str
    digest: str
    at: datetime
    by: tuple[str, ...] | None = None  # what let it through, as `Kind/name`; None: unknown


class CheckReading(MachineVerdict):
    """Response of a machine check in this pass; pending if there is none yet, or an error."""

    message: str  # the response, or why there is none
    observed_revision: str = ""  # revision or commit in the response; "": none


class VariantFacts(Value):
    """One variant as observed."""

    name: str
    stage: str
    target: str
    priority: int = 0
    group: int = 0  # position among the rollout's groups; without a group last
    published: Publication | None = None
    draft: DraftFacts | None = None
    grant: Grant | None = None
    suspended: bool = False  # by spec
    offline: bool = False  # its target says so
    readings: tuple[CheckReading, ...] = ()  # of machine checks, in this pass
    answers: tuple[CheckAnswer, ...] = ()  # on record
    # Of each variant that must be ready at its own revision first (`dependsOn`) and is not.
    dependency_holds: tuple[Hold, ...] = ()
    variables: Variables = field(default_factory=dict)  # variables of `propagateWhen`
    held: Hold | None = None  # why it cannot be rendered, written or published
    failed: Hold | None = None  # its rendering failed for the candidate
    removed: datetime | None = None  # last decision to remove it
    outdated: bool = False  # neither package nor draft has the candidate with these inputs

    @property
    def last_step_at(self) -> datetime | None:
        """Return when the variant was last published or, without that, removed by a person."""
        return self.published.at if self.published is not None else self.removed

    def find_grant(self, draft: DraftFacts) -> Grant | None:
        """Return the recorded release of exactly this draft, or None."""
        grant = self.grant
        # By digest, not by revision alone: new inputs are another change, and need a new release.
        if grant is None or (grant.revision, grant.digest) != (draft.revision, draft.digest):
            return None
        return grant


class SetFacts(Value):
    """Membership of a variant in a set that is published as a whole, and the hold of its branch."""

    # The branch that is published as a whole, with all packages on it; "": none.
    branch: str = ""
    merges_whole: bool = False  # with those on it that are not released too: a forge merges it
    # Variants with which it exchanges places; none while it stays where it is.
    partners: frozenset[str] = frozenset()
    location: str = ""  # its place, `repository:path`, for messages
    hold: Hold | None = None  # why it cannot be published although all gates are open
    is_asked_again: bool = False  # in spite of the hold, a refusal of the forge


class PolicyFacts(Value):
    """All facts about one policy that the evaluator may read."""

    name: str
    stages: tuple[StageRule, ...]  # in the order written
    variants: tuple[VariantFacts, ...]
    revisions: tuple[str, ...]  # those that the policy's rule allows, oldest first
    records: RecordFacts
    history: Mapping[tuple[str, str], RevisionHistory]  # by (stage, revision)
    now: datetime
    suspended: bool = False  # by spec
    serialize: bool = False  # a newer revision waits for what is in flight
    # All must be open for anything to be published.
    calendars: tuple[PublicationCalendar, ...] = ()
    # Fails closed: a calendar that cannot be read may forbid publication now.
    has_unreadable_calendar: bool = False
    sweep: bool = True  # False: only what a person decided is published in this pass
    # By variant; one without any is published alone.
    sets: Mapping[str, SetFacts] = field(default_factory=dict)


class PolicyEvaluation(Value):
    """Evaluation of one policy; `history` is what the status must remember from now on."""

    stages: Mapping[str, StageResult]
    variants: Mapping[str, VariantResult]
    history: Mapping[tuple[str, str], RevisionHistory]
    holds: tuple[Hold, ...] = ()
    next: datetime | None = None  # first instant at which the policy must be evaluated again
    # While there are any, the evaluation assumes answers and must not be carried out.
    unanswered: tuple[ExpressionRequest, ...] = ()

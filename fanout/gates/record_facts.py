"""Records of people and machines as the evaluator reads them, and from when they count.

Instants are aware datetimes in UTC, people are in the form of `by` (lower-case addresses). What a
record says is its spec in `fanout.api.record_objects`; beside it is what the store tells of it,
and what the evaluator would otherwise look up per variant (decision 0129).

Records never change. Those dated ahead beyond the clock skew do not count yet; that nothing is
back-dated is ensured before, where records are read.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from fanout.api.gate_vocabulary import OverridableGate
from fanout.api.record_objects import ApprovalSpec, DecisionSpec, EvidenceSpec
from fanout.values import Value, field

CLOCK_SKEW = timedelta(minutes=5)
"""By how much the clock of whoever recorded something may run ahead of ours."""


def is_from_the_future(at: datetime, now: datetime) -> bool:
    """Return whether a record is dated so far ahead that it does not count yet."""
    return at > now + CLOCK_SKEW


def effective_from(at: datetime) -> datetime:
    """Return the instant at which a record that is dated ahead begins to count."""
    return at - CLOCK_SKEW


def find_next(instants: Iterable[datetime | None], now: datetime) -> datetime | None:
    """Return the earliest of the instants after `now`, or None."""
    return min((at for at in instants if at is not None and at > now), default=None)


class RecordOrigin(Value):
    """Name of a record, and who recorded it when."""

    name: str
    at: datetime
    by: str


class EvidenceFacts(RecordOrigin):
    """An answer to a check from one reporter, about a stage or some of its variants."""

    spec: EvidenceSpec
    order: int  # position among the evidence; instants may be equal
    withdrawn: datetime | None = None  # when a person withdrew it


class ApprovalFacts(RecordOrigin):
    """One person's approval of draft trees."""

    spec: ApprovalSpec
    trees: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()  # of a cluster, as subjects


class ChangeRequest(Value):
    """A review by which an approver requests changes, and which still stands."""

    at: datetime
    by: str  # "<host>/<login>"
    link: str


class ReviewFacts(ChangeRequest):
    """A request for changes of the drafts of a revision."""

    stage: str
    check: str
    revision: str
    variants: tuple[str, ...]


class DecisionFacts(RecordOrigin):
    """A person's decision about a policy, a stage (if named) or variants (if named)."""

    spec: DecisionSpec
    order: int  # position among the decisions; instants may be equal
    trees: frozenset[str] = frozenset()  # of the drafts that a Publish is about

    @property
    def revision(self) -> str:
        """Return the revision that it is about, or "" if it names none."""
        return self.spec.revision or ""

    @property
    def is_about_revision(self) -> bool:
        """Return whether it covers all drafts of its revision, and not those of its time alone.

        It names none, or overrides `after`, which makes its revision the candidate (decision 0133).
        """
        return not self.trees or OverridableGate.AFTER in self.spec.overrides


class RecordFacts(Value):
    """All records about one policy, each kind in record order."""

    evidence: tuple[EvidenceFacts, ...] = ()
    approvals: tuple[ApprovalFacts, ...] = ()
    decisions: tuple[DecisionFacts, ...] = ()
    removals: Mapping[str, datetime] = field(default_factory=dict)  # variant → when last removed
    requested_changes: tuple[ReviewFacts, ...] = ()  # of reviews, which are not recorded

    def position(self, now: datetime) -> "RecordPosition":
        """Return the position in the records, with the last evidence where instants are equal."""
        has_late_evidence = any(item.at >= now for item in self.evidence)
        return RecordPosition(now, self.evidence[-1].name if has_late_evidence else "")


class RecordPosition(Value):
    """Position in the records at which something came into force.

    A record dated no earlier may still have been recorded before: in the same second, or by
    a clock that runs ahead. So the last evidence on record is remembered.
    """

    now: datetime
    last_evidence: str = ""
    last_record: str = ""  # the last record of all, for publications to name

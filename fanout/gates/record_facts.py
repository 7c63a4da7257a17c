"""Records of people and machines as the evaluator reads them; records never change.

Instants are aware datetimes in UTC, people are in the form of `by` (lower-case addresses). The
fields below `by` are those of the spec of the same kind in `fanout.api.record_objects`, as far as
a gate reads them, and are read by their names there (decision 0066).
"""

from collections.abc import Mapping
from datetime import datetime

from fanout.api.gate_vocabulary import Action, OverridableGate, Verdict
from fanout.values import Value, field


class _Record(Value):
    """A record: its name, and who recorded it when."""

    name: str
    at: datetime
    by: str


class EvidenceFacts(_Record):
    """An answer to a check from one reporter, about a stage or some of its variants."""

    stage: str
    check: str
    status: Verdict
    revision: str = ""
    commit: str = ""
    variants: tuple[str, ...] = ()  # empty: all of the stage
    link: str = ""
    withdrawn: datetime | None = None  # when a person withdrew it


class ApprovalFacts(_Record):
    """One person's approval of draft trees. `revokes` names an earlier approval that is revoked."""

    stage: str
    check: str
    revision: str
    trees: frozenset[str] = frozenset()
    variants: tuple[str, ...] = ()
    revokes: str = ""
    groups: frozenset[str] = frozenset()  # of a cluster, as subjects


class ReviewFacts(Value):
    """A review by which an approver requests changes of drafts, and which still stands."""

    at: datetime
    by: str
    stage: str
    check: str
    revision: str
    variants: tuple[str, ...]
    link: str


class DecisionFacts(_Record):
    """A person's decision about a policy, a stage (if named) or variants (if named)."""

    action: Action
    stage: str = ""
    variants: tuple[str, ...] = ()
    revision: str = ""
    trees: frozenset[str] = frozenset()  # of the drafts that a Publish is about
    overrides: frozenset[OverridableGate] = frozenset()
    accept_conflicts: bool = False  # a Publish accepts the merge conflicts of its drafts
    reason: str = ""
    expires: datetime | None = None


class RecordFacts(Value):
    """All records about one policy, each kind in record order."""

    evidence: tuple[EvidenceFacts, ...] = ()
    approvals: tuple[ApprovalFacts, ...] = ()
    decisions: tuple[DecisionFacts, ...] = ()
    removals: Mapping[str, datetime] = field(default_factory=dict)  # variant → when last removed
    requested_changes: tuple[ReviewFacts, ...] = ()  # of reviews, which are not recorded

    def position(self, now: datetime) -> "RecordPosition":
        """Return the position of a pass in the records.

        The last evidence is named only where instants do not order it.
        """
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

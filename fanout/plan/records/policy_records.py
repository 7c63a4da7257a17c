"""Records and status of one policy, and the log of sweeps, as the record store returns them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.record_objects import ApprovalSpec, DecisionSpec, EvidenceSpec
from fanout.errors import FanoutError, InvalidInput
from fanout.gates.record_facts import RecordOrigin
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_status import RecordedStatus
from fanout.values import Value, field, replace

RecordSpec = EvidenceSpec | ApprovalSpec | DecisionSpec
RECORD_KINDS = ("Evidence", "Approval", "Decision")


@dataclass(frozen=True, slots=True, order=True)
class RecordsKey:
    """Owner of records: a policy, or with an empty policy the variants written by hand."""

    namespace: str
    policy: str


class RecordEntry(RecordOrigin, kw_only=True):
    """One record; `at` and `by` ("name <email>") are those of the commit that added it."""

    spec: RecordSpec
    # When it was withdrawn: Evidence that keeps its place in the order but does not count.
    withdrawn: datetime | None = None
    uid: str = ""  # of the object that it was taken in from; "": a verb wrote it into Git
    groups: tuple[str, ...] = ()  # of the API, for which `by` speaks

    @property
    def kind(self) -> str:
        """Kind of the record: Evidence, Approval or Decision."""
        return type(self.spec).__name__.removesuffix("Spec")

    @property
    def action(self) -> Action | None:
        """Action of a Decision; None of another record."""
        return self.spec.action if isinstance(self.spec, DecisionSpec) else None

    @property
    def fields(self) -> dict[str, Any]:
        """Fields that were recorded in the spec, by their names in files, sorted."""
        fields = self.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return dict(sorted(fields.items()))


def last_acceptance(records: Iterable[RecordEntry]) -> RecordEntry | None:
    """Return the last AcceptRecords decision, which accepts that records are missing."""
    acceptances = [it for it in records if it.action is Action.ACCEPT_RECORDS]
    return acceptances[-1] if acceptances else None


def active_records(records: Iterable[RecordEntry]) -> tuple[RecordEntry, ...]:
    """Return the records without withdrawn decisions and without the withdrawals.

    Withdrawn evidence stays, marked as such, because evidence recorded before it is known by its
    place. A withdrawal counts at once, whatever its clock says, like a revoked approval.
    """
    active: dict[str, RecordEntry] = {}
    for record in records:
        if not isinstance(record.spec, DecisionSpec) or record.action is not Action.WITHDRAW:
            active[record.name] = record
            continue
        # Record order decides, not time: only what is on record before can be withdrawn.
        target = active.get(record.spec.withdraws)
        if target is not None and isinstance(target.spec, DecisionSpec):
            del active[target.name]
        elif target is not None and isinstance(target.spec, EvidenceSpec):
            active[target.name] = replace(target, withdrawn=record.at)
    return tuple(active.values())


class SubmittedRecord(Value, kw_only=True):
    """Record of a person that is to be added once: `uid` is that of its object."""

    uid: str
    manifest: Mapping[str, Any]  # apiVersion, kind, spec, and metadata with namespace alone
    author: CommitIdentity
    groups: tuple[str, ...] = ()


class RewoundBranch(Value):
    """A branch of records that no longer descends from the commit where it was last seen."""

    branch: str  # URL and branch for messages
    last_seen: str  # commit at which the branch was seen last
    records: tuple[RecordEntry, ...] | None = None  # missing records; None: unknown


class LostBranch(Value):
    """The branch that a policy without records would have, where others may be it, renamed.

    Others are counted and not named: their names have those of other namespaces.
    """

    branch: str
    repository: str  # URL
    others: int


class PolicyRecords(Value, kw_only=True):
    """All records and the status of one policy."""

    head: str = ""  # commit; "": nothing was recorded yet
    records: tuple[RecordEntry, ...] = ()  # in the order in which they were recorded
    status: RecordedStatus = field(default_factory=RecordedStatus)
    unreadable: tuple[str, ...] = ()  # sentences; any of them holds the policy
    failure: FanoutError | None = None  # error of reading the branch; holds the policy too
    rewound: RewoundBranch | None = None  # the branch was put back; holds the policy too
    # None: it is there, or the repository has no branch that may be it
    lost_branch: LostBranch | None = None
    # why the repository cannot be read now: these are the records that were read last
    outdated: str = ""

    def check_readable(self) -> None:
        """Raise what holds the policy: the failure of reading, or InvalidInput for a broken file.

        Fails closed: a record or line that is not understood may be a release.
        """
        if self.failure is not None:
            raise self.failure
        if self.unreadable:
            raise InvalidInput(self.unreadable[0], reason=Reason.RECORD_UNREADABLE)
        if self.status.broken_lines:
            raise InvalidInput(
                "the recorded status has a line that cannot be read: "
                f"{self.status.broken_lines[0]}",
                reason=Reason.RECORD_UNREADABLE,
                remedy="upgrade fanout if a newer version wrote it, or restore the line from an "
                "earlier commit",
            )


class StatusChange(Value):
    """Change that a pass makes to a policy's status lines; None removes a key."""

    expected: str  # head of the records branch as observed
    lines: Mapping[str, Mapping[str, Any] | None]

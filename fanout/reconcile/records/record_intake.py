"""Intake of records: objects that people create in a cluster become records in Git, once.

What counts is what the records repository holds. The uid of an object is in its record, so a crash
between the push and the status of the object repeats nothing. An object that is deleted before it
is taken in is no record; one that is deleted afterwards changes nothing, so those that have been on
record for the retention are deleted.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from fanout.api.approver_names import format_user
from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.record_objects import Decision, is_expired
from fanout.api.validators.object_validation import validate_object
from fanout.errors import FanoutError, InvalidInput
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_records import (
    PolicyRecords,
    RecordEntry,
    RecordsKey,
    SubmittedRecord,
)
from fanout.plan.records.record_listing import RecordObject, RecordState
from fanout.ports import PendingRecords, RecordStore
from fanout.reconcile.pass_scope import PassSubject
from fanout.reconcile.records.lost_records import build_reset_error
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import Value, replace

# Of a policy in one push; the rest follows in the next round.
MAX_RECORDS = 1000
# Git stores no such name of a committer, or stores it without the spaces around it.
_UNUSABLE_USER = re.compile(r"[\x00-\x1f\x7f<>]|^\s|\s$|^$")

FindObstacle = Callable[[RecordsKey, PolicyRecords], FanoutError | None]
"""Return why nothing can follow on the present records of a policy, or None.

They may be lost or older than they were. What follows on them would be lost when somebody restores
the others.
"""


class IntakeResult(Value):
    """Result of taking records in, or of deleting them: what changed, and what was left."""

    changed: frozenset[PassSubject] = frozenset()  # policies, and variants without a policy
    problems: tuple[str, ...] = ()  # sentences for the log, sorted
    admission_problem: FanoutError | None = None  # nothing was taken in for any policy
    has_more: bool = False  # there are more records than one call takes


@dataclass(slots=True)
class _Intake:
    """One intake: what changed and failed so far."""

    now: datetime
    changed: set[PassSubject] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    held: dict[RecordsKey, str] = field(default_factory=dict)  # policies that must not go on
    states: list[tuple[RecordObject, RecordState]] = field(default_factory=list)  # to be written
    has_more: bool = False

    def write(self, item: RecordObject, state: RecordState) -> None:
        """Note a state that is to be written, unless only its instant differs."""
        if replace(item.state, at=state.at) != state:
            self.states.append((item, state))

    def wait(
        self, key: RecordsKey, items: Sequence[RecordObject], error: FanoutError, *, is_held: bool
    ) -> None:
        """Leave the records of a policy for the next time; `is_held`: it must not go on."""
        subject = f"policy {key.policy}" if key.policy else "variants without a policy"
        problem = f"records of {subject} in namespace {key.namespace} wait: {error}"
        self.problems.append(problem)
        if is_held:
            # One of them may be a suspension.
            self.held[key] = problem
        for item in items:
            self.write(item, _build_state(error, self.now))


@dataclass(slots=True)
class RecordIntake:
    """Intake of the records of a cluster, from `pending` to `records`.

    Several processes may take in the same records.
    """

    records: RecordStore
    pending: PendingRecords
    find_obstacle: FindObstacle

    def take_in(self, now: datetime) -> IntakeResult:
        """Take in the records that are pending; `now` is their instant.

        Raises Denied and Unavailable if the objects cannot be listed. Then nothing may be
        published: somebody may have restricted it.
        """
        listing, intake = self.pending.read(), _Intake(now)
        waiting: dict[RecordsKey, list[RecordObject]] = {}
        for item in listing.objects:
            if item.state.is_refused:  # for good: another one has to be created
                continue
            if listing.admission_problem is not None:  # all records wait
                intake.write(item, _build_state(listing.admission_problem, now))
            elif (error := _find_refusal(item, listing.admitted_since)) is not None:
                intake.write(item, replace(_build_state(error, item.created_at), is_refused=True))
            else:
                waiting.setdefault(item.key, []).append(item)
        keys = sorted(waiting)
        states = run_isolated(partial(self.records.read, keys)) if keys else {}
        for key in keys:
            if isinstance(states, FanoutError):
                intake.wait(key, waiting[key], states, is_held=True)
            else:
                self._take_in_policy(key, waiting[key], states[key], intake)
        self.records.hold_status(intake.held)
        # What is not written now is written the next time: the records in Git say what to write.
        errors = self.pending.write_states(intake.states) if intake.states else {}
        intake.problems += (f"{it} could not be written: {errors[it]!s}" for it in errors)
        return IntakeResult(
            frozenset(intake.changed),
            tuple(sorted(intake.problems)),
            listing.admission_problem,
            intake.has_more,
        )

    def _take_in_policy(
        self,
        key: RecordsKey,
        items: Sequence[RecordObject],
        policy_records: PolicyRecords,
        intake: _Intake,
    ) -> None:
        """Take in the records of one policy; what fails holds no other policy."""
        accepting = [
            it for it in items if it.manifest["spec"].get("action") == Action.ACCEPT_RECORDS
        ]
        obstacle = self.find_obstacle(key, policy_records)
        is_known = obstacle is not None and obstacle.reason == Reason.RECORDS_REWOUND
        # Only the decision to accept older records can follow on them; the others come after it.
        is_rewound = (is_known or policy_records.rewound is not None) and bool(accepting)
        taken = (accepting if is_rewound else items)[:MAX_RECORDS]
        rewound = policy_records.rewound

        def append() -> Sequence[RecordEntry]:
            # The pass found that the branch alone is missing, or older, which a person may accept.
            if obstacle is not None and not (is_rewound and is_known):
                raise obstacle
            if rewound is not None and not policy_records.head and obstacle is None:
                # The last pass was before. The repository itself may be missing.
                raise InvalidInput(
                    f"{rewound.branch} does not exist; commit {rewound.last_seen[:12]} was its last"
                    " known head",
                    reason="RecordsLost",
                    remedy="restore it, or name the correct records repository with --records",
                )
            if rewound is not None and not is_rewound:
                raise build_reset_error(
                    f"{rewound.branch} was put back to an older state",
                    "restore the branch",
                    f"{key.namespace}/{key.policy}",
                )
            submitted = [
                SubmittedRecord(
                    uid=it.uid,
                    manifest=it.manifest,
                    author=CommitIdentity(it.by, format_user(it.by)),
                    groups=it.groups,
                )
                for it in taken
            ]
            return self.records.append_once(key, submitted, intake.now)

        entries = run_isolated(append)
        if isinstance(entries, FanoutError):
            # Without a head nothing is released anyway.
            intake.wait(key, items, entries, is_held=bool(policy_records.head))
            return
        intake.has_more |= len(taken) < len(items)
        known_uids = {record.uid for record in policy_records.records}
        for item, entry in zip(taken, entries, strict=True):
            if entry.uid not in known_uids:
                names = (key.policy,) if key.policy else entry.spec.variants
                intake.changed |= {PassSubject(key.namespace, name) for name in names}
            intake.write(item, RecordState(record=entry.name, at=entry.at))


def _find_refusal(item: RecordObject, admitted_since: datetime | None) -> FanoutError | None:
    """Return the error of an object that never counts, or None."""
    if admitted_since is None or item.created_at < admitted_since:
        return InvalidInput(
            "nothing proves who created the record: the admission policies were written later, or"
            " less than a minute before",
            reason="AdmissionMissing",
            remedy="delete it, and create it again",
        )
    parsed, errors = validate_object(item.manifest)
    problems = [f"{it.field}: {it.problem}" for it in errors if it.severity == "error"]
    if _UNUSABLE_USER.search(item.by):
        user = f"user {item.by!r} (annotation fanout.dev/by)"
        problems.insert(0, f"{user} cannot be the author of a commit")
    # Compared with the creation: one that waited for longer than it was to hold was valid.
    if isinstance(parsed, Decision) and is_expired(parsed.spec.expires, item.created_at):
        problems.append(
            "spec.expires: is not after the creation of the object at"
            f" {format_instant(item.created_at)}"
        )
    return InvalidInput("; ".join(problems), reason="InvalidRecord") if problems else None


def _build_state(error: FanoutError, at: datetime) -> RecordState:
    message = f"{error.problem}; {error.remedy}" if error.remedy else error.problem
    return RecordState(at=at, reason=error.reason, message=message)


# Those on record may be many, and nothing waits for their deletion.
_INTERVAL = timedelta(minutes=10)
MAX_DELETIONS = 500  # the rest follows in the next round


@dataclass(slots=True)
class RecordRetention:
    """Deletes the objects of a cluster that have been on record for the retention."""

    pending: PendingRecords
    retention: timedelta | None  # None: they stay
    _next_deletion: datetime = datetime(1970, 1, 1, tzinfo=UTC)

    def delete_expired(self, now: datetime) -> IntakeResult:
        """Delete the expired objects, every ten minutes, at most MAX_DELETIONS in a call.

        Raises Denied and Unavailable if they cannot be listed.
        """
        if self.retention is None or now < self._next_deletion:
            return IntakeResult()
        expired = [
            item
            for item in self.pending.read_recorded()
            if item.state.at is not None and item.state.at + self.retention <= now
        ]
        errors = self.pending.delete(expired[:MAX_DELETIONS])
        has_more = len(expired) > MAX_DELETIONS and not errors
        self._next_deletion = now if has_more else now + _INTERVAL
        problems = (f"{it} could not be deleted: {errors[it]!s}" for it in errors)
        return IntakeResult(problems=tuple(sorted(problems)), has_more=has_more)

"""Instants of records, status lines and drafts that a pass may rely on.

Two clocks can be wrong: one that runs behind, so that a record would be back-dated, and one that
runs ahead. A record's instant is therefore never before that of the record before it; but a record
that a pass has seen dated ahead raises no such lower bound, neither then nor once its instant has
come. Otherwise one wrong clock would redate everything that was recorded after it
(docs/concepts/records.md).

A report counts for a draft if it was recorded after the draft was first written. Identical input
gives identical commits, so neither the branch nor its commits tell when that was: it is on record,
for the stages that require reports only (docs/concepts/evidence-and-approvals.md).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import Action, CheckMethod
from fanout.api.record_objects import ApprovalSpec
from fanout.gates.gate_rules import CheckRule, StageRule
from fanout.gates.record_facts import is_from_the_future
from fanout.plan.actions import ActionKind, PlanAction
from fanout.plan.changes.policy_plan import PolicyPlan, build_record_action
from fanout.plan.decided_variant import VariantStep
from fanout.plan.records.policy_records import RecordEntry
from fanout.plan.records.policy_status import DraftLine, RecordedStatus, VariantLine
from fanout.values import Value, replace

TimedLine = TypeVar("TimedLine", bound=Value)

# Fields of a status whose lines have instants.
_TIMED_LINES = ("variants", "history", "removed", "drafts")


def effective_records(
    records: Iterable[RecordEntry], now: datetime, seen_ahead: Collection[str] = ()
) -> tuple[RecordEntry, ...]:
    """Return the records, in record order, with the instants that count.

    `seen_ahead` names those that an earlier pass saw dated more than five minutes ahead.
    They and those that are ahead of `now` keep their own instant and raise no lower bound.
    """
    effective: list[RecordEntry] = []
    floor: datetime | None = None
    for record in records:
        if record.name in seen_ahead or is_from_the_future(record.at, now):
            effective.append(record)
        elif floor is None or record.at >= floor:
            floor = record.at
            effective.append(record)
        else:
            effective.append(replace(record, at=floor))
    return tuple(effective)


def records_ahead(records: Iterable[RecordEntry], now: datetime) -> Iterator[RecordEntry]:
    """Yield the records that are dated more than five minutes ahead of `now`."""
    return (record for record in records if is_from_the_future(record.at, now))


def counts_at_once(record: RecordEntry) -> bool:
    """Return whether a record dated ahead counts: suspensions and withdrawals do."""
    if isinstance(record.spec, ApprovalSpec):
        return bool(record.spec.revokes)
    return record.action in (Action.SUSPEND, Action.WITHDRAW)


def correct_status(status: RecordedStatus, now: datetime) -> RecordedStatus:
    """Return the status with instants that lie over five minutes ahead replaced.

    Such a line was written by a pass whose clock ran ahead. The event has taken place, so
    its clocks start when a pass first notices it, which `noticed_at` of the result says.
    The lines on record keep their instants (`restore_recorded_times`), for this pass's
    clock may be the wrong one. The same object is returned where nothing is ahead.
    """
    clock = _StatusClock(status.noticed_at, now)
    corrections: Mapping[str, Callable[[Any], Any]] = {
        "variants": clock.variant,
        "history": lambda it: clock.fields(it, "passed", "left", "since"),
        "removed": clock.instant,
        "drafts": lambda it: clock.fields(it, "at"),
    }
    lines: dict[str, object] = {}
    for name in _TIMED_LINES:
        present = getattr(status, name)
        changed = {
            key: new
            for key, line in present.items()
            if (new := corrections[name](line)) is not line
        }
        # Callers compare by identity: an unchanged status is the usual case and must cost nothing.
        lines[name] = {**present, **changed} if changed else present
    if not clock.used and not status.noticed_at:
        return status
    return replace(status, **lines, noticed_at=clock.used)


def restore_recorded_times(
    plan: PolicyPlan, recorded: RecordedStatus, status: RecordedStatus, seen_ahead: frozenset[str]
) -> PolicyPlan:
    """Return the plan, made from `status`, as a change of what is `recorded`.

    `status` is `correct_status(recorded)`; a line that the plan leaves as it was keeps its
    instants. `seen_ahead` names the records that this or an earlier pass has seen dated ahead.
    """
    if status is recorded and seen_ahead == recorded.records_ahead:
        return plan
    record_action = build_record_action(plan.namespace, plan.name, plan.steps)
    early = sorted(seen_ahead - recorded.records_ahead)
    early += [
        f"the status of {format_instant(at)}"
        for at in sorted(status.noticed_at.keys() - recorded.noticed_at.keys())
    ]
    details = (f"that {subject} is dated in the future" for subject in early)
    # Actions are ordered by kind, and records are the last kind.
    actions = (*plan.actions, *(replace(record_action, detail=detail) for detail in details))
    lines: dict[str, object] = {}
    for name in _TIMED_LINES:
        planned, before, corrected = (getattr(it, name) for it in (plan.planned, recorded, status))
        kept = {
            key: before[key]
            for key, line in (corrected.items() if corrected is not before else ())
            if line is not before[key] and planned.get(key) == line
        }
        lines[name] = {**planned, **kept} if kept else planned
    changes = replace(plan.planned, **lines, records_ahead=seen_ahead, noticed_at=status.noticed_at)
    return replace(plan, actions=actions, recorded=recorded, planned=changes)


class _StatusClock:
    """Replacement of instants that lie ahead; `used` has all replacements made."""

    def __init__(self, noticed: Mapping[datetime, datetime], now: datetime) -> None:
        self._noticed = noticed
        self._now = now
        self.used: dict[datetime, datetime] = {}

    def instant(self, at: datetime) -> datetime:
        if not is_from_the_future(at, self._now):
            return at
        # Never after this pass: the clock that noticed it may have been wrong, too.
        self.used[at] = self._noticed.get(at, self._now)
        return min(self.used[at], self._now)

    def fields(self, value: TimedLine, *names: str) -> TimedLine:
        """Return the value with the instants in these fields; the same one if none changes."""
        present = ((name, getattr(value, name)) for name in names)
        replaced = {
            name: at
            for name, recorded in present
            if recorded is not None and (at := self.instant(recorded)) is not recorded
        }
        return replace(value, **replaced) if replaced else value

    def variant(self, line: VariantLine) -> VariantLine:
        grant = self.fields(line.grant, "at", "since") if line.grant else None
        published = self.fields(line.published, "at", "since") if line.published else None
        if grant is not line.grant or published is not line.published:
            line = replace(line, grant=grant, published=published)
        if line.previous_grant is not None:
            earlier = self.fields(line.previous_grant.grant, "at", "since")
            if earlier is not line.previous_grant.grant:
                line = replace(line, previous_grant=replace(line.previous_grant, grant=earlier))
        answers = tuple(self.fields(answer, "at") for answer in line.answers)
        return line if answers == line.answers else replace(line, answers=answers)


def with_draft_times(plan: PolicyPlan, rules: Iterable[StageRule], now: datetime) -> PolicyPlan:
    """Return the plan with the times to record of the drafts that exist after its steps.

    Those of stages that require reports about drafts are recorded. A draft that exists and is not
    on record was written by a pass that ended before it could record it: its time is when it is
    first seen.
    """
    stages = {
        rule.name
        for rule in rules
        for it in rule.requires
        if isinstance(it, CheckRule) and it.method is CheckMethod.REPORT
    }
    recorded_lines = plan.recorded.drafts
    if not stages and not recorded_lines:
        return plan
    draft_lines: dict[str, DraftLine] = {}
    first_seen_actions: list[PlanAction] = []
    for planned in plan.steps:
        spec, step, draft = planned.rendered.spec, planned.step, planned.rendered.observed.draft
        digest = present_digest = draft.trailers.digest if draft is not None else ""
        if step is VariantStep.WRITE:
            inputs = planned.rendered.selected.inputs
            digest = inputs.digest if inputs is not None else ""
        elif (
            step in (VariantStep.PUBLISH, VariantStep.REMOVE)
            or planned.rendered.observed.is_unrecorded
        ):
            continue  # no draft exists after the step
        if not digest or spec.stage not in stages:
            continue
        recorded = recorded_lines.get(spec.name)
        if digest == present_digest and recorded is not None and recorded.digest == digest:
            draft_lines[spec.name] = recorded
            continue
        draft_lines[spec.name] = DraftLine(digest, now)
        if step is not VariantStep.WRITE:
            first_seen_actions.append(
                PlanAction(
                    kind=ActionKind.RECORD,
                    namespace=plan.namespace,
                    policy=plan.name,
                    stage=spec.stage,
                    detail=f"when the draft of {spec.name} was first seen",
                )
            )
    if draft_lines == recorded_lines:
        return plan
    actions = (*plan.actions, *first_seen_actions)
    return replace(plan, actions=actions, planned=replace(plan.planned, drafts=draft_lines))

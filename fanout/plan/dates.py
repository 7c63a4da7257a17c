"""Instants of records and status lines that a pass may rely on.

Two clocks can be wrong: one that runs behind, so that a record would be back-dated, and one that
runs ahead. A record's instant is therefore never before that of the record before it; but a record
that a pass has seen dated ahead raises no such floor, neither then nor once its instant has come.
Otherwise one wrong clock would redate everything that was recorded after it. (Design §3, §6.)
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TypeVar

from fanout.gates.facts import StageHistory
from fanout.gates.instants import from_the_future
from fanout.plan.actions import Action, Kind
from fanout.plan.book import WITHDRAW, Recorded
from fanout.plan.planner import PolicyPlan
from fanout.plan.status import DraftLine, Status, VariantLine, written
from fanout.values import replace

Key = TypeVar("Key")
Line = TypeVar("Line")


def dated(
    records: Iterable[Recorded], now: datetime, seen_ahead: Collection[str] = ()
) -> tuple[Recorded, ...]:
    """Return the records, in record order, with the instants that count.

    `seen_ahead` names those that an earlier pass saw dated more than five minutes ahead. They and
    those that are ahead of `now` keep their own instant and raise no floor.
    """
    found: list[Recorded] = []
    floor: datetime | None = None
    for record in records:
        if record.name in seen_ahead or from_the_future(record.at, now):
            found.append(record)
            continue
        if floor is None or record.at >= floor:
            floor = record.at
            found.append(record)
        else:
            found.append(replace(record, at=floor))
    return tuple(found)


def ahead(records: Iterable[Recorded], now: datetime) -> Iterator[Recorded]:
    """Yield the records that are dated more than five minutes ahead of `now`."""
    return (record for record in records if from_the_future(record.at, now))


def counts_at_once(record: Recorded) -> bool:
    """Return whether a record counts although it is dated ahead: what stops or takes back does."""
    if record.kind == "Decision":
        return record.spec["action"] in ("Suspend", WITHDRAW)
    return bool(record.spec.get("revokes"))


def corrected(status: Status, now: datetime) -> Status:
    """Return the status with a possible instant for each that lies more than five minutes ahead.

    Such a line was written by a pass whose clock ran ahead. The event has taken place, so its
    clocks start when a pass first notices: `noticed` of the result says when that was. The lines on
    record keep their instants (`redated`), for the clock that is wrong may as well be this one.
    The same object is returned where nothing is ahead.
    """
    clock = _Clock(status.noticed, now)
    variants = _changed(status.variants, clock.variant)
    history = _changed(status.history, clock.history)
    removed = _changed(status.removed, clock.instant)
    drafts = _changed(status.drafts, clock.draft)
    if not clock.used and not status.noticed:
        return status
    return replace(
        status,
        variants=variants,
        history=history,
        removed=removed,
        drafts=drafts,
        noticed=clock.used,
    )


def redated(
    plan: PolicyPlan, recorded: Status, status: Status, seen_ahead: frozenset[str]
) -> PolicyPlan:
    """Return the plan, made from `status`, as a change of what is `recorded`.

    `status` is `corrected(recorded)`; a line that the plan leaves as it was keeps its instants.
    `seen_ahead` are the records on record that this or an earlier pass has seen dated ahead.
    """
    if status is recorded and seen_ahead == recorded.ahead:
        return plan
    about = Action(Kind.RECORD, plan.namespace, plan.name)
    if any(not planned.case.spec.policy for planned in plan.steps):
        about = Action(Kind.RECORD, plan.namespace, "", variant=plan.name)
    details = [f"that {name} is dated ahead" for name in sorted(seen_ahead - recorded.ahead)]
    details += [
        f"that what is on record for {written(at)} is dated ahead"
        for at in sorted(status.noticed.keys() - recorded.noticed.keys())
    ]
    order = list(Kind)
    actions = [*plan.actions, *(replace(about, detail=detail) for detail in details)]
    actions.sort(key=lambda action: order.index(action.kind))
    planned = replace(
        plan.planned,
        variants=_restored(plan.planned.variants, recorded.variants, status.variants),
        history=_restored(plan.planned.history, recorded.history, status.history),
        removed=_restored(plan.planned.removed, recorded.removed, status.removed),
        drafts=_restored(plan.planned.drafts, recorded.drafts, status.drafts),
        ahead=seen_ahead,
        noticed=status.noticed,
    )
    return replace(plan, actions=tuple(actions), before=recorded, planned=planned)


class _Clock:
    """The instants to take for those that are ahead; `used` are all that were needed."""

    def __init__(self, noticed: Mapping[datetime, datetime], now: datetime) -> None:
        self._noticed = noticed
        self._now = now
        self.used: dict[datetime, datetime] = {}

    def instant(self, at: datetime) -> datetime:
        if not from_the_future(at, self._now):
            return at
        # Never after this pass: also what was noticed may have been noticed by a wrong clock.
        self.used[at] = self._noticed.get(at, self._now)
        return min(self.used[at], self._now)

    def variant(self, line: VariantLine) -> VariantLine:
        grant, published, answers = line.grant, line.published, line.answers
        if grant is not None and (at := self.instant(grant.at)) is not grant.at:
            line = replace(line, grant=replace(grant, at=at))
        if published is not None and (at := self.instant(published.at)) is not published.at:
            line = replace(line, published=replace(published, at=at))
            published = line.published
        if published is not None and published.since is not None:
            since = self.instant(published.since)
            if since is not published.since:
                line = replace(line, published=replace(published, since=since))
        if any(from_the_future(answer.at, self._now) for answer in answers):
            given = (replace(answer, at=self.instant(answer.at)) for answer in answers)
            line = replace(line, answers=tuple(given))
        return line

    def draft(self, line: DraftLine) -> DraftLine:
        at = self.instant(line.at)
        return line if at is line.at else replace(line, at=at)

    def history(self, past: StageHistory) -> StageHistory:
        if past.passed is not None and (at := self.instant(past.passed)) is not past.passed:
            past = replace(past, passed=at)
        if past.left is not None and (at := self.instant(past.left)) is not past.left:
            past = replace(past, left=at)
        if past.since is not None and (at := self.instant(past.since)) is not past.since:
            past = replace(past, since=at)
        return past


def _changed(lines: Mapping[Key, Line], change: Callable[[Line], Line]) -> Mapping[Key, Line]:
    """Return the same mapping where `change` changes no line."""
    found = {key: new for key, line in lines.items() if (new := change(line)) is not line}
    return {**lines, **found} if found else lines


def _restored(
    planned: Mapping[Key, Line], recorded: Mapping[Key, Line], corrected_lines: Mapping[Key, Line]
) -> Mapping[Key, Line]:
    """Return the planned lines, with that on record for each that is still as it was corrected."""
    if corrected_lines is recorded:
        return planned
    kept = {
        key: recorded[key]
        for key, line in corrected_lines.items()
        if line is not recorded[key] and planned.get(key) == line
    }
    return {**planned, **kept}

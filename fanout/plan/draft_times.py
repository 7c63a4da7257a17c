"""Instants at which drafts were first written, where a stage requires reports about them.

A report counts for a draft if it was recorded after the draft was first written. Neither the branch
nor its commits tell when that was: identical input gives identical commits. So it is on record, for
the stages that require reports alone. (Design §5, §6, "Checks".)
"""

from collections.abc import Iterable
from datetime import datetime

from fanout.gates.rules import CheckRule, StageRule, Way
from fanout.plan.actions import Action, Kind
from fanout.plan.cases import Case
from fanout.plan.planner import PolicyPlan
from fanout.plan.status import DraftLine
from fanout.plan.steps import Step
from fanout.values import replace


def reported_stages(rules: Iterable[StageRule]) -> frozenset[str]:
    """Return the names of the stages that require reports about drafts."""
    return frozenset(
        rule.name
        for rule in rules
        if any(isinstance(it, CheckRule) and it.way is Way.REPORT for it in rule.requires)
    )


def with_draft_times(plan: PolicyPlan, stages: frozenset[str], now: datetime) -> PolicyPlan:
    """Return the plan with what is to be on record of the drafts there are after its steps.

    A draft that is there and not on record was written by a pass that was ended before it could
    say so: it counts from when it is first seen.
    """
    before = plan.before.drafts
    if not stages and not before:
        return plan
    found: dict[str, DraftLine] = {}
    seen: list[Action] = []
    for planned in plan.steps:
        case = planned.case
        name, digest = case.spec.name, _digest_after(case, planned.step)
        if not digest or case.spec.stage not in stages:
            continue
        known = before.get(name)
        stands = case.draft is not None and case.draft.trailers.digest == digest
        if stands and known is not None and known.digest == digest:
            found[name] = known
            continue
        found[name] = DraftLine(digest, now)
        if planned.step is not Step.WRITE:
            seen.append(_first_seen(plan, case))
    if found == before:
        return plan
    order = list(Kind)
    actions = sorted((*plan.actions, *seen), key=lambda action: order.index(action.kind))
    return replace(plan, actions=tuple(actions), planned=replace(plan.planned, drafts=found))


def _first_seen(plan: PolicyPlan, case: Case) -> Action:
    spec = case.spec
    detail = f"since when the draft of {spec.name} is there"
    return Action(Kind.RECORD, plan.namespace, plan.name, stage=spec.stage, detail=detail)


def _digest_after(case: Case, step: Step) -> str:
    """The digest of the draft that there is after the step; "" if there is none."""
    if step is Step.WRITE:
        return case.inputs.digest if case.inputs is not None else ""
    if step in (Step.PUBLISH, Step.REMOVE) or case.draft is None or case.unrecorded:
        return ""
    return case.draft.trailers.digest

"""The one step that a pass takes with each variant. (Design §3: draft written, or published.)"""

from enum import StrEnum

from fanout.gates.answer import State, VariantDecision
from fanout.gates.facts import Answer
from fanout.plan.cases import Case
from fanout.values import frozen, replace


class Step(StrEnum):
    """What is done in the variant's repository."""

    KEEP = "keep"  # nothing
    WRITE = "write"  # a draft
    PUBLISH = "publish"  # the standing draft is merged and tagged
    SETTLE = "settle"  # a publication that Git shows is put on record and its draft cleared away
    ADOPT = "adopt"  # what is rendered is in force already, under another digest
    REMOVE = "remove"  # a draft that nobody waits for any more


@frozen
class Planned:
    """A case and the step it takes; `release` is recorded before anything is pushed."""

    case: Case
    step: Step
    release: bool = False
    answers: tuple[Answer, ...] = ()  # of machines, that are to be on record


def plan_step(case: Case, decision: VariantDecision, *, publish: bool) -> Planned:
    """The step of one variant. Without `publish`, drafts are brought up to date and no more."""
    planned = _step(case, decision, publish=publish)
    return replace(planned, answers=decision.answers) if decision.answers else planned


def _step(case: Case, decision: VariantDecision, *, publish: bool) -> Planned:
    if decision.state is State.SUSPENDED:
        return Planned(case, Step.SETTLE if case.unrecorded else Step.KEEP)
    if case.content is not None:
        # what fanout did not write becomes its own by a person's word, never by being alike
        same = case.content.tree == case.state.tree and not (case.foreign or case.moves)
        return Planned(case, Step.ADOPT if same else Step.WRITE)
    if publish and decision.publish:
        return Planned(case, Step.PUBLISH, release=decision.release)
    if case.unrecorded:
        return Planned(case, Step.SETTLE)
    if case.draft is not None and case.in_force and not case.draft.carries:
        return Planned(case, Step.REMOVE)
    return Planned(case, Step.KEEP, release=publish and decision.release)

"""`fanout retry`: what has failed tries again, by a recorded Decision."""

from fanout.cli.attempts import Those, verb
from fanout.errors import InvalidInput
from fanout.gates.answer import State
from fanout.gates.records import Action
from fanout.gates.wording import counted, listed, stage_named
from fanout.plan.cases import Case
from fanout.reconcile.report import PolicyPass

_TO_RETRY = (State.FAILED, State.SKIPPED)


def _chosen(
    item: PolicyPass, stage: str, named: tuple[str, ...], those: list[Case], revision: str
) -> Those:
    """Those of them that have failed at the revision, or are named and were skipped for it."""
    assert item.decision is not None, "a policy that is judged is decided"
    decided = item.decision.variants
    states = _TO_RETRY if named else (State.FAILED,)
    stopped = [
        case
        for case in those
        if decided[case.spec.name].candidate == revision and decided[case.spec.name].state in states
    ]
    left = [case for case in stopped if case.failure is None]
    broken = [case for case in stopped if case.failure is not None]
    notes = []
    if broken:
        notes.append(
            f"{counted(len(broken), 'variant')} cannot be rendered"
            f" ({listed(case.spec.name for case in broken)}), which every sweep tries again"
        )
    if not left:
        where = listed(named) if named else stage_named(stage)
        more = f": {notes[0]}" if notes else ""
        raise InvalidInput(
            f"nothing of {where} has failed at {revision}{more}",
            reason="NothingToDo",
            remedy="see `fanout explain`",
        )
    return left, notes


command = verb(
    Action.RETRY,
    "Let what has failed try again. Failures that were recorded before count no more, and deadlines"
    " and timeouts begin anew. By default all that have failed in the stage; who is named and was"
    " skipped takes part again.",
    _chosen,
)

"""`fanout skip`: a variant is taken out of the rollout of one revision, by a recorded Decision."""

from fanout.cli.attempts import Those, verb
from fanout.errors import InvalidInput
from fanout.gates.answer import State
from fanout.gates.decisions import Standing
from fanout.gates.records import Action
from fanout.gates.wording import listed, stage_named
from fanout.plan.cases import Case
from fanout.reconcile.report import PolicyPass


def _chosen(
    item: PolicyPass, stage: str, named: tuple[str, ...], those: list[Case], revision: str
) -> Those:
    """The named variants that are neither ready at the revision nor skipped for it already."""
    if not named:
        raise InvalidInput(
            f"it is not said who is to be skipped in {stage_named(stage)}",
            reason="NotFound",
            remedy="name a variant with --variant; see `fanout get variants`",
        )
    assert item.decision is not None, "a policy that is judged is decided"
    assert item.facts is not None, "and its facts are known"
    said = Standing(item.facts.records.decisions, item.facts.now)
    over: dict[str, list[str]] = {}
    left = []
    for case in those:
        decided = item.decision.variants[case.spec.name]
        if said.skipped(stage, case.spec.name, revision) is not None:
            over.setdefault(f"skipped for {revision} already", []).append(case.spec.name)
        elif decided.candidate == revision and decided.state is State.READY:
            over.setdefault(f"ready at {revision}", []).append(case.spec.name)
        else:
            left.append(case)
    notes = [
        f"{listed(names)} {'is' if len(names) == 1 else 'are'} {why}" for why, names in over.items()
    ]
    if not left:
        raise InvalidInput(
            f"there is nothing to skip: {'; '.join(notes)}",
            reason="NothingToDo",
            remedy="see `fanout get variants`",
        )
    return left, [f"{note}: the decision is not about that" for note in notes]


command = verb(
    Action.SKIP,
    "Take variants out of the rollout of one revision. They are not released for it, count neither"
    " as ready nor as failed, and wait for nobody; the next revision takes them along again."
    " `fanout retry` puts them back.",
    _chosen,
)

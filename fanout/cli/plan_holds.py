"""Holds of a pass as data: every reason for which something does not go on, one entry each."""

from collections.abc import Iterable, Iterator, Mapping

from fanout.gates.answer import PolicyDecision
from fanout.gates.facts import Hold
from fanout.plan.status import written
from fanout.reconcile.report import Observed, PolicyPass

Plain = dict[str, str]


def holds_plain(observed: Observed) -> list[Plain]:
    """The holds of policies, stages, variants and removals, in the order of the policies.

    Variants that a stage's own gate holds are listed by themselves too: who looks for one variant
    does not have to know its stage.
    """
    return [entry for item in observed.policies for entry in _of_policy(item)]


def _of_policy(item: PolicyPass) -> Iterator[Plain]:
    about = {"policy": item.title}
    if item.decision is not None:
        yield from _of_decision(about, item.decision)
    elif item.problem is not None:
        yield {**about, "reason": str(item.problem.reason), "message": str(item.problem)}
    for name, holds in item.removals.holds.items():
        yield from _entries({**about, "variant": name}, holds)
    for name, holds in item.staying.items():
        yield from _entries({**about, "variant": name}, holds)


def _of_decision(about: Mapping[str, str], decision: PolicyDecision) -> Iterator[Plain]:
    yield from _entries(about, decision.holds)
    for stage in decision.stages.values():
        named = {"stage": stage.name} if stage.name else {}
        yield from _entries({**about, **named}, stage.holds)
    for variant in decision.variants.values():
        named = {"stage": variant.stage} if variant.stage else {}
        yield from _entries({**about, **named, "variant": variant.name}, variant.holds)


def _entries(about: Mapping[str, str], holds: Iterable[Hold]) -> Iterator[Plain]:
    for hold in holds:
        entry = {**about, "reason": str(hold.reason), "message": hold.sentence}
        entry |= {"who": hold.who} if hold.who else {}
        yield entry | ({"until": written(hold.until)} if hold.until is not None else {})

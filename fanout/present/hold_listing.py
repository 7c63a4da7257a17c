"""Holds of policies, stages, variants and removals, as plans and reports have them as data."""

from collections.abc import Iterable, Iterator, Mapping

from fanout.api.durations import format_instant
from fanout.api.results import Hold
from fanout.gates.evaluation_results import PolicyEvaluation
from fanout.reconcile.pass_results import PassPlan, PolicyResult

Plain = dict[str, str]


def list_holds(observed: PassPlan) -> list[Plain]:
    """Return the holds of policies, stages, variants and removals as data.

    They are in the order of the policies. The hold of a stage is listed once, as the
    stage's, and not again for its variants.
    """
    return [entry for item in observed.policies for entry in _list_of_policy(item)]


def _list_of_policy(item: PolicyResult) -> Iterator[Plain]:
    subject = {"policy": item.title}
    if item.decision is not None:
        yield from _list_of_decision(subject, item.decision)
    elif item.error is not None:
        yield {**subject, "reason": str(item.error.reason), "message": str(item.error)}
    for name, holds in item.removals.holds.items():
        yield from _list_entries({**subject, "variant": name}, holds)
    for name, holds in item.remaining_leftovers.items():
        yield from _list_entries({**subject, "variant": name}, holds)


def _list_of_decision(subject: Mapping[str, str], decision: PolicyEvaluation) -> Iterator[Plain]:
    yield from _list_entries(subject, decision.holds)
    # A hold says since when it applies, which may differ between a stage and its variants.
    stage_holds: dict[str, set[tuple[str, str]]] = {}
    for stage in decision.stages.values():
        own_subject = {"stage": stage.name} if stage.name else {}
        yield from _list_entries({**subject, **own_subject}, stage.holds)
        stage_holds[stage.name] = {(str(it.reason), it.message) for it in stage.holds}
    for variant in decision.variants.values():
        own_subject = {"stage": variant.stage} if variant.stage else {}
        listed = stage_holds.get(variant.stage, set())
        holds = [it for it in variant.holds if (str(it.reason), it.message) not in listed]
        yield from _list_entries({**subject, **own_subject, "variant": variant.name}, holds)


def _list_entries(subject: Mapping[str, str], holds: Iterable[Hold]) -> Iterator[Plain]:
    for hold in holds:
        entry = {**subject, "reason": str(hold.reason), "message": hold.message}
        entry |= {"who": hold.who} if hold.who else {}
        yield entry | ({"until": format_instant(hold.until)} if hold.until is not None else {})

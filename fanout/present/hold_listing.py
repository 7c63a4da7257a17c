"""Holds of policies, stages, variants and removals, as plans and reports have them as data."""

from collections.abc import Iterable, Iterator

from fanout.api.durations import format_instant
from fanout.api.results import Hold
from fanout.reconcile.pass_results import PassPlan

Plain = dict[str, str]


def list_holds(observed: PassPlan) -> list[Plain]:
    """Return the holds of policies, stages, variants and removals as data.

    They are in the order of the policies. The hold of a stage is listed once, as the
    stage's, and not again for its variants.
    """
    entries: list[Plain] = []
    for item in observed.policies:
        policy, decision = item.title, item.decision
        if decision is not None:
            entries += _list_entries(decision.holds, policy=policy)
            # A hold says since when it applies, which may differ between a stage and its variants.
            listed: dict[str, set[tuple[str, str]]] = {}
            for stage in decision.stages.values():
                entries += _list_entries(stage.holds, policy=policy, stage=stage.name)
                listed[stage.name] = {(str(it.reason), it.message) for it in stage.holds}
            for variant in decision.variants.values():
                of_stage = listed.get(variant.stage, set())
                holds = [it for it in variant.holds if (str(it.reason), it.message) not in of_stage]
                entries += _list_entries(
                    holds, policy=policy, stage=variant.stage, variant=variant.name
                )
        elif item.error is not None:
            entries.append(
                {"policy": policy, "reason": str(item.error.reason), "message": str(item.error)}
            )
        rest = (*item.removals.holds.items(), *item.remaining_leftovers.items())
        for name, holds_of_rest in rest:
            entries += _list_entries(holds_of_rest, policy=policy, variant=name)
    return entries


def _list_entries(holds: Iterable[Hold], **subject: str) -> Iterator[Plain]:
    """Yield the holds of a subject; names of what it has not are ""."""
    names = {key: name for key, name in subject.items() if name}
    for hold in holds:
        entry = {**names, "reason": str(hold.reason), "message": hold.message}
        entry |= {"who": hold.who} if hold.who else {}
        yield entry | ({"until": format_instant(hold.until)} if hold.until is not None else {})

"""Variants whose targets are gone: what people call them, and why they are still there."""

from fanout.cli.called import gone_called
from fanout.cluster.declared import Declared
from fanout.gates.explain import Explanation
from fanout.gates.timers import all_over
from fanout.reconcile.names import place_of
from fanout.reconcile.remove import places_of
from fanout.reconcile.report import PolicyPass
from fanout.selection.targets import usable_by


def places(item: PolicyPass, declared: Declared) -> dict[str, set[str]]:
    """Path and `repository:path` of what is on record or drafted, by variant."""
    usable = usable_by(item.named.namespace, declared.repositories)
    aliases: dict[str, list[str]] = {}
    for name, repository in usable.items():
        aliases.setdefault(place_of(repository), []).append(name)
    found: dict[str, set[str]] = {}
    for variant, (place, path) in places_of(item):
        names = (f"{name}:{path}" for name in aliases.get(place, ()))
        found.setdefault(variant, set()).update((path, *names))
    return found


def leaving_called(item: PolicyPass, declared: Declared, name: str) -> list[str]:
    """The variants without a target that may be meant: by their name, place or target."""
    gone = [one.name for one in item.gone]
    if name in gone:
        return [name]
    return gone_called(item.named, gone, places(item, declared), name) if gone else []


def explain_leaving(item: PolicyPass, variant: str) -> Explanation:
    """Why a variant whose target is gone is still there, and when it goes."""
    holds = item.removals.holds.get(variant)
    told = next(it.problem for it in item.failures if it.target == variant)
    return Explanation(
        f"variant {variant}",
        "Leaving" if holds == () else "Held",
        told,
        until=all_over(hold.until for hold in holds or ()),
        children=tuple(
            Explanation(str(hold.reason), "Held", hold.sentence, hold.since, hold.until, hold.who)
            for hold in holds or ()
        ),
        waits=True,
    )

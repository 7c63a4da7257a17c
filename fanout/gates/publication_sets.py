"""Publication of sets: variants on one branch go together, and so do those that exchange places.

Holds here keep variants from publication alone, and never take a release back: what one variant
waits for changes nothing about the gates of the others.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime

from fanout.api.gate_vocabulary import RELEASED_STATES
from fanout.api.reasons import Reason
from fanout.api.results import Hold, VariantResult
from fanout.gates.gate_facts import SetFacts
from fanout.gates.timestamps import find_next
from fanout.values import replace


def hold_sets(
    sets: Mapping[str, SetFacts], results: dict[str, VariantResult], now: datetime
) -> None:
    """Add a hold to each variant whose gates are open and that has to wait for its set.

    `results` are by variant and changed in place. A variant of a later stage is not among them yet,
    and keeps nobody waiting until it is.
    """
    # Each round holds at least one variant that would be published, so it ends.
    while holds := (
        dict(_hold_exchanges(sets, results))
        or dict(_hold_branches(sets, results))
        or {
            name: set_facts.hold
            for name, set_facts in sets.items()
            if set_facts.hold is not None and name in results and results[name].publish
        }
    ):
        for name, hold in holds.items():
            results[name] = replace(
                results[name],
                publish=False,
                holds=(*results[name].holds, hold),
                next=find_next([hold.until], now),
            )


def _hold_exchanges(
    sets: Mapping[str, SetFacts], results: Mapping[str, VariantResult]
) -> Iterator[tuple[str, Hold]]:
    """Yield a hold for each variant one of whose partners cannot be published now."""
    for name, set_facts in sets.items():
        if not set_facts.partners or name not in results or not results[name].publish:
            continue
        awaited = sorted(
            it for it in set_facts.partners if it in results and not results[it].publish
        )
        if awaited:
            sentence = (
                f"{set_facts.location} is the path of {', '.join(awaited)} until that moves;"
                " both move in one push"
            )
            yield name, Hold(Reason.PATH_TAKEN, sentence, f"any promoter of {awaited[0]}")


def _hold_branches(
    sets: Mapping[str, SetFacts], results: Mapping[str, VariantResult]
) -> Iterator[tuple[str, Hold]]:
    """Yield a hold for each variant whose branch has another one that cannot be published now.

    Who is not released any more leaves the branch, and keeps nobody waiting, unless a forge merges
    it with all that is on it.
    """
    names_by_branch: dict[str, list[str]] = defaultdict(list)
    for name, set_facts in sets.items():
        if not set_facts.branch or name not in results:
            continue
        if set_facts.merges_whole or results[name].state in RELEASED_STATES:
            names_by_branch[set_facts.branch].append(name)
    for names in names_by_branch.values():
        awaited = next((results[it] for it in names if not results[it].publish), None)
        if awaited is None:
            continue
        first = awaited.holds[0] if awaited.holds else None
        reason = f": {first.message}" if first is not None and first.message else ""
        hold = Hold(
            Reason.STAGE_DRAFT_PENDING,
            f"{awaited.name} in the same draft cannot be published yet{reason}",
            who=first.who if first is not None else "",
            until=first.until if first is not None else None,
        )
        yield from ((it, hold) for it in names if results[it].publish)

"""Variants that a pass removes because their targets are gone: what is done, and what remains.

The instant at which each goes is on record before anything is pushed: what was said about it until
then does not count for a variant that comes back. (Design §3, "Order of effects".)
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from fanout.gates.wording import listed
from fanout.plan.actions import Action, Kind
from fanout.plan.removal import Removal, message
from fanout.plan.repository import Merge
from fanout.plan.status import VariantLine
from fanout.values import frozen

_WHY = "its target is gone"


@frozen
class Departure:
    """One variant that goes, place by place."""

    namespace: str
    policy: str
    variant: str
    stage: str  # as recorded
    removals: tuple[Removal, ...]
    at: datetime  # when it was first to go


def going_since(
    variant: str, line: VariantLine | None, removed: Mapping[str, datetime], now: datetime
) -> datetime:
    """When the variant was first to go: in this pass, or in one that was ended before it was done.

    What is remembered of an earlier removal is over with the publication that followed.
    """
    before = removed.get(variant)
    published = line.published if line is not None else None
    if before is None or (published is not None and published.at > before):
        return now
    return before


def actions(departure: Departure) -> Iterator[Action]:
    """What is done, for people."""
    packages = False
    for removal in departure.removals:
        common = {
            "namespace": departure.namespace,
            "policy": departure.policy,
            "stage": departure.stage,
            "variant": departure.variant,
            "repository": removal.repository,
            "path": removal.path,
        }
        if removal.deletes:
            packages = True
            yield Action(Kind.REMOVE_PACKAGE, **common, tree=removal.state.tree or "", detail=_WHY)
    yield from _drafts(departure)
    if not packages:
        yield _record(departure)


def _drafts(departure: Departure) -> Iterator[Action]:
    """Each draft once: several places may be in one repository."""
    known: set[tuple[str, str]] = set()
    for removal in departure.removals:
        for draft in removal.drafts:
            if (removal.repository, draft.ref) in known:
                continue
            known.add((removal.repository, draft.ref))
            yield Action(
                Kind.REMOVE_DRAFT,
                departure.namespace,
                departure.policy,
                stage=departure.stage,
                variant=departure.variant,
                repository=removal.repository,
                path=removal.path,
                ref=draft.ref,
                expected=draft.commit,
                detail=_WHY,
            )


def _record(departure: Departure) -> Action:
    """A package that stays, or is not there, is said to be so."""
    stays = any(removal.orphan and removal.state.tree for removal in departure.removals)
    rest = "its package stays on the branch" if stays else "nothing of it is on a branch"
    drafts = {it.ref for removal in departure.removals for it in removal.drafts_given_up}
    if drafts:
        names = listed(ref.removeprefix("refs/heads/") for ref in drafts)
        rest = f"{rest}, and so does what people committed to {names}"
    return Action(
        Kind.RECORD,
        departure.namespace,
        departure.policy,
        stage=departure.stage,
        variant=departure.variant,
        detail=f"that {departure.variant} is gone with its target; {rest}",
    )


def departing(removals: Sequence[tuple[Departure, Removal]]) -> tuple[Merge, ...]:
    """A commit for each policy that takes packages off one branch."""
    owners: dict[str, list[tuple[Departure, Removal]]] = {}
    for departure, removal in removals:
        if removal.deletes:
            owners.setdefault(removal.owner, []).append((departure, removal))
    return tuple(_merge(owners[owner]) for owner in sorted(owners))


def _merge(those: Sequence[tuple[Departure, Removal]]) -> Merge:
    those = sorted(those, key=lambda pair: pair[1].path)
    going = [removal for _, removal in those]
    reason = "Its target is gone." if len(going) == 1 else "Their targets are gone."
    times = [int(departure.at.timestamp()) for departure, _ in those]
    times += [removal.view.head_time for removal in going if removal.view is not None]
    paths = tuple(removal.path for removal in going)
    return Merge(drafts=(), message=message(going, reason), when=max(times), drop=paths)

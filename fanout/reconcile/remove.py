"""Removes one variant whose target is gone, or what one left behind, because a person said so.

The person's Decision is on record first; then the repository is pushed, and the status forgets the
variant last. So whoever ends it in between finds the variant still named, and runs it again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.api.repository import Repository
from fanout.cluster.declared import Declared
from fanout.errors import FanoutError, InvalidInput, Unavailable
from fanout.plan.book import Book, StatusChange
from fanout.plan.change import Writing
from fanout.plan.observation import OpenDraft, RepositoryView
from fanout.plan.removal import Removal, removal_change
from fanout.plan.repository import Look
from fanout.plan.status import Lines, Place, VariantLine, read_status
from fanout.reconcile.look import branch_of, downstream_refs, orphans, remote_of
from fanout.reconcile.names import Named, book_key
from fanout.reconcile.places import emptied, owner_of, place_of
from fanout.reconcile.report import PolicyPass
from fanout.reconcile.views import Views
from fanout.reconcile.world import World
from fanout.selection.model import TargetFailure
from fanout.selection.targets import usable_by

_UNKNOWN = (Reason.RECORD_UNREADABLE, Reason.RECORDS_LOST)  # what stands in the status


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place where something of the variant is."""

    place: Place
    line: VariantLine | None = None
    taken: str = ""


def find_removals(
    world: World, item: PolicyPass, declared: Declared, variant: str
) -> tuple[Removal, ...]:
    """The variant as it is to go, place by place; of one that is wanted, the places that it left.

    Raises InvalidInput when its target is there and nothing was left behind, or nothing is. Nothing
    is asked of upstream, so a tag that moved there is no hindrance; records that cannot be read
    are. Also what the repositories came to, and InvalidInput when nobody declares one any more:
    with `deletionPolicy: Orphan` the status alone is forgotten then.
    """
    gone = variant in {failure.target for failure in item.gone}
    line = item.status.variants.get(variant)
    if not gone and (line is None or not line.left):
        raise item.problem or _not_gone(item, variant)
    if item.problem is not None and item.problem.reason in _UNKNOWN:
        raise item.problem
    spots = _spots(item, variant, line) if gone else _left_behind(line)
    taken = {it.place for name, it in item.status.variants.items() if name != variant}
    spots = [spot for spot in spots if spot.place not in taken]
    orphan = orphans(item.named) or (line is not None and line.orphan)
    known = usable_by(item.named.namespace, declared.repositories).values()
    by_place = {place_of(repository): repository for repository in known}
    views: dict[str, RepositoryView] = {}
    for spot in spots:
        name, path = spot.place
        if name in by_place and name not in views:
            paths = [it.place[1] for it in spots if it.place[0] == name]
            views[name] = _view(world, by_place[name], paths)
        if name not in by_place and not orphan:
            raise InvalidInput(
                f"{variant} is {path} in {name}, and no Repository that"
                f" {item.named.namespace} may use is there",
                reason="UnknownRepository",
                remedy="declare it again with this url and branch; or give it up with"
                " deletionPolicy: Orphan",
            )
    return tuple(
        Removal(
            variant,
            owner_of(item.named),
            spot.line,
            spot.place[1],
            views.get(spot.place[0]),
            orphan,
            spot.taken,
            drafts_stay=not gone,
        )
        for spot in spots
    )


def lost_variant(world: World, declared: Declared, namespace: str, name: str) -> PolicyPass | None:
    """A variant that was written by hand and whose object is gone; None: nothing is on record.

    Raises InvalidInput while something that was declared cannot be read: it may be that object.
    """
    unread = [*declared.unread, *(str(key) for key in declared.left_out)]
    if unread:
        raise InvalidInput(
            f"{name} may be in what cannot be read: {unread[0]}",
            reason=Reason.INVALID_OBJECT,
            remedy="correct that first, see `fanout validate`",
        )
    named = Named(namespace, name, None, None, None)
    book = world.records.read([book_key(named)])[book_key(named)]
    if f"variant/{name}" not in book.status:
        return None
    if book.unreadable:
        raise InvalidInput(book.unreadable[0], reason=Reason.RECORD_UNREADABLE)
    gone = TargetFailure("", name, Reason.TARGET_GONE, f"PackageVariant {name} is gone")
    return PolicyPass(named, book, read_status(book.status), gone=(gone,))


def places_of(item: PolicyPass) -> Iterator[tuple[str, Place]]:
    """Each variant with a place at which something of it is published, released or drafted."""
    yield from ((name, line.place) for name, line in item.status.variants.items())
    owner = owner_of(item.named)
    for view in item.views:
        for draft in view.drafts.values():
            if draft.trailers.policy == owner:
                yield draft.trailers.variant, (view.key, _path_of(draft))


def _path_of(draft: OpenDraft) -> str:
    """The path is between the installation and the policy in the branch's name."""
    return draft.ref.split("/", 4)[4].rpartition("/")[0]


def _spots(item: PolicyPass, variant: str, line: VariantLine | None) -> list[_Spot]:
    """Wherever a variant that nothing asks for may have something."""
    found: dict[Place, _Spot] = {}
    if line is not None:
        found[line.place] = _Spot(line.place, line)
        if line.granted_place is not None:
            granted = _Spot(line.granted_place, replace(line, published=None))
            found.setdefault(line.granted_place, granted)
        found |= {spot.place: spot for spot in _left_behind(line)}
    owner = owner_of(item.named)
    for view in item.views:
        for draft in view.drafts.values():
            if (draft.trailers.policy, draft.trailers.variant) == (owner, variant):
                place = view.key, _path_of(draft)
                found.setdefault(place, _Spot(place))
    return list(found.values())


def _left_behind(line: VariantLine | None) -> list[_Spot]:
    return [_Spot(left.place, taken=left.tree) for left in (line.left if line else ())]


def carry_out(
    world: World, item: PolicyPass, removals: Sequence[Removal], reason: str, now: datetime
) -> None:
    """Push what goes, then forget it.

    Raises Conflict when somebody else was faster, and what Git raises; it is to be run again then.
    """
    writing = Writing(world.setup.install, world.setup.identity)
    by_view: dict[str, list[Removal]] = {}
    for removal in removals:
        by_view.setdefault(removal.view.key if removal.view else "", []).append(removal)
    when = int(now.timestamp())
    found = (removal_change(those, writing, reason, when) for those in by_view.values())
    for change in [it for it in found if it is not None]:
        answer = world.git.change([change])[change.remote.url]
        if isinstance(answer, FanoutError):
            raise answer
        left = set(change.remove) - set(answer.removed)
        if left:
            raise Unavailable(
                f"the draft {min(left).removeprefix('refs/heads/')} could not be removed",
                reason="RemoteFailed",
                remedy="run it again",
            )
    key = book_key(item.named)
    book = world.records.read([key])[key]
    lines = _forgotten(item, removals, book)
    if lines:
        world.records.put_status({key: StatusChange(book.head, lines)}, now)


def _forgotten(item: PolicyPass, removals: Sequence[Removal], book: Book) -> Lines:
    """The lines of the status that change: the variant's, and those of emptied repositories."""
    variant = removals[0].variant
    key = f"variant/{variant}"
    if key in book.status and removals[0].drafts_stay:
        return {key: {name: it for name, it in book.status[key].items() if name != "left"}}
    keys = {key, *(f"repository/{it}" for it in _emptied(item, removals))}
    return {it: None for it in sorted(keys) if it in book.status}


def _emptied(item: PolicyPass, removals: Sequence[Removal]) -> frozenset[str]:
    """The repositories in which nothing of the policy is any more."""
    others = {name: it for name, it in item.status.variants.items() if name != removals[0].variant}
    gone = {draft.ref for removal in removals for draft in removal.drafts}
    views = [
        replace(view, drafts={ref: it for ref, it in view.drafts.items() if ref not in gone})
        for view in (removal.view for removal in removals)
        if view is not None
    ]
    status = replace(item.status, variants=others)
    present = (case.view.key for case in item.cases)
    return emptied(owner_of(item.named), status, views, present)


def _not_gone(item: PolicyPass, variant: str) -> InvalidInput:
    live = {case.spec.name for case in item.cases}
    if variant in live or variant in item.status.variants:
        return InvalidInput(
            f"{variant} has left nothing behind, and its target is still there: it would come back",
            reason="NotFound",
            remedy="to remove what it has now, take the target out of the policy first",
        )
    return InvalidInput(
        f"{item.title} has no variant {variant} without a target",
        reason="NotFound",
        remedy="see `fanout get targets`: those that are gone say TargetGone",
    )


def _view(world: World, repository: Repository, paths: Sequence[str]) -> RepositoryView:
    remote, install = remote_of(repository), world.setup.install
    listing = world.git.look([Look(remote, downstream_refs(repository, install))])[remote.url]
    views = Views(world.git, install)
    view = views.read(remote, branch_of(repository), listing, paths)
    if view.failure is not None:
        raise view.failure
    return view

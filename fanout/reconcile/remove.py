"""Removes variants whose targets are gone, or what one left behind, because a person said so.

The person's Decision is on record first; then the repositories are pushed, and the status forgets
the variants last. So whoever ends it in between finds them still named, and runs it again.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.api.repository import Repository
from fanout.cluster.declared import Declared
from fanout.errors import Conflict, FanoutError, InvalidInput, Unavailable
from fanout.gates.removal import Gone, by_level
from fanout.plan.book import Book, StatusChange
from fanout.plan.observation import RepositoryView
from fanout.plan.removal import Removal, removal_change
from fanout.plan.repository import Look
from fanout.plan.status import Lines, Place, read_status
from fanout.reconcile.gone import Spot, drafted, gone_variant, left_behind
from fanout.reconcile.look import downstream_refs, orphans, remote_of
from fanout.reconcile.names import Named, book_key, branch_of, place_of
from fanout.reconcile.places import emptied, owner_of
from fanout.reconcile.report import PolicyPass
from fanout.reconcile.views import Views
from fanout.reconcile.world import World
from fanout.selection.targets import usable_by
from fanout.values import frozen, replace

# Of these nobody knows what stands in the status, or which targets there are.
_UNKNOWN = (
    Reason.RECORD_UNREADABLE,
    Reason.RECORDS_LOST,
    Reason.RECORDS_REWOUND,
    Reason.INTERNAL_ERROR,
)


@frozen
class Said:
    """A person's word that something is to go."""

    reason: str
    at: datetime


def remove_by_level(
    world: World,
    item: PolicyPass,
    declared: Declared,
    known: Sequence[Removal],
    said: Said,
) -> Iterator[tuple[Removal, ...]]:
    """Remove variants whose targets are gone, a level when those before it are removed; of those
    whose targets are there, what they left.

    Yields each level when it is done. Raises as `find_removals` and `carry_out` do, and Conflict
    when people have changed more in the meantime than was `known` when they were asked.
    """
    names = {removal.variant for removal in known}
    edited = {tree for removal in known for tree in removal.edited.values()}
    gone = [Gone(one.name, one.stage) for one in item.gone if one.name in names]
    left = names - {one.name for one in gone}
    ordered = [{one.name for one in level} for level in by_level(item.rules, gone)]
    for those in (*ordered, left) if left else ordered:
        removals = find_removals(world, item, declared, sorted(those))
        for removal in removals:
            later = [it for it, tree in removal.edited.items() if tree not in edited]
            if later:
                raise Conflict(f"{later[0]} was changed just now", remedy="look at it again")
        carry_out(world, item, removals, said)
        item = _without(item, those)
        yield removals


def _without(item: PolicyPass, names: Collection[str]) -> PolicyPass:
    lines = {name: line for name, line in item.status.variants.items() if name not in names}
    rest = tuple(one for one in item.gone if one.name not in names)
    return replace(item, status=replace(item.status, variants=lines), gone=rest)


def find_removals(
    world: World, item: PolicyPass, declared: Declared, variants: Sequence[str]
) -> tuple[Removal, ...]:
    """The variants as they are to go, place by place; of one that is wanted, the places it left.

    Raises InvalidInput when its target is there and nothing was left behind, or nothing is. Nothing
    is asked of upstream, so a tag that moved there is no hindrance; records that cannot be read
    are. Also what the repositories came to, and InvalidInput when nobody declares one any more:
    with `deletionPolicy: Orphan` the status alone is forgotten then.
    """
    spots = [(name, spot) for name in variants for spot in _spots(item, name)]
    if item.problem is not None and item.problem.reason in _UNKNOWN:
        raise item.problem
    gone = {one.name for one in item.gone}
    known = usable_by(item.named.namespace, declared.repositories).values()
    by_place = {place_of(repository): repository for repository in known}
    views = _views(world, by_place, [spot.place for _, spot in spots])
    removals = []
    for variant, spot in spots:
        name, path = spot.place
        line = item.status.variants.get(variant)
        orphan = orphans(item.named) or (line is not None and line.orphan)
        if name not in views and not orphan:
            raise InvalidInput(
                f"{variant} is {path} in {name}, and no Repository that"
                f" {item.named.namespace} may use is there",
                reason="UnknownRepository",
                remedy="declare it again with this url and branch; or give it up with"
                " deletionPolicy: Orphan",
            )
        removals.append(
            Removal(
                variant,
                owner_of(item.named),
                spot.line,
                path,
                views.get(name),
                orphan,
                spot.taken,
                drafts_stay=variant not in gone,
                repository=by_place[name].metadata.name if name in by_place else "",
            )
        )
    return tuple(removals)


def _spots(item: PolicyPass, variant: str) -> list[Spot]:
    """Where something of it is to go, but for places at which another is by now."""
    line = item.status.variants.get(variant)
    found = next((one for one in item.gone if one.name == variant), None)
    if found is None and (line is None or not line.left):
        raise item.problem or _not_gone(item, variant)
    spots = left_behind(line) if found is None else found.spots
    taken = {it.place for name, it in item.status.variants.items() if name != variant}
    return [spot for spot in spots if spot.place not in taken]


def _views(
    world: World, by_place: dict[str, Repository], places: Sequence[Place]
) -> dict[str, RepositoryView]:
    """The declared repositories as they are now, by place. Raises what one came to."""
    names = dict.fromkeys(name for name, _ in places if name in by_place)
    return {
        name: _view(world, by_place[name], [path for at, path in places if at == name])
        for name in names
    }


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
    status = read_status(book.status)
    gone = gone_variant(name, status.variants[name], {})
    return PolicyPass(named, book, status, gone=(gone,))


def places_of(item: PolicyPass) -> Iterator[tuple[str, Place]]:
    """Each variant with a place at which something of it is published, released or drafted."""
    yield from ((name, line.place) for name, line in item.status.variants.items())
    yield from ((name, place) for name, place, _ in drafted(owner_of(item.named), item.views))


def carry_out(world: World, item: PolicyPass, removals: Sequence[Removal], said: Said) -> None:
    """Push what goes, then forget it.

    Raises Conflict when somebody else was faster, and what Git raises; it is to be run again then.
    """
    setup = world.setup
    by_view: dict[str, list[Removal]] = {}
    for removal in removals:
        by_view.setdefault(removal.view.key if removal.view else "", []).append(removal)
    when = int(said.at.timestamp())
    found = [
        removal_change(those, setup.install, setup.identity, said.reason, when)
        for those in by_view.values()
    ]
    for change in filter(None, found):
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
        world.records.put_status({key: StatusChange(book.head, lines)}, said.at)


def _forgotten(item: PolicyPass, removals: Sequence[Removal], book: Book) -> Lines:
    """The lines of the status that change: the variants', and those of emptied repositories."""
    lines: Lines = {}
    for removal in removals:
        key = f"variant/{removal.variant}"
        if key in book.status and removal.drafts_stay:
            rest = {name: it for name, it in book.status[key].items() if name != "left"}
            lines[key] = rest
        elif key in book.status:
            lines[key] = None
    gone = {removal.variant for removal in removals if not removal.drafts_stay}
    for place in _emptied(item, removals, gone) if gone else ():
        if (key := f"repository/{place}") in book.status:
            lines[key] = None
    return dict(sorted(lines.items()))


def _emptied(
    item: PolicyPass, removals: Sequence[Removal], gone: Collection[str]
) -> frozenset[str]:
    """The repositories in which nothing of the policy is any more."""
    others = {name: it for name, it in item.status.variants.items() if name not in gone}
    refs = {draft.ref for removal in removals for draft in removal.drafts}
    views = [
        replace(view, drafts={ref: it for ref, it in view.drafts.items() if ref not in refs})
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
            reason="NothingToDo",
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

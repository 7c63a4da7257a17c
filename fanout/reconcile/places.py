"""The places on record: who is where, and where something of a policy may be that it does not name.

A repository that no variant names any more is listed only while it is remembered: a package that
is to be taken along, one that waits to be removed, or a draft.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from fanout.api.repository import Repository
from fanout.api.urls import canonical_url
from fanout.plan.book import Book, BookKey
from fanout.plan.observation import RepositoryView
from fanout.plan.repository import same_place
from fanout.plan.status import Place, Status
from fanout.reconcile.names import Named, book_key, place_of
from fanout.selection.targets import usable_by
from fanout.values import frozen

Owner = tuple[str, str]
"""(namespace, variant)"""


@frozen
class Memory:
    """What the status lines of all books say of places."""

    held: dict[Place, Owner] = field(default_factory=dict)  # published there, or released
    left: dict[Place, Owner] = field(default_factory=dict)  # it was there before it moved
    homes: dict[Owner, Place] = field(default_factory=dict)
    places: dict[Owner, list[Place]] = field(default_factory=dict)  # all of one variant
    drafts: dict[BookKey, list[str]] = field(default_factory=dict)  # repositories with drafts
    variants: dict[BookKey, list[str]] = field(default_factory=dict)  # all of one book
    titles: dict[Owner, str] = field(default_factory=dict)
    undeclared: set[Owner] = field(default_factory=set)  # of policies that nobody declares


def remembered(books: Mapping[BookKey, Book], everyone: Sequence[Named]) -> Memory:
    """All places on record. Lines that are not understood are the judge's to refuse."""
    memory = Memory()
    declared = {book_key(named) for named in everyone}
    for book, content in books.items():
        for key, line in content.status.items():
            kind, _, name = key.partition("/")
            if kind == "repository":
                memory.drafts.setdefault(book, []).append(same_place(name))
            elif kind == "variant" and line.get("repository"):
                owner = (book.namespace, name)
                memory.variants.setdefault(book, []).append(name)
                memory.titles[owner] = f"{book.namespace}/{book.policy or name}"
                if book.policy and book not in declared:
                    memory.undeclared.add(owner)
                _remember(memory, owner, line)
    return memory


def _remember(memory: Memory, owner: Owner, line: Mapping[str, object]) -> None:
    home = _place(line)
    memory.held[home] = owner
    memory.homes[owner] = home
    places = [home]
    grant, left = line.get("grant"), line.get("left")
    if isinstance(grant, Mapping) and grant.get("repository"):
        places.append(_place(grant))
    for place in left if isinstance(left, list) else ():
        memory.left[_place(place)] = owner
        places.append(_place(place))
    memory.places[owner] = places


def _place(line: Mapping[str, object]) -> Place:
    return same_place(str(line["repository"])), str(line.get("path"))


# ---- where else to look --------------------------------------------------------------------------


Others = Mapping[str, tuple[Repository, list[str]]]
"""By place: the Repository there, and the paths of it that are to be read."""
Elsewhere = Mapping[tuple[str, str], Others]
"""By namespace and name of the policy, or of the variant written by hand."""


def elsewhere(
    named: Sequence[Named],
    everyone: Sequence[Named],
    memory: Memory,
    repositories: Sequence[Repository],
) -> Elsewhere:
    """Where each policy is remembered and does not name the place any more.

    A repository that is published to on another branch by now cannot be looked at.
    """
    found = {(item.namespace, item.name): _others(item, memory, repositories) for item in named}
    found = {key: others for key, others in found.items() if others}
    if not found:
        return {}
    served = {_url(it): place_of(it) for one in everyone for it in one.repositories.values()}
    for others in found.values():
        for place, (repository, _) in list(others.items()):
            if served.setdefault(_url(repository), place) != place:
                del others[place]
    return found


def _url(repository: Repository) -> str:
    return canonical_url(repository.spec.url)


def _others(
    named: Named, memory: Memory, repositories: Sequence[Repository]
) -> dict[str, tuple[Repository, list[str]]]:
    served = set(named.places.values())
    wanted: dict[str, list[str]] = {}
    for variant in named.variants:
        for place in memory.places.get((named.namespace, variant.name), ()):
            if place != (named.places[variant.name], variant.path):
                wanted.setdefault(place[0], []).append(place[1])
    for place in _abandoned(named, memory):
        wanted.setdefault(place[0], []).append(place[1])
    for name in memory.drafts.get(book_key(named), ()):
        if name not in served:
            wanted.setdefault(name, [])
    if not wanted:
        return {}
    usable = usable_by(named.namespace, repositories)
    by_place = {place_of(usable[name]): usable[name] for name in sorted(usable, reverse=True)}
    return {place: (by_place[place], paths) for place, paths in wanted.items() if place in by_place}


def _abandoned(named: Named, memory: Memory) -> Iterator[Place]:
    """The places of a policy's variants whose targets are gone."""
    if named.policy is None:
        return
    present = {variant.name for variant in named.variants}
    for name in memory.variants.get(book_key(named), ()):
        if name not in present:
            yield from memory.places[named.namespace, name]


def owner_of(named: Named) -> str:
    """What trailers call the policy; variants written by hand share one name."""
    return f"{named.namespace}/{named.name if named.policy is not None else ''}"


def emptied(
    owner: str, status: Status, views: Iterable[RepositoryView], present: Iterable[str]
) -> frozenset[str]:
    """Places in which nothing of the policy is left: they need not be looked at any more."""
    left = {line.repository for line in status.variants.values()} | set(present)
    return frozenset(
        view.key
        for view in views
        if view.key in status.places - left
        and view.failure is None
        and all(draft.trailers.policy != owner for draft in view.drafts.values())
    )

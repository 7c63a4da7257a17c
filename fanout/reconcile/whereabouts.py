"""What one pass knows of places, for all policies and for each: who is where, and who is to be.

Whoever is on record at a place keeps it until it has left; who is to come there waits.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from fanout.api.repository import Repository
from fanout.plan.book import Book, BookKey
from fanout.plan.moving import Tenant
from fanout.plan.observation import RepositoryView
from fanout.plan.status import Place
from fanout.reconcile.names import Named, place_of, repository_key
from fanout.reconcile.places import (
    Elsewhere,
    Memory,
    Others,
    Owner,
    elsewhere,
    remembered,
)
from fanout.selection.collisions import collisions
from fanout.values import frozen


@frozen
class Located:
    """A Repository that a policy may use, and its view."""

    repository: str  # name of the object
    view: RepositoryView


@frozen
class Known:
    """What the pass knows of places, for one policy."""

    views: Mapping[str, RepositoryView]  # by identity of the Repository object
    refused: Mapping[str, str]  # variant → why its path is not its own
    places: Mapping[str, Located]  # those that it names or is remembered in
    tenants: Mapping[str, Tenant]  # who is where a variant is to go
    held: Mapping[Place, Owner]  # who is on record where
    present: frozenset[str]  # the repositories that it names
    everyone: Sequence[Named] = ()  # all policies, whoever else may want one of its places


@frozen
class Whereabouts:
    """The same for all policies."""

    everyone: Sequence[Named]
    memory: Memory
    refused: Mapping[str, str]
    tenants: Mapping[Owner, Tenant]
    elsewhere: Elsewhere  # for the policies of the pass
    by_hand: Mapping[str, frozenset[str]]  # repositories of the variants written by hand

    @classmethod
    def of(
        cls,
        everyone: Sequence[Named],
        named: Sequence[Named],
        books: Mapping[BookKey, Book],
        repositories: Sequence[Repository],
    ) -> "Whereabouts":
        """What names and records say; `named` are the policies of the pass."""
        memory = remembered(books, everyone)
        return cls(
            everyone,
            memory,
            _refused(everyone, memory),
            tenants(wanted_places(everyone), memory),
            elsewhere(named, everyone, memory, repositories),
            _present(everyone),
        )

    @property
    def others(self) -> tuple[Repository, ...]:
        """Repositories that are looked at for what is remembered of them alone."""
        return tuple(it for others in self.elsewhere.values() for it, _ in others.values())

    def known(self, named: Named, views: Mapping[str, RepositoryView]) -> Known:
        """What one policy has to know."""
        others = self.elsewhere.get((named.namespace, named.name), {})
        return Known(
            views=views,
            refused=self.refused,
            places=_located(named, others, views),
            tenants={
                name: tenant
                for (namespace, name), tenant in self.tenants.items()
                if namespace == named.namespace
            },
            held=self.memory.held,
            present=_places_of(named) if named.policy else self.by_hand[named.namespace],
            everyone=self.everyone,
        )


def _refused(everyone: Sequence[Named], memory: Memory) -> dict[str, str]:
    """Variants whose path belongs to another; whoever is on record at a path keeps it."""
    holders = {place: owner[1] for place, owner in memory.held.items()}
    wanted = [
        (named.places[variant.name], variant) for named in everyone for variant in named.variants
    ]
    return collisions(wanted, holders)


def _located(
    named: Named,
    others: Others,
    views: Mapping[str, RepositoryView],
) -> dict[str, Located]:
    """Every place that the policy names or is remembered in, as far as it can be looked at."""
    repositories = {id(item): item for item in named.repositories.values()}
    unique = [*repositories.values(), *(item for item, _ in others.values())]
    found = {}
    for repository in unique:
        key = repository_key(repository)
        if key in views:
            found[place_of(repository)] = Located(repository.metadata.name, views[key])
    return found


def _present(named: Sequence[Named]) -> dict[str, frozenset[str]]:
    """The repositories that the variants written by hand name, by namespace.

    They share what is remembered.
    """
    found: dict[str, set[str]] = {}
    for it in named:
        if it.policy is None:
            found.setdefault(it.namespace, set()).update(_places_of(it))
    return {namespace: frozenset(places) for namespace, places in found.items()}


def _places_of(named: Named) -> frozenset[str]:
    return frozenset(named.places.values())


def wanted_places(everyone: Sequence[Named]) -> dict[Owner, Place]:
    """Where each variant is to be."""
    return {
        (named.namespace, variant.name): (named.places[variant.name], variant.path)
        for named in everyone
        for variant in named.variants
    }


def tenants(wanted: Mapping[Owner, Place], memory: Memory) -> dict[Owner, Tenant]:
    """Who is on record at the new place of a variant, or around it, or in it, and wants it no more.

    Of two that want one place, one is refused already.
    """
    places = [*memory.held.items(), *memory.left.items()]
    departing = [(place, owner) for place, owner in places if wanted.get(owner) != place]
    if not departing:
        return {}
    newcomers: dict[str, list[tuple[str, Owner]]] = {}
    for owner, place in wanted.items():
        if memory.homes.get(owner) != place:
            newcomers.setdefault(place[0], []).append((place[1], owner))
    for those in newcomers.values():
        those.sort()
    found: dict[Owner, Tenant] = {}
    for place, owner in sorted(departing):
        for newcomer in _overlapping(place[1], newcomers.get(place[0], [])):
            found.setdefault(newcomer, _tenant(place, owner, wanted, memory))
    return found


def _tenant(place: Place, owner: Owner, wanted: Mapping[Owner, Place], memory: Memory) -> Tenant:
    return Tenant(
        variant=owner[1],
        policy=memory.titles[owner],
        path=place[1],
        place=place[0],
        moving=owner in wanted,
        leaving=memory.homes[owner] != place,
        undeclared=owner in memory.undeclared,
    )


def _overlapping(path: str, newcomers: list[tuple[str, Owner]]) -> Iterator[Owner]:
    """Those whose path is this one, inside it or around it."""
    parts = path.split("/")
    for length in range(1, len(parts) + 1):
        outer = "/".join(parts[:length])
        at = bisect_left(newcomers, (outer,))
        while at < len(newcomers) and newcomers[at][0] == outer:
            yield newcomers[at][1]
            at += 1
    at = bisect_left(newcomers, (f"{path}/",))
    while at < len(newcomers) and newcomers[at][0].startswith(f"{path}/"):
        yield newcomers[at][1]
        at += 1

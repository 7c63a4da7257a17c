"""All that a set of files declares, put together: what is usable, what is not, and where it is."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

from fanout.api.faults import Fault, Path, field_name
from fanout.api.meta import GROUP, KRMObject
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.references import Unusable, cross_check
from fanout.api.repository import Repository
from fanout.api.scenario import Scenario
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.cluster.documents import FileContent, ObjectKey, Place, finding
from fanout.cluster.findings import Finding
from fanout.cluster.stock import Stock
from fanout.errors import Where
from fanout.selection.objects import ObjectIndex
from fanout.values import frozen

Kind = TypeVar("Kind", bound=KRMObject)
Locate = Callable[[str], Mapping[ObjectKey, Sequence[Place]]]
_NAME: Path = ("metadata", "name")
_PART = re.compile(r"\[(\d+)\]|\[\"([^\"]*)\"\]|([^.\[]+)")


@frozen
class Declared:
    """The usable objects by kind, each kind in order of namespace and name, and all faults.

    `left_out` names objects that are declared and cannot be used, `broken` are those of them that
    have faults of their own; the files and directories in
    `unread` may have declared anything. Who relies on something not being declared must look at
    both: a PromotionPolicy that cannot be read still was to restrict somebody. `unusable` says what
    stands in the files and would be, or would hold, a target: objects without a name or there
    twice, and repositories.
    """

    repositories: tuple[Repository, ...] = ()
    policies: tuple[UpstreamPolicy, ...] = ()
    variants: tuple[PackageVariant, ...] = ()
    promotions: tuple[PromotionPolicy, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    objects: ObjectIndex = field(default_factory=ObjectIndex)
    faults: tuple[Finding, ...] = ()
    left_out: tuple[ObjectKey, ...] = ()
    broken: tuple[tuple[ObjectKey, Place], ...] = field(default=(), repr=False)
    unread: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    places: Mapping[ObjectKey, Place] = field(default_factory=dict, repr=False)

    @property
    def ours(self) -> int:
        """How many objects of fanout's own there are, usable or not."""
        usable = (
            self.repositories,
            self.policies,
            self.variants,
            self.promotions,
            self.scenarios,
        )
        return sum(map(len, usable)) + len(self.left_out)

    def where(self, item: KRMObject, at: str | Path = ()) -> Where:
        """The place of a field (`spec.stages[3].after`, or as a path) of a declared object."""
        path = _path(at) if isinstance(at, str) else at
        place = self.places.get(_key(item))
        if place is None:
            return Where(item.identity, field_name(path))
        return Where(item.identity, field_name(path), place.file, place.line(path))


def where_broken(key: ObjectKey, place: Place, at: str) -> Where:
    """The place of a field of an object that cannot be used."""
    path = _path(at)
    return Where(f"{key.kind}/{key.name}", field_name(path), place.file, place.line(path))


def put_together(
    contents: Mapping[str, FileContent], found: Iterable[Finding], stock: Stock, locate: Locate
) -> Declared:
    """Join what the files yielded; `found` are the faults from looking for files.

    Of objects that are there twice none is used: nobody can say which one is meant. `stock` is what
    the same files hold of plain objects; `locate` finds the places in a file that was read without
    them.
    """
    ours = {_key(item): (item, place) for one in contents.values() for item, place in one.ours}
    broken = [pair for one in contents.values() for pair in one.left_out]
    doubled = _doubled(contents, broken)
    usable = [ours[key] for key in sorted(ours.keys() - doubled.keys())]
    doubled_others = _located(stock.twice, locate)
    items = [item for item, _ in usable]
    places = {_key(item): place for item, place in usable}
    found = tuple(found)
    faults = [*found, *(fault for one in contents.values() for fault in one.findings)]
    faults += _twice({**doubled, **doubled_others})
    faults += _twice_somewhere(stock.twice, doubled_others)
    left_out = sorted({*doubled, *(key for key, _ in broken)})
    unread = [one.where.file for one in found]
    unread += (at for at, one in contents.items() if one.unread)
    lost = Unusable(
        frozenset((key.kind, key.namespace, key.name) for key in left_out), bool(unread)
    )
    checked = cross_check(items, lost)
    faults += (finding(item.identity, places[_key(item)], fault) for item, fault in checked)
    return Declared(
        _of(Repository, items),
        _of(UpstreamPolicy, items),
        _of(PackageVariant, items),
        _of(PromotionPolicy, items),
        _of(Scenario, items),
        stock.index,
        tuple(sorted(dict.fromkeys(faults), key=_position)),
        tuple(left_out),
        tuple(broken),
        tuple(unread),
        tuple(_unusable(contents, doubled_others, left_out)),
        places,
    )


def _doubled(
    contents: Mapping[str, FileContent], broken: Iterable[tuple[ObjectKey, Place]]
) -> dict[ObjectKey, list[Place]]:
    """The objects of ours that are there more than once, usable or not, and all their places."""
    places: defaultdict[ObjectKey, list[Place]] = defaultdict(list)
    for one in contents.values():
        for item, place in one.ours:
            places[_key(item)].append(place)
    for key, place in broken:
        places[key].append(place)
    return {key: found for key, found in places.items() if len(found) > 1}


def _located(
    twice: Mapping[ObjectKey, Sequence[str]], locate: Locate
) -> dict[ObjectKey, list[Place]]:
    """The places of objects of which the files are known."""
    files = {file for names in twice.values() for file in names}
    located = {file: locate(file) for file in sorted(files)}
    return {
        key: [place for file in names for place in located[file].get(key, ())]
        for key, names in twice.items()
    }


def _unusable(
    contents: Mapping[str, FileContent],
    doubled: Mapping[ObjectKey, Sequence[Place]],
    left_out: Iterable[ObjectKey],
) -> Iterator[str]:
    for one in contents.values():
        yield from one.nameless
    for key, places in doubled.items():
        times = f"{len(places)} times" if len(places) > 1 else "more than once"
        yield f"{key.kind}/{key.name}, which is declared {times}"
    yield from (f"{key.kind}/{key.name}" for key in left_out if key.kind == "Repository")


def _twice(places: Mapping[ObjectKey, Sequence[Place]]) -> Iterator[Finding]:
    for key, (first, *others) in _found(places):
        for place in others:
            at = f"{first.file}:{first.line(_NAME)}"
            problem = f"is already declared in namespace {key.namespace} at {at}; none is used"
            fault = Fault(_NAME, problem, "rename or remove one")
            yield finding(f"{key.kind}/{key.name}", place, fault)


def _found(
    places: Mapping[ObjectKey, Sequence[Place]],
) -> Iterator[tuple[ObjectKey, Sequence[Place]]]:
    """Those that have more than one place."""
    return ((key, found) for key, found in places.items() if len(found) > 1)


def _twice_somewhere(
    twice: Mapping[ObjectKey, Sequence[str]], places: Mapping[ObjectKey, Sequence[Place]]
) -> Iterator[Finding]:
    """Objects that are declared more than once, at lines that nobody can name."""
    located = dict(_found(places))
    for key, files in twice.items():
        if key not in located:
            where = Where(f"{key.kind}/{key.name}", field_name(_NAME), files[0])
            also = f", also in {listed}" if (listed := ", ".join(files[1:])) else ""
            problem = f"is declared more than once in namespace {key.namespace}{also}; none is used"
            yield Finding(where, problem, "rename or remove one")


def _position(one: Finding) -> tuple[str, int]:
    return one.where.file, one.where.line


def _key(item: KRMObject) -> ObjectKey:
    return ObjectKey(GROUP, item.kind, item.metadata.namespace, item.metadata.name)


def _of(kind: type[Kind], items: Iterable[KRMObject]) -> tuple[Kind, ...]:
    return tuple(item for item in items if isinstance(item, kind))


def _path(text: str) -> Path:
    """`spec.stages[3].after` as the parts it is made of."""
    parts = (match.groups() for match in _PART.finditer(text))
    return tuple(int(index) if index else key or word for index, key, word in parts)

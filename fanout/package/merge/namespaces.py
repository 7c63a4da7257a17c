"""An object that one side puts into another namespace is still that object.

A pipeline's `set-namespace`, or a package that begins to name namespaces, changes the identity of
every object at once; taken for other objects, all of them would stand there twice with the edits in
the old ones.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from fanout.package.merge.documents import Key, Unit
from fanout.values import replace

Units = dict[Key, Unit]


def followed(origin: Units, upstream: Units, local: Units) -> tuple[Units, Units]:
    """Upstream's and the local units, those in a new namespace under the key that they had.

    Only where it is certain: one object of that kind and name went, one came, and the other side
    has none that is called like the new one.
    """
    theirs, ours = _came(origin, upstream), _came(origin, local)
    there = {new: old for new, old in theirs.items() if new not in local or ours.get(new) == old}
    here = {new: old for new, old in ours.items() if new not in upstream or theirs.get(new) == old}
    return _renamed(upstream, there), _renamed(local, here)


def _came(origin: Units, side: Units) -> dict[Key, Key]:
    """The new keys of objects that only changed their namespace, and what they were."""
    gone = dict(_alone(origin, side))
    return {key: gone[rest] for rest, key in _alone(side, origin) if rest in gone}


def _alone(side: Units, other: Units) -> Iterator[tuple[Key, Key]]:
    """The objects that only this side has: their keys without namespace, and their keys."""
    keys = [key for key in side if key[0] == "object" and len(key) == _PLAIN and key not in other]
    counts = Counter(_rest(key) for key in keys)
    return ((_rest(key), key) for key in keys if counts[_rest(key)] == 1)


_PLAIN = 5  # "object", group, kind, namespace, name; longer where there are two of one identity


def _rest(key: Key) -> Key:
    return key[1], key[2], key[4]


def _renamed(units: Units, keys: Mapping[Key, Key]) -> Units:
    return {
        keys.get(key, key): replace(unit, key=keys[key]) if key in keys else unit
        for key, unit in units.items()
    }

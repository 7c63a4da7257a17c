"""Cluster objects, found by kind, namespace and name without a scan."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from json import dumps

from fanout.selection.model import Object

Names = Mapping[tuple[str, str], Object]  # objects of one kind by namespace and name
Kinds = Mapping[tuple[str, str], Names]  # by group and kind
_DIGITS = 12  # of a version: it tells contents of one object apart, and nothing else


def group_of(api_version: str) -> str:
    """`apps/v1` is in group `apps`, `v1` in the core group ``""``."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def by_kind(objects: Iterable[Object]) -> dict[tuple[str, str], dict[tuple[str, str], Object]]:
    """The objects by (group, kind), then by (namespace, name), in the order in which they came.

    The version is not part of the identity: the API server serves one object under several.
    """
    kinds: dict[tuple[str, str], dict[tuple[str, str], Object]] = {}
    for item in objects:
        meta = item.get("metadata") or {}
        kind = (group_of(item.get("apiVersion", "")), item.get("kind", ""))
        kinds.setdefault(kind, {})[meta.get("namespace", ""), meta.get("name", "")] = item
    return kinds


class Versions:
    """Short names for what objects hold, made once for as long as an object is the same value."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, str]] = {}

    def of(self, key: str, content: object) -> str:
        """Equal for equal content. `key` says which object that is: many variants read one."""
        known, answer = self._known.get(key, (None, ""))
        if known is not content or not answer:
            text = dumps(content, sort_keys=True, separators=(",", ":"), default=repr)
            answer = sha256(text.encode()).hexdigest()[:_DIGITS]
            self._known[key] = content, answer
        return answer

    def __len__(self) -> int:
        """Of how many objects one is kept."""
        return len(self._known)


class ObjectIndex:
    """Objects by (group, kind), namespace and name; iteration is in order of namespace and name."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._kinds: Kinds = {
            kind: {name: items[name] for name in sorted(items)}
            for kind, items in by_kind(objects).items()
        }
        self.versions = Versions()

    def followed_by(self, kinds: Kinds) -> "ObjectIndex":
        """An index of other objects, in order already; what was asked of both is not made anew."""
        index = ObjectIndex()
        index._kinds = kinds
        if len(self.versions) <= 2 * len(index):  # beyond it most are of what is gone
            index.versions = self.versions
        return index

    def get(self, group: str, kind: str, namespace: str, name: str) -> Object | None:
        """The object, or None; a cluster-scoped one has the namespace ``""``."""
        return self._kinds.get((group, kind), {}).get((namespace, name))

    def of_kind(self, group: str, kind: str) -> Names:
        """All objects of the kind by (namespace, name), sorted."""
        return self._kinds.get((group, kind), {})

    def groups(self, kind: str) -> tuple[str, ...]:
        """The groups that have objects of a kind of this name."""
        return tuple(group for group, name in self._kinds if name == kind)

    def __len__(self) -> int:
        """How many objects there are."""
        return sum(map(len, self._kinds.values()))

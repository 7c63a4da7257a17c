"""Index of cluster objects by kind, namespace and name."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from json import dumps

from fanout.selection.variant_spec import Object

Names = Mapping[tuple[str, str], Object]  # objects of one kind by namespace and name
Kinds = Mapping[tuple[str, str], Names]  # by group and kind
_DIGITS = 12  # hex digits of a version, which distinguishes contents of one object


def group_of(api_version: str) -> str:
    """Return the API group: `apps/v1` is in group `apps`, `v1` in the core group ``""``."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def group_by_kind(
    objects: Iterable[Object],
) -> dict[tuple[str, str], dict[tuple[str, str], Object]]:
    """Group objects by (group, kind), then by (namespace, name), keeping their order.

    The version is not part of the identity: the API server serves one object under several.
    """
    kinds: dict[tuple[str, str], dict[tuple[str, str], Object]] = {}
    for item in objects:
        meta = item.get("metadata") or {}
        kind = (group_of(item.get("apiVersion", "")), item.get("kind", ""))
        kinds.setdefault(kind, {})[meta.get("namespace", ""), meta.get("name", "")] = item
    return kinds


class ContentVersions:
    """Short content hashes of objects, computed once per value."""

    def __init__(self) -> None:
        self._hashes: dict[str, tuple[object, str]] = {}

    def find_version(self, key: str, content: object) -> str:
        """Return the version of the content, equal for equal content.

        `key` identifies the object.
        """
        hashed_content, version = self._hashes.get(key, (None, ""))
        # By identity: many variants read one object, and comparing large contents costs as much as
        # hashing them.
        if hashed_content is not content or not version:
            text = dumps(content, sort_keys=True, separators=(",", ":"), default=repr)
            version = sha256(text.encode()).hexdigest()[:_DIGITS]
            self._hashes[key] = content, version
        return version

    def __len__(self) -> int:
        """Return the number of objects with a hash."""
        return len(self._hashes)


class ClusterObjectIndex:
    """Objects by (group, kind), namespace and name. Iteration is in order of namespace and name."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._kinds: Kinds = {
            kind: {name: items[name] for name in sorted(items)}
            for kind, items in group_by_kind(objects).items()
        }
        self.versions = ContentVersions()

    def with_objects(self, kinds: Kinds) -> "ClusterObjectIndex":
        """Return an index of other objects, which are in order already.

        It shares the computed versions.
        """
        index = ClusterObjectIndex()
        # Set directly: the constructor would sort a fleet's objects again in every pass.
        index._kinds = kinds
        if len(self.versions) <= 2 * len(index):  # beyond, most versions are of deleted objects
            index.versions = self.versions
        return index

    def get(self, group: str, kind: str, namespace: str, name: str) -> Object | None:
        """Return the object, or None; a cluster-scoped one has the namespace ``""``."""
        return self._kinds.get((group, kind), {}).get((namespace, name))

    def of_kind(self, group: str, kind: str) -> Names:
        """Return all objects of the kind by (namespace, name), sorted."""
        return self._kinds.get((group, kind), {})

    def has_name(self, namespace: str, name: str) -> bool:
        """Return whether an object of any kind has the name."""
        return any((namespace, name) in names for names in self._kinds.values())

    def groups(self, kind: str) -> tuple[str, ...]:
        """Return the groups that have objects of a kind of this name."""
        return tuple(group for group, name in self._kinds if name == kind)

    def __len__(self) -> int:
        """Return the number of objects."""
        return sum(map(len, self._kinds.values()))

"""Index of cluster objects by kind, namespace and name."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from json import dumps

from fanout.selection.label_selector import LabelIndex, MatchableSelector
from fanout.selection.variant_spec import Object
from fanout.values import Value

GroupKind = tuple[str, str]
NamespacedName = tuple[str, str]  # a cluster-scoped object has the namespace ""
ObjectsByName = Mapping[NamespacedName, Object]  # objects of one kind
ObjectsByKind = Mapping[GroupKind, ObjectsByName]
VersionedKind = tuple[str, str, str]  # group, kind and API version
_DIGITS = 12  # hex digits of a hash, which distinguishes contents of one object


def group_of(api_version: str) -> str:
    """Return the API group: `apps/v1` is in group `apps`, `v1` in the core group ``""``."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def version_of(api_version: str) -> str:
    """Return the version: `v1` of `apps/v1`, and of `v1`."""
    return api_version.rpartition("/")[2]


def group_by_kind(objects: Iterable[Object]) -> dict[GroupKind, dict[NamespacedName, Object]]:
    """Group objects by (group, kind), then by (namespace, name), keeping their order.

    The version is not part of the identity: the API server serves one object under several.
    """
    kinds: dict[GroupKind, dict[NamespacedName, Object]] = {}
    for item in objects:
        meta = item.get("metadata") or {}
        kind = (group_of(item.get("apiVersion", "")), item.get("kind", ""))
        kinds.setdefault(kind, {})[meta.get("namespace", ""), meta.get("name", "")] = item
    return kinds


class ObjectChange(Value):
    """Object that was added, changed or removed."""

    kind: GroupKind
    name: NamespacedName
    previous: Object | None
    present: Object | None


class ContentHashes:
    """Short content hashes of objects, computed once per value."""

    def __init__(self) -> None:
        self._hashes: dict[str, tuple[object, str]] = {}

    def hash_of(self, key: str, content: object) -> str:
        """Return the hash of the content of the object that `key` identifies."""
        hashed_content, content_hash = self._hashes.get(key, (None, ""))
        # By identity: many variants read one object, and comparing large contents costs as much as
        # hashing them.
        if hashed_content is not content or not content_hash:
            text = dumps(content, sort_keys=True, separators=(",", ":"), default=repr)
            content_hash = sha256(text.encode()).hexdigest()[:_DIGITS]
            self._hashes[key] = content, content_hash
        return content_hash

    def __len__(self) -> int:
        """Return the number of objects with a hash."""
        return len(self._hashes)


class ClusterObjectIndex:
    """Objects by (group, kind), namespace and name. Iteration is in order of namespace and name.

    An API server serves an object in each version of its kind. Where a kind is read in several
    versions, each method that takes a version answers in that one. In all others, and in files,
    there is one content per object, which answers for every version.
    """

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        # With the version "": the content for callers that name no version, or one that is not
        # read by itself.
        self._names: dict[VersionedKind, ObjectsByName] = {
            (*kind, ""): {name: items[name] for name in sorted(items)}
            for kind, items in group_by_kind(objects).items()
        }
        self._label_indexes: dict[VersionedKind, LabelIndex] = {}  # made on demand
        self.content_hashes = ContentHashes()
        self.stamp = object()  # of these contents; other contents have another one
        # The stamp of the contents before these, and the objects that differ from them. A stamp
        # and not the index, which would keep the index before it, and so all indexes.
        self._previous_stamp = self.stamp
        self._changed_names: Collection[NamespacedName] = ()

    def with_objects(
        self,
        kinds: ObjectsByKind,
        other_versions: Mapping[VersionedKind, ObjectsByName] | None = None,
    ) -> "ClusterObjectIndex":
        """Return an index of other objects, which are in order already.

        `other_versions`: the same objects in versions of their kinds other than in `kinds`. An
        object with unchanged content stays the same object, and a kind without changes the same
        mapping, because memos compare by identity. The index shares the computed hashes.
        """
        present = {(*kind, ""): names for kind, names in kinds.items()} | {**(other_versions or {})}
        return self._with_names(
            {
                key: _retain_unchanged(self._names.get(key, {}), names)
                for key, names in present.items()
            }
        )

    def with_changes(self, changes: ObjectsByKind) -> "ClusterObjectIndex":
        """Return an index with another content of some objects, all of which are in this one."""
        names = {(*it, ""): self.of_kind(*it) for it in self.kinds()}
        for kind, present in changes.items():
            # What is not among the changes need not be compared object by object.
            previous = {it: names[*kind, ""][it] for it in present}
            if (retained := _retain_unchanged(previous, present)) is not previous:
                names[*kind, ""] = {**names[*kind, ""], **retained}
        return self._with_names(names)

    def _with_names(self, names: dict[VersionedKind, ObjectsByName]) -> "ClusterObjectIndex":
        index = ClusterObjectIndex()
        # Set directly: the constructor would sort a fleet's objects again in every pass.
        index._names = names
        index._label_indexes = {
            key: label_index.with_objects(self._names[key], index._names[key])
            for key, label_index in self._label_indexes.items()
            if key in index._names
        }
        if len(self.content_hashes) <= 2 * len(index):  # beyond, most are of deleted objects
            index.content_hashes = self.content_hashes
        index._previous_stamp = self.stamp
        changed_names: set[NamespacedName] = set()
        for key in self._names.keys() | names.keys():
            before, after = self._names.get(key, {}), names.get(key, {})
            if before is not after:
                changed_names |= before.keys() ^ after.keys()
                # By identity: what has the same content is the same object in both.
                changed_names |= {name for name, it in after.items() if before.get(name) is not it}
        index._changed_names = frozenset(changed_names)
        if not index._changed_names:
            index.stamp, index._previous_stamp = self.stamp, self._previous_stamp
            index._changed_names = self._changed_names
        return index

    def find_changed_names(self, stamp: object) -> Collection[NamespacedName] | None:
        """Return namespace and name of all objects that differ from the contents of the stamp.

        None: that is unknown, because the stamp is not of these contents or of those before.
        """
        if stamp is self.stamp:
            return ()
        return self._changed_names if stamp is self._previous_stamp else None

    def get(
        self, group: str, kind: str, namespace: str, name: str, version: str = ""
    ) -> Object | None:
        """Return the object, or None; a cluster-scoped one has the namespace ``""``."""
        # Asked for each injection of each variant in every pass.
        if (names := self._names.get((group, kind, version))) is None and version:
            names = self._names.get((group, kind, ""))
        return names.get((namespace, name)) if names is not None else None

    def of_kind(self, group: str, kind: str, version: str = "") -> ObjectsByName:
        """Return all objects of the kind by (namespace, name), sorted."""
        return self._names.get(self._find_key(group, kind, version), {})

    def find_candidates(
        self, kind: GroupKind, namespace: str, selector: MatchableSelector, version: str = ""
    ) -> Iterator[tuple[NamespacedName, Object]]:
        """Yield the objects of a kind in a namespace that a selector may match, and few others."""
        key = self._find_key(*kind, version)
        if (objects := self._names.get(key, {})) and key not in self._label_indexes:
            self._label_indexes[key] = LabelIndex(objects)
        label_index = self._label_indexes.get(key)
        names = label_index.find_candidates(namespace, selector) if label_index else ()
        return ((name, objects[name]) for name in names)

    def has_name(self, namespace: str, name: str) -> bool:
        """Return whether an object of any kind has the name."""
        return any((namespace, name) in names for names in self._names.values())

    @property
    def versioned_names(self) -> Mapping[VersionedKind, ObjectsByName]:
        """The objects by kind and version; see the class for the version ""."""
        return self._names

    def kinds(self) -> Collection[GroupKind]:
        """Return the kinds of all objects, by group and kind."""
        return [(group, kind) for group, kind, version in self._names if not version]

    def groups(self, kind: str) -> tuple[str, ...]:
        """Return the groups that have objects of a kind of this name."""
        return tuple(group for group, name in self.kinds() if name == kind)

    def find_changes(self, previous: "ClusterObjectIndex") -> Iterator["ObjectChange"]:
        """Yield the objects that were added, changed or removed since a previous index.

        One that is read in several versions is yielded in each in which it differs.
        """
        previous_names = previous.versioned_names
        for key in self._names.keys() | previous_names.keys():
            group, kind, _ = key
            present_objects = self._names.get(key, {})
            previous_objects = previous_names.get(key, {})
            if present_objects is previous_objects:
                continue
            for name in present_objects.keys() | previous_objects.keys():
                before, after = previous_objects.get(name), present_objects.get(name)
                if before is not after and not has_same_content(before, after):
                    yield ObjectChange((group, kind), name, before, after)

    def __len__(self) -> int:
        """Return the number of objects, each counted in each version in which it is read."""
        return sum(map(len, self._names.values()))

    def _find_key(self, group: str, kind: str, version: str) -> VersionedKind:
        key = group, kind, version
        return key if version and key in self._names else (group, kind, "")


def _retain_unchanged(previous: ObjectsByName, present: ObjectsByName) -> ObjectsByName:
    """Return the present objects of a kind; those with unchanged content are the previous ones."""
    if present is previous:
        return previous
    retained = {
        name: previous[name]
        if previous.get(name) is not item and has_same_content(previous.get(name), item)
        else item
        for name, item in present.items()
    }
    is_unchanged = len(retained) == len(previous) and all(
        item is previous.get(name) for name, item in retained.items()
    )
    return previous if is_unchanged else retained


def has_same_content(previous: object, present: object) -> bool:
    """Return whether two objects, or values with a repr, are equal, also in their types."""
    # In Python 1, 1.0 and true are equal, which YAML and a label selector distinguish.
    return previous is present or (previous == present and repr(previous) == repr(present))

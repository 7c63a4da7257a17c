"""Merged index of the plain objects of all files, updated with each reading.

Of thousands of files few change at a time: only the kinds in changed files are merged
again, and unchanged kinds stay the same value, which later stages compare by identity.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from fanout.cluster.manifest_documents import ManifestContent, ObjectKey
from fanout.selection.cluster_objects import ClusterObjectIndex, Kinds, Names
from fanout.values import frozen

_Kind = tuple[str, str]


@frozen
class MergedObjects:
    """Index of the objects declared once, and the files of those declared more than once."""

    index: ClusterObjectIndex
    duplicates: Mapping[ObjectKey, Sequence[str]]
    parts: Mapping[_Kind, Sequence[Names]]  # what each file has of a kind
    kinds: Kinds


NO_OBJECTS = MergedObjects(ClusterObjectIndex(), {}, {}, {})


def merge_objects(
    contents: Mapping[str, ManifestContent], previous: MergedObjects = NO_OBJECTS
) -> MergedObjects:
    """Merge the plain objects of all files, given by file name.

    `previous` is the last result. Objects declared more than once are not in the index,
    because it is undecidable which of them is meant. Returns `previous` itself if nothing
    changed.
    """
    parts: defaultdict[_Kind, list[Names]] = defaultdict(list)
    for content in contents.values():
        for kind, names in content.plain_objects.items():
            parts[kind].append(names)
    kinds = {kind: _merge_kind(kind, kind_parts, previous) for kind, kind_parts in parts.items()}
    duplicates = _find_duplicates(contents, kinds, parts)
    for key in duplicates:
        kind = key.group, key.kind
        unique = {
            name: item for name, item in kinds[kind].items() if name != (key.namespace, key.name)
        }
        kinds[kind] = unique
    # The same value, not an equal one: memos of unchanged policies compare it by identity.
    if not duplicates and not previous.duplicates and _is_unchanged(kinds, previous.kinds):
        return previous
    return MergedObjects(previous.index.with_objects(kinds), duplicates, parts, kinds)


def _merge_kind(kind: _Kind, parts: Sequence[Names], previous: MergedObjects) -> Names:
    """Merge all objects of a kind, sorted; the previous value if every part is unchanged."""
    previous_parts = previous.parts.get(kind, ())
    changed = [pair for pair in zip(previous_parts, parts, strict=False) if pair[0] is not pair[1]]
    if len(previous_parts) == len(parts) and not previous.duplicates:
        if not changed:
            return previous.kinds[kind]
        # Contents changed but no name was added or removed: the order holds, no sort is needed.
        if all(old_names.keys() == new_names.keys() for old_names, new_names in changed):
            return {**previous.kinds[kind], **{at: now[at] for _, now in changed for at in now}}
    merged: dict[tuple[str, str], Mapping[str, object]] = {}
    for part in parts:
        merged.update(part)
    return {at: merged[at] for at in sorted(merged)}


def _find_duplicates(
    contents: Mapping[str, ManifestContent], kinds: Kinds, parts: Mapping[_Kind, Sequence[Names]]
) -> Mapping[ObjectKey, Sequence[str]]:
    """Find the files of each object that is declared more than once."""
    kinds_with_duplicates = {
        kind for kind, sources in parts.items() if len(kinds[kind]) < sum(map(len, sources))
    }
    files: defaultdict[ObjectKey, dict[str, None]] = defaultdict(dict)
    repeated = {key for content in contents.values() for key in content.repeated}
    for file, content in contents.items():
        for key in content.repeated:
            files[key][file] = None
        for kind in kinds_with_duplicates & content.plain_objects.keys():
            for name in content.plain_objects[kind]:
                files[ObjectKey(*kind, *name)][file] = None
    return {
        key: tuple(sources) for key, sources in files.items() if len(sources) > 1 or key in repeated
    }


def _is_unchanged(kinds: Kinds, previous: Kinds) -> bool:
    return kinds.keys() == previous.keys() and all(kinds[kind] is previous[kind] for kind in kinds)

"""Clones of packages: what kpt writes into their objects, and matching with upstream on adoption.

`kpt pkg get` marks objects with a comment `# kpt-merge: namespace/name` and an annotation that
names the upstream object; its functions and its merge leave annotations about files behind. A merge
keeps all of them where they are and counts none as a change.

Nothing in an adopted package says whether the person who cloned it also rendered it; its content
shows that, by its distance to both forms. A `kpt-merge` comment names the upstream object of a
clone. If a pipeline has renamed the object upstream as well, the comment would keep it from being
matched under its own name, so it is removed.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from fanout.package.field_edits import Path
from fanout.package.ignored_files import find_ignored
from fanout.package.kptfile import KPTFILE, find_package, package_directories
from fanout.package.merge.merge_units import (
    DocumentReader,
    Identity,
    MergeFile,
    MergeUnit,
    UnitKey,
    collect_units,
    follow_namespaces,
    is_manifest,
    merge_identity,
    object_identity,
)
from fanout.package.merge.merge_values import SideValue, equal_data, find_line_end
from fanout.package.tree_ids import FileContent, Files
from fanout.package.yaml_nodes import BOM
from fanout.values import Value

_ANNOTATIONS: Final = ("metadata", "annotations")
_KPT_NAMES: Final = frozenset(
    {
        "internal.kpt.dev/upstream-identifier",
        "config.kubernetes.io/path",
        "config.kubernetes.io/index",
        "config.kubernetes.io/id",
        "config.kubernetes.io/merge-source",
        "config.k8s.io/id",
        "cnrm.cloud.google.com/blueprint",
    }
)
_INTERNAL: Final = "internal.config.kubernetes.io/"
_COMMENT: Final = re.compile(r"#\s*kpt-merge:\s*[^\s/]*/[^\s/]+\s*$")


def is_kpt_annotation(path: Path) -> bool:
    """Return whether the field is one of kpt's annotations."""
    return (
        len(path) == len(_ANNOTATIONS) + 1 and path[:-1] == _ANNOTATIONS and _is_kpt_name(path[-1])
    )


def is_kpt_comment(comment: str) -> bool:
    """Return whether the comment is kpt's and contains nothing else."""
    return _COMMENT.match(comment) is not None


def equal_objects(left: SideValue | None, right: SideValue | None) -> bool:
    """Return whether two objects are equal but for kpt's annotations, or both are missing."""
    if equal_data(left, right):
        return True
    if left is None or right is None:
        return False
    return bool(_without_kpt_annotations(left.data) == _without_kpt_annotations(right.data))


def equal_files(path: str, left: FileContent | None, right: FileContent | None) -> bool:
    """Return whether two files are equal but for kpt's annotations, comments and layout.

    Other comments count. kpt lays files out anew when it fetches a package.
    """
    if left == right:
        return True
    if left is None or right is None or left[0] != right[0] or not is_manifest(path):
        return False
    reader = DocumentReader()
    left_file, right_file = reader.parse(path, left[1]), reader.parse(path, right[1])
    return (
        left_file is not None
        and right_file is not None
        and _comparable_content(left_file) == _comparable_content(right_file)
    )


def _comparable_content(file: MergeFile) -> tuple[list[Any], Counter[str]]:
    objects = [_without_kpt_annotations(document.value.data) for document in file.documents]
    comments = (comment for _, comment in file.iter_comments())
    return objects, Counter(it for it in comments if not is_kpt_comment(it))


def _is_kpt_name(name: object) -> bool:
    return isinstance(name, str) and (name in _KPT_NAMES or name.startswith(_INTERNAL))


def _without_kpt_annotations(data: Any) -> Any:
    if not isinstance(data, Mapping):
        return data
    items = data.get("items")
    if isinstance(items, list):
        data = {**data, "items": [_without_kpt_annotations(item) for item in items]}
    metadata = data.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(annotations, Mapping) or not any(map(_is_kpt_name, annotations)):
        return data
    others = {name: value for name, value in annotations.items() if not _is_kpt_name(name)}
    kept_metadata = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**data, "metadata": kept_metadata | ({"annotations": others} if others else {})}


# ---- adoption -----------------------------------------------------------------------------------


class UnmatchedObjects(Value):
    """Objects that only one of two forms of a package contains."""

    removed: tuple[MergeUnit, ...]
    added: tuple[MergeUnit, ...]


def compute_distance(left: Files, right: Files) -> int:
    """Count the facts that only one of two packages has.

    A fact is that an object of a kind has a field, or that the field has a value. Names and
    namespaces are fields like others, so a renamed object still is close.
    """
    first, second = Counter(_iter_facts(left)), Counter(_iter_facts(right))
    return ((first - second) + (second - first)).total()


def find_unmatched(base: Files, local: Files) -> UnmatchedObjects:
    """Return the objects a merge would take for deleted and for added locally."""
    removed: list[MergeUnit] = []
    added: list[MergeUnit] = []
    reader = DocumentReader()
    directories = package_directories(base) | package_directories(local)
    for directory in sorted(directories):
        (base_units, local_units), _ = collect_units(
            [_iter_manifests(files, directory, directories, reader) for files in (base, local)]
        )
        # As in a merge: an object that only changed its namespace is no unmatched one.
        _, local_units = follow_namespaces(base_units, base_units, local_units)
        removed += _objects_only_in(base_units, local_units)
        added += _objects_only_in(local_units, base_units)
    return UnmatchedObjects(tuple(removed), tuple(added))


def find_identities(files: Files) -> set[tuple[str, Identity]]:
    """Return (package directory, identity) of every object in the files."""
    reader, directories = DocumentReader(), package_directories(files)
    return {
        (directory, identity)
        for directory in directories
        for unit in collect_units([_iter_manifests(files, directory, directories, reader)])[0][
            0
        ].values()
        if (identity := object_identity(unit.value.data))
    }


def _iter_manifests(
    files: Files, directory: str, directories: set[str], reader: DocumentReader
) -> Iterator[MergeFile]:
    ignored = find_ignored(files)
    for path, (_, data) in files.items():
        if not is_manifest(path) or path.rpartition("/")[2] == KPTFILE or path in ignored:
            continue
        if find_package(path, directories) == directory and (file := reader.parse(path, data)):
            yield file


def _objects_only_in(
    side: dict[UnitKey, MergeUnit], other: dict[UnitKey, MergeUnit]
) -> Iterator[MergeUnit]:
    return (unit for key, unit in side.items() if key[0] == "object" and key not in other)


def _iter_facts(files: Files) -> Iterator[tuple[object, ...]]:
    for file in _iter_manifests(files, "", {""}, DocumentReader()):
        for document in file.documents:
            data = document.value.data
            kind = data.get("kind") if isinstance(data, dict) else None
            for path, value in _iter_leaves(data, ()):
                yield kind, path
                yield kind, path, value


def _iter_leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield all values with their paths; the position in a list is ignored."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _iter_leaves(item, (*path, str(name)))
    elif isinstance(value, list) and value:
        for item in value:
            yield from _iter_leaves(item, (*path, "[]"))
    else:
        yield path, repr(value)


_KPT_MERGE_MARK: Final = re.compile(r"(?P<before>[ \t]*#.*?)\bkpt-merge:\s*[^\s/]*/[^\s/]+[ \t]*$")


def remove_stale_marks(files: Files, identities: Collection[tuple[str, Identity]]) -> Files:
    """Remove `kpt-merge` marks from objects that upstream has under their own name.

    `identities`: (package directory, identity) of upstream's objects. Marks that name one
    of them stay.
    """
    reader, directories = DocumentReader(), {directory for directory, _ in identities}
    changed: dict[str, tuple[str, bytes]] = {}
    ignored = find_ignored(files)
    for path, (mode, data) in files.items():
        if path in ignored:
            continue
        file = reader.parse(path, data) if b"kpt-merge" in data and is_manifest(path) else None
        if file is None:
            continue
        directory, text = find_package(path, directories), file.text
        # From the last document, so that the positions of the earlier ones stay valid.
        for document in reversed(file.documents):
            value, identity = document.value, object_identity(document.value.data)
            if identity is None or (directory, identity) not in identities:
                continue
            marked_identity = merge_identity(value)
            if marked_identity in (None, identity) or (directory, marked_identity) in identities:
                continue
            line_start = value.children["metadata"].entry_span.value_start
            offset = document.start - (value.entry_span.value_start + 1)
            start, end = offset + line_start, offset + find_line_end(value.text, line_start)
            line = _KPT_MERGE_MARK.sub(
                lambda mark: "" if mark["before"].strip() == "#" else mark["before"].rstrip(),
                text[start:end],
            )
            text = text[:start] + line + text[end:]
        if text != file.text:
            new_data = (text.replace("\n", "\r\n") if file.crlf else text).encode()
            changed[path] = mode, new_data if new_data.startswith(file.bom) else BOM + new_data
    return {**files, **changed}

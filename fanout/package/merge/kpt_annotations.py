"""Annotations and comments that kpt writes into the objects of a clone.

`kpt pkg get` marks objects with a comment `# kpt-merge: namespace/name` and an annotation that
names the upstream object; its functions and its merge leave annotations about files behind. A merge
keeps all of them where they are and counts none as a change (docs/concepts/merge.md).
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from fanout.package.field_edits import Path
from fanout.package.merge.comment_merge import iter_comments
from fanout.package.merge.merge_units import DocumentReader, MergeFile, is_manifest
from fanout.package.merge.merge_values import SideValue, equal_data

FileContent = tuple[str, bytes]  # mode as git writes it, and bytes

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
    comments = (comment for _, comment in iter_comments(file))
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

"""kpt's bookkeeping: what it writes into the objects of a clone, which is nobody's edit.

`kpt pkg get` marks objects with a comment `# kpt-merge: namespace/name` and an annotation that
names the upstream object; its functions and its merge leave annotations about files behind. A merge
keeps all of it where it is, and counts none of it as a change (design §4; porch.md §3.3.4).
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from fanout.package.edits import Path
from fanout.package.merge.documents import File, Reader, is_manifest
from fanout.package.merge.sides import Value, line_end, same_data

Content = tuple[str, bytes]  # mode as git writes it, and bytes

_ANNOTATIONS: Final = ("metadata", "annotations")
_NAMES: Final = frozenset(
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
_MARKS: Final = re.compile(
    "|".join(map(re.escape, ("kpt-merge:", _INTERNAL, *sorted(_NAMES)))).encode()
)
_COMMENT: Final = re.compile(r"#\s*kpt-merge:\s*[^\s/]*/[^\s/]+\s*$")


def is_bookkeeping(path: Path) -> bool:
    """Is the field one of kpt's annotations?"""
    return len(path) == len(_ANNOTATIONS) + 1 and path[:-1] == _ANNOTATIONS and _is_own(path[-1])


def is_mark(comment: str) -> bool:
    """Is the comment kpt's, with no word of a person in it?"""
    return _COMMENT.match(comment) is not None


def same_object(one: Value | None, other: Value | None) -> bool:
    """Are the objects equal but for bookkeeping? Neither is there, or both are."""
    if same_data(one, other):
        return True
    return one is not None and other is not None and _without(one.data) == _without(other.data)


def same_file(path: str, one: Content | None, other: Content | None) -> bool:
    """Are the files equal but for bookkeeping? Comments of people count, layout does not."""
    if one == other:
        return True
    if one is None or other is None or one[0] != other[0] or not is_manifest(path):
        return False
    if not (_MARKS.search(one[1]) or _MARKS.search(other[1])):
        return False
    reader = Reader()
    here, there = reader.parse(path, one[1]), reader.parse(path, other[1])
    return here is not None and there is not None and _content(here) == _content(there)


def _content(file: File) -> tuple[list[Any], Counter[str]]:
    objects = [_without(document.value.data) for document in file.documents]
    return objects, Counter(_comments(file.text))


def _comments(text: str) -> list[str]:
    """What might be a comment, from each `#` that stands alone to the end of its line."""
    found = []
    at = text.find("#")
    while at >= 0:
        comment = text[at : line_end(text, at)].rstrip()
        if (at == 0 or text[at - 1] in " \t\n") and not is_mark(comment):
            found.append(comment)
        at = text.find("#", at + 1)
    return found


def _is_own(name: object) -> bool:
    return isinstance(name, str) and (name in _NAMES or name.startswith(_INTERNAL))


def _without(data: Any) -> Any:
    """The object, or the List with its items, without annotations of kpt's."""
    if not isinstance(data, Mapping):
        return data
    items = data.get("items")
    if isinstance(items, list):
        data = {**data, "items": [_without(item) for item in items]}
    metadata = data.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(annotations, Mapping) or not any(map(_is_own, annotations)):
        return data
    kept = {name: value for name, value in annotations.items() if not _is_own(name)}
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**data, "metadata": {**rest, "annotations": kept} if kept else rest}

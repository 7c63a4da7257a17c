"""Edits of documents in which anchors, aliases or merge keys (`<<`) share values.

One place in the text is several in the data. An edit of that place would edit all, so
values that must not change are written out, and nothing else is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fanout.package.field_edits import (
    REMOVE,
    Edit,
    Path,
    are_independent,
    diff_values,
    get_value,
    same_json,
)
from fanout.package.yaml_nodes import MERGE, YamlNode

# The first attempt shows which values follow an edit by mistake, the second which values change
# when those are written out; the third writes out all of them.
_MAX_ATTEMPTS: Final = 3
_Edits = dict[tuple[int, Path], Any]


def edit_with_anchors(
    roots: Mapping[int, YamlNode],
    edits: Sequence[Edit],
    expected: Mapping[int, Any],
    patch_text: Callable[[Sequence[Edit]], tuple[bytes, Mapping[int, Any]] | None],
) -> bytes | None:
    """Return the bytes that read as the expected data.

    None if this way does not lead there. `roots`: top nodes by document index; `expected`:
    data by document index; `patch_text` makes edits in the text and returns the bytes and
    their data by document index, None where it cannot.
    """
    text_edits: _Edits = {
        edit[:2]: edit.value
        for edit in edits
        if _is_in_place(roots[edit.document], edit.path)
        and not same_json(get_value(roots[edit.document].data, edit.path), edit.value)
    }
    # Each attempt compares the patched data with what is expected, and adds the values
    # that changed along with a shared one to the edits.
    for _ in range(_MAX_ATTEMPTS):
        attempted_edits = [
            Edit(document, path, value) for (document, path), value in text_edits.items()
        ]
        attempt = patch_text(attempted_edits) if are_independent(attempted_edits) else None
        if attempt is None:
            return None
        result, actual = attempt
        if same_json(dict(actual), dict(expected)):
            return result
        if actual.keys() != expected.keys():
            return None
        for document, root in roots.items():
            for path, value in diff_values(actual[document], expected[document]):
                text_edits |= _expand_merge_key(document, root, path, value, expected[document])
    return None


def _is_in_place(node: YamlNode, path: Path) -> bool:
    """Return whether the value stands at this path of the text, or would be added at it."""
    for part in path:
        if node.kind == "alias":
            return False
        if part not in node.children:
            return not (isinstance(node.data, dict) and part in node.data)
        node = node.children[part][1]
    return True


def _expand_merge_key(
    document: int, root: YamlNode, path: Path, value: Any, expected: Any
) -> _Edits:
    """Return the edits after which the value differs from the one it shares."""
    if value is not REMOVE or not path:
        return {(document, path): value}
    parent_path, node = path[:-1], root
    for part in parent_path:
        if part not in node.children:
            return {(document, path): value}
        node = node.children[part][1]
    if MERGE not in node.children or path[-1] in node.children:
        return {(document, path): value}
    # One of the merged keys is removed: all others are written out in place of `<<`.
    expected_parent = get_value(expected, parent_path)
    if len(node.children) == 1:
        return {(document, parent_path): expected_parent}
    merged = [key for key in expected_parent if key not in node.children]
    return {(document, (*parent_path, MERGE)): REMOVE} | {
        (document, (*parent_path, key)): expected_parent[key] for key in merged
    }

"""Edits of documents in which anchors, aliases and merge keys (`<<`) share values.

Text has one place where data has several. An edit of the one place is an edit of all; where that is
too much, what must not follow is written out, and nothing else is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fanout.package.edits import REMOVE, Edit, Path, changes, get, independent, same
from fanout.package.nodes import MERGE, Node

# One shows what must not follow, the next what that takes along; the last has it all.
_ATTEMPTS: Final = 3
_Edits = dict[tuple[int, Path], Any]


def edited_where_shared(
    roots: Mapping[int, Node],
    edits: Sequence[Edit],
    wanted: Mapping[int, Any],
    patched: Callable[[Sequence[Edit]], tuple[bytes, Mapping[int, Any]] | None],
) -> bytes | None:
    """The bytes that say what is wanted, None where this way does not lead there.

    `roots` are the documents, `patched` makes edits in the text and reads the result.
    """
    own: _Edits = {
        edit[:2]: edit.value
        for edit in edits
        if _is_own(roots[edit.document], edit.path)
        and not same(get(roots[edit.document].data, edit.path), edit.value)
    }
    for _ in range(_ATTEMPTS):
        now = [Edit(document, path, value) for (document, path), value in own.items()]
        attempt = patched(now) if independent(now) else None
        if attempt is None:
            return None
        result, found = attempt
        if same(dict(found), dict(wanted)):
            return result
        if found.keys() != wanted.keys():
            return None
        for document, root in roots.items():
            for path, value in changes(found[document], wanted[document]):
                own |= _written_out(document, root, path, value, wanted[document])
    return None


def _is_own(node: Node, path: Path) -> bool:
    """Does the value stand in the text at this place, or would it, and not at another?"""
    for part in path:
        if node.kind == "alias":
            return False
        if part not in node.children:
            return not (isinstance(node.data, dict) and part in node.data)
        node = node.children[part][1]
    return True


def _written_out(document: int, root: Node, path: Path, value: Any, wanted: Any) -> _Edits:
    """The edits that make the value differ from what it shares."""
    if value is not REMOVE or not path:
        return {(document, path): value}
    above, node = path[:-1], root
    for part in above:
        if part not in node.children:
            return {(document, path): value}
        node = node.children[part][1]
    if MERGE not in node.children or path[-1] in node.children:
        return {(document, path): value}
    # one of the merged keys is to go: all others are written out in their place
    rest = get(wanted, above)
    if len(node.children) == 1:
        return {(document, above): rest}
    merged = [key for key in rest if key not in node.children]
    return {(document, (*above, MERGE)): REMOVE} | {
        (document, (*above, key)): rest[key] for key in merged
    }

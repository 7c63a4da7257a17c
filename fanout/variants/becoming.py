"""An object becomes another one as a whole: what programs answer, and what takes its place.

Fields are set one by one. Where elements came, went or moved in a list, the object is written anew
at once, so that comments, and the setters in them, go with their elements to the functions after.
"""

from typing import Any

from fanout.package.edits import Edit, same
from fanout.package.invalid import InvalidManifest
from fanout.package.manifests import Document, Manifest
from fanout.package.merge.keys import Schemas, shape_of
from fanout.package.merge.rearranging import Changes, compared, rearranged
from fanout.selection.objects import group_of
from fanout.variants.overlay import Overlay
from fanout.variants.writing import written


def become(overlay: Overlay, value: Any, schemas: Schemas) -> None:
    """Make the object this one. `schemas` are of the kinds that the package defines.

    Raises InvalidInput with file and line where the text has no room for what came before.
    """
    group, kind = group_of(str(value.get("apiVersion", ""))), str(value.get("kind", ""))
    changes = compared(overlay.value, value, shape_of(group, kind, schemas))
    lines = overlay.lines()
    if changes.lists and lines is not None:
        new = _written(overlay, lines, changes)
        if new is not None and same(new[1].value, value):
            overlay.rest_on(*new)
            return
    for path, field in changes.fields:
        overlay.set(path, field)
    for path, elements, _ in changes.lists:
        overlay.set(path, elements)


def _written(overlay: Overlay, lines: str, changes: Changes) -> tuple[str, Document] | None:
    """The object's lines after all changes, and what they say; None where that cannot be done."""
    done = overlay.outcome()
    cut = len(overlay.within)
    edits = tuple(Edit(0, edit.path[cut:], edit.value) for edit in done.edits)
    alone = Manifest.parse(lines.encode(), "")
    data = written(alone, {0: done._replace(edits=edits, text=None)})
    assert data is not None, "it is not dropped"
    fields = [Edit(0, path, value) for path, value in changes.fields]
    text = rearranged(Manifest.parse(data, "").edited(fields).decode(), changes.lists)
    if text is None:
        return None
    try:
        documents = Manifest.parse(text.encode(), "").documents
    except InvalidManifest:
        return None
    return (text, documents[0]) if len(documents) == 1 else None

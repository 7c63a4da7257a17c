"""A new rendering meets what people changed: the branch's package first, then the draft.

The base of the first is the pristine rendering that was published, so what fanout put there is
nobody's edit; the base of the second is the draft as fanout wrote it. (Design §4, "The base".)
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fanout.package.merge.conflicts import Conflict
from fanout.package.merge.packages import merge_packages
from fanout.package.tree import Entry, blob_id, tree_id
from fanout.variants.model import Rendered

Files = Mapping[str, tuple[str, bytes]]
"""Mode and content by path."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What a draft holds where people have changed something, and what was in dispute."""

    content: Rendered
    conflicts: tuple[Conflict, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edits:
    """What people changed: pairs of what fanout wrote and what it became, in order."""

    published: tuple[Files, Files] | None = None
    drafted: tuple[Files, Files] | None = None


def merge(rendering: Files, edits: Edits) -> Merged:
    """The rendering with people's edits in it; upstream wins where both changed the same.

    Raises InvalidInput, with file and line, for what cannot be merged.
    """
    files = rendering
    conflicts: list[Conflict] = []
    notes: list[str] = []
    for pair in (edits.published, edits.drafted):
        if pair is not None:
            result = merge_packages(pair[0], files, pair[1])
            files = result.files
            conflicts += result.conflicts
            notes += result.notes
    blobs = {blob_id(data): data for _, data in files.values()}
    entries = {path: Entry(mode, blob_id(data)) for path, (mode, data) in sorted(files.items())}
    content = Rendered(tree_id(entries), entries, blobs)
    return Merged(content, tuple(conflicts), tuple(dict.fromkeys(notes)))

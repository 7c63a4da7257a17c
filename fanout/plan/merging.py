"""A new rendering meets what people changed: the branch's package first, then the draft.

The base of the first is the pristine rendering that was published, so what fanout put there is
nobody's edit; the base of the second is the draft as fanout wrote it. (Design §4, "The base".)
"""

from collections.abc import Mapping

from fanout.errors import FanoutError
from fanout.package.edits import MISSING, Edit, Path, get
from fanout.package.kptfile import NAME, kptfile_of
from fanout.package.manifests import Manifest
from fanout.package.merge.conflicts import NO_CHOICES, Choices, Conflict
from fanout.package.merge.packages import merge_packages
from fanout.package.tree import Entry, blob_id, tree_id
from fanout.values import frozen
from fanout.variants.model import Rendered

_OWN: tuple[Path, ...] = (("upstream",), ("upstreamLock",))  # of a Kptfile, and fanout's alone

Files = Mapping[str, tuple[str, bytes]]
"""Mode and content by path."""


@frozen
class Merged:
    """What a draft holds where people have changed something, and what was in dispute."""

    content: Rendered
    files: Files
    conflicts: tuple[Conflict, ...] = ()
    notes: tuple[str, ...] = ()


Change = tuple[Files, Files]
"""What fanout wrote, and what it became."""


@frozen
class Edits:
    """What people changed: in the published package, then in drafts, in order."""

    published: Change | None = None
    drafted: tuple[Change, ...] = ()


def merge(rendering: Files, edits: Edits, choices: Choices = NO_CHOICES) -> Merged:
    """The rendering with people's edits in it; upstream wins where both changed the same.

    `choices` are winners that people chose. Raises InvalidInput, with file and line, for what
    cannot be merged.
    """
    files = rendering
    conflicts: list[Conflict] = []
    notes: list[str] = []
    changed = edits.drafted if edits.published is None else (edits.published, *edits.drafted)
    for before, after in changed:
        result = merge_packages(before, files, _without_own_fields(before, after), choices)
        files = result.files
        conflicts += result.conflicts
        notes += result.notes
    entries = {path: Entry(mode, blob_id(data)) for path, (mode, data) in sorted(files.items())}
    blobs = {entry.oid: files[path][1] for path, entry in entries.items()}
    content = Rendered(tree_id(entries), entries, blobs)
    return Merged(content, files, tuple(conflicts), tuple(dict.fromkeys(notes)))


def _without_own_fields(before: Files, after: Files) -> Files:
    """`after` with `upstream` and `upstreamLock` of its Kptfile as they are in `before`.

    What a draft says there is the revision that was rendered, whatever the branch said. A Kptfile
    that cannot be read stays as it is: the merge tells of it.
    """
    if NAME not in before or NAME not in after or before[NAME] == after[NAME]:
        return after
    mode, data = after[NAME]
    try:
        manifest = Manifest.parse(data, NAME)
        document = kptfile_of(manifest)
        known = kptfile_of(Manifest.parse(before[NAME][1], NAME)).value
    except FanoutError:
        return after
    edits = [
        Edit(document.index, path) if wanted is MISSING else Edit(document.index, path, wanted)
        for path in _OWN
        if (wanted := get(known, path)) != get(document.value, path)
    ]
    return {**after, NAME: (mode, manifest.edited(edits))} if edits else after

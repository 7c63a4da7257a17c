"""Merge of downstream edits, published and drafted, into a new rendering.

The base of the first merge is the pristine rendering that was published, so content written by
fanout is no edit; the base of the second is the draft as fanout wrote it (docs/concepts/merge.md).
"""

from collections.abc import Iterable, Mapping

from fanout.errors import FanoutError
from fanout.package.field_edits import MISSING, Edit, Path, get_value
from fanout.package.kptfile import KPTFILE, find_kptfile
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_conflicts import NO_CHOICES, ConflictChoices, MergeConflict
from fanout.package.merge.package_update import merge_packages
from fanout.package.tree_ids import TreeEntry, blob_id, tree_id
from fanout.values import Value
from fanout.variants.render_model import RenderedPackage

# Fields of a Kptfile that belong to fanout alone.
_FANOUT_FIELDS: tuple[Path, ...] = (("upstream",), ("upstreamLock",))

PackageFiles = Mapping[str, tuple[str, bytes]]
"""Mode and content by path."""


class MergedRendering(Value):
    """Content of a draft with downstream edits, its conflicts and notes for people."""

    content: RenderedPackage
    files: PackageFiles
    conflicts: tuple[MergeConflict, ...] = ()
    notes: tuple[str, ...] = ()


FilesChange = tuple[PackageFiles, PackageFiles]
"""Files as fanout wrote them, and as a person left them."""


def merge_edits(
    rendering: PackageFiles, edits: Iterable[FilesChange], choices: ConflictChoices = NO_CHOICES
) -> MergedRendering:
    """Merge downstream edits into the rendering; upstream wins conflicts by default.

    `edits`: those of the published package come first, then those of drafts in order: drafts were
    written on top of the published one, so that the base of a draft contains them. `choices` are
    winners that people chose. Raises InvalidInput, with file and line, for content that cannot be
    merged.
    """
    files = rendering
    conflicts: list[MergeConflict] = []
    notes: list[str] = []
    for before, after in edits:
        result = merge_packages(before, files, _without_fanout_fields(before, after), choices)
        files = result.files
        conflicts += result.conflicts
        notes += result.notes
    entries = {path: TreeEntry(mode, blob_id(data)) for path, (mode, data) in sorted(files.items())}
    blobs = {entry.oid: files[path][1] for path, entry in entries.items()}
    content = RenderedPackage(tree_id(entries), entries, blobs)
    return MergedRendering(content, files, tuple(conflicts), tuple(dict.fromkeys(notes)))


def _without_fanout_fields(before: PackageFiles, after: PackageFiles) -> PackageFiles:
    """Return `after` with the fields of its Kptfile that fanout owns as in `before`.

    A draft names the revision that was rendered, whatever the branch names. A Kptfile that
    cannot be parsed is left as it is: the merge reports it.
    """
    if KPTFILE not in before or KPTFILE not in after or before[KPTFILE] == after[KPTFILE]:
        return after
    mode, data = after[KPTFILE]
    try:
        manifest = Manifest.parse(data, KPTFILE)
        document = find_kptfile(manifest)
        base_value = find_kptfile(Manifest.parse(before[KPTFILE][1], KPTFILE)).value
    except FanoutError:
        return after
    edits = [
        Edit(document.index, path) if wanted is MISSING else Edit(document.index, path, wanted)
        for path in _FANOUT_FIELDS
        if (wanted := get_value(base_value, path)) != get_value(document.value, path)
    ]
    return {**after, KPTFILE: (mode, manifest.apply_edits_to_text(edits))} if edits else after

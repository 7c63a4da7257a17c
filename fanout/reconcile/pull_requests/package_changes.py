"""Changes that drafts make in packages, as patches and in numbers for people: equal ones once.

What is read is bounded, because a request is a text that people read; the whole change is in its
commits. Values of Secrets are masked, as `fanout diff` does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fanout.api.text_fields import pluralize
from fanout.errors import FanoutError
from fanout.package.package_patch import format_patch, mask_secrets
from fanout.package.tree_ids import FileContent, Files, TreeEntry
from fanout.plan.changes.next_drafts import find_next_draft
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.pull_requests.object_changes import (
    METADATA_FILES,
    PackageDifference,
    compare_packages,
)
from fanout.plan.pull_requests.request_values import (
    ChangedPackages,
    PackageChange,
    RequestReadings,
)
from fanout.plan.rendered_variant import RenderedVariant
from fanout.ports import GitStore
from fanout.reconcile.observation.repository_access import OpenReader, open_one_at_a_time
from fanout.values import Value

_MAX_PACKAGES: Final = 100  # of a request, whose changes are read
_MAX_FILES: Final = 50  # of a package
_MAX_FILE_LINES: Final = 200  # of the patch of a file
_MAX_LINES: Final = 400  # of a change
_MAX_FILE_SIZE: Final = 1 << 18  # bytes; comparing takes time with the square of the lines
_MAX_LINES_KEPT: Final = 200_000


_ChangedFiles = tuple[tuple[str, TreeEntry | None, TreeEntry | None], ...]
"""Files that differ between two sides of a package, but for its metadata."""


class FilePatch(Value):
    """Patch of one file, and the number of its lines that are left out."""

    lines: tuple[str, ...]
    omitted_lines: int = 0
    is_metadata: bool = False  # of the Kptfile or the context of the package


class PackagePatch(Value):
    """Patches of the files of one package, and the number of files that are left out."""

    files: tuple[FilePatch, ...]
    omitted_files: int = 0
    difference: PackageDifference = PackageDifference()


@dataclass(slots=True)
class PackageChangeReader:
    """Reads what drafts change in packages; one per process.

    Patches are kept by the namespace and the trees before and after: what one namespace has read
    is not for another that only knows the ids.
    """

    git: GitStore
    _patches: dict[tuple[str, str, str], PackagePatch] = field(default_factory=dict)
    _lines_kept: int = 0

    def read_changes(self, variants: Sequence[RenderedVariant]) -> RequestReadings:
        """Return the changes of the variants' drafts, each with the packages that have it.

        A package that cannot be read is left out: without its change a text still says what it
        is about.
        """
        paths_by_patch: dict[FilePatch, list[str]] = {}
        paths_by_difference: dict[PackageDifference, list[str]] = {}
        files_left_out: dict[int, list[str]] = {}
        differences: dict[_ChangedFiles, PackageDifference] = {}
        with open_one_at_a_time(self.git) as open_reader:
            for variant in variants[:_MAX_PACKAGES]:
                draft, old_tree = find_next_draft(variant), variant.observed.package_state.tree
                if draft is None:
                    continue
                key = variant.spec.namespace, old_tree or "", draft.tree or ""
                patch = self._patches.get(key)
                if patch is None:
                    try:
                        patch = _build_patch(variant, draft, open_reader, differences)
                    except FanoutError:
                        continue
                    size = 1 + sum(len(file.lines) for file in patch.files)
                    if self._lines_kept + size > _MAX_LINES_KEPT:
                        self._patches.clear()
                        self._lines_kept = 0
                    self._lines_kept += size
                    self._patches[key] = patch
                paths_by_difference.setdefault(patch.difference, []).append(variant.spec.path)
                for file in patch.files:
                    paths_by_patch.setdefault(file, []).append(variant.spec.path)
                if patch.omitted_files:
                    files_left_out.setdefault(patch.omitted_files, []).append(variant.spec.path)
        # The files that the same variants change alike are one change; what most have comes first.
        files_by_paths: dict[tuple[tuple[str, ...], bool], list[FilePatch]] = {}
        for file, paths in paths_by_patch.items():
            files_by_paths.setdefault((tuple(paths), file.is_metadata), []).append(file)
        changes: list[PackageChange] = []
        for shared_paths, is_metadata in sorted(files_by_paths, key=lambda it: (-len(it[0]), it)):
            lines: list[str] = []
            omitted_lines = omitted_files = 0
            for file in files_by_paths[shared_paths, is_metadata]:
                if len(lines) + len(file.lines) > _MAX_LINES:
                    omitted_files += 1
                    continue
                lines += file.lines
                omitted_lines += file.omitted_lines
            omitted = [(omitted_lines, "more line"), (omitted_files, "more file")]
            words = " and ".join(pluralize(number, noun) for number, noun in omitted if number)
            changes.append(PackageChange(shared_paths, tuple(lines), words, is_metadata))
        changes += [
            PackageChange(tuple(paths), (), f"{pluralize(number, 'more file')} of each")
            for number, paths in sorted(files_left_out.items())
        ]
        rest = [variant.spec.path for variant in variants[_MAX_PACKAGES:]]
        if rest:
            changes.append(
                PackageChange(tuple(rest), (), f"the changes of {pluralize(len(rest), 'package')}")
            )
        changed = sorted(paths_by_difference.items(), key=lambda it: (-len(it[1]), it[1]))
        return RequestReadings(
            patches=tuple(changes),
            changed=tuple(ChangedPackages(tuple(paths), it) for it, paths in changed),
        )


def _build_patch(
    variant: RenderedVariant,
    draft: OpenDraft,
    open_reader: OpenReader,
    differences: dict[_ChangedFiles, PackageDifference],
) -> PackagePatch:
    """Compare the package on the branch with the draft. Raises what reading raises.

    `differences` are those of the request's packages so far, most of which change alike: their
    objects are compared once.
    """
    content, package = variant.draft_content, variant.selected.package
    old_tree = variant.observed.package_state.tree
    old_remote = variant.observed.package_location.repository_state.remote
    new_remote = variant.observed.repository_state.remote
    old: Mapping[str, TreeEntry] = {}
    new: Mapping[str, TreeEntry] = {}
    if old_tree is not None:
        old = open_reader(old_remote).entries(old_tree)
    if not draft.commit:
        assert content is not None, "a draft without a commit is to be written"
        new = content.entries
    elif draft.tree is not None:
        new = open_reader(new_remote).entries(draft.tree)
    changed = sorted(it for it in old.keys() | new.keys() if old.get(it) != new.get(it))
    shown = changed[:_MAX_FILES]
    before: Files = {}
    if old_tree is not None:
        reader = open_reader(old_remote)
        before = {it: (old[it].mode, reader.blob(old[it].oid)) for it in shown if it in old}
    # Content of the draft that may be written by this pass only.
    data_by_oid: dict[str, bytes] = {}
    if content is not None and package is not None:
        data_by_oid = {entry.oid: data for entry, data in package.upstream.files.values()}
    if content is not None:
        data_by_oid |= content.blobs
    reader = open_reader(new_remote)
    after: dict[str, FileContent] = {}
    for path in (it for it in shown if it in new):
        data = data_by_oid.get(new[path].oid)
        after[path] = new[path].mode, reader.blob(new[path].oid) if data is None else data
    masked = mask_secrets((before, after), ("before", "after"))
    files: list[FilePatch] = []
    for path in shown:
        sides = [{path: side[path]} if path in side else {} for side in masked]
        size = sum(len(data) for side in sides for _, data in side.values())
        if size > _MAX_FILE_SIZE:
            lines = (f"diff --git a/{path} b/{path}", f"{size:,} bytes, too long to compare")
            files.append(FilePatch(lines))
            continue
        patch = tuple(format_patch(sides[0], sides[1], ("a", "b")))
        omitted_lines = max(0, len(patch) - _MAX_FILE_LINES)
        files.append(FilePatch(patch[:_MAX_FILE_LINES], omitted_lines, path in METADATA_FILES))
    key = tuple((it, old.get(it), new.get(it)) for it in changed if it not in METADATA_FILES)
    if key not in differences:
        # Masked, so that no value of a Secret can be shown; without what takes long to be parsed.
        before, after = (
            {it: file for it, file in side.items() if len(file[1]) <= _MAX_FILE_SIZE}
            for side in masked
        )
        differences[key] = compare_packages(
            old.keys() & changed, new.keys() & changed, before, after
        )
    return PackagePatch(tuple(files), len(changed) - len(shown), differences[key])

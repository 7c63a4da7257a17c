"""Changes that drafts make in packages, as patches for people: equal ones once.

What is read is bounded, because a request is a text that people read; the whole change is in its
commits. Values of Secrets are masked, as `fanout diff` does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fanout.api.text_fields import pluralize
from fanout.errors import FanoutError
from fanout.package.merge.package_update import Files
from fanout.package.package_patch import format_patch
from fanout.package.secret_redaction import mask_secrets
from fanout.package.tree_ids import TreeEntry
from fanout.plan.drafts.next_draft import find_next_draft
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.pull_requests.request_text import PackageChange
from fanout.plan.rendered_variant import RenderedVariant
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.observation.mirror_access import OpenReader, open_one_at_a_time
from fanout.values import Value

_MAX_PACKAGES: Final = 100  # of a request, whose changes are read
_MAX_FILES: Final = 50  # of a package
_MAX_FILE_LINES: Final = 200  # of the patch of a file
_MAX_LINES: Final = 400  # of a change
_MAX_FILE_SIZE: Final = 1 << 18  # bytes; comparing takes time with the square of the lines
_MAX_LINES_KEPT: Final = 200_000


class FilePatch(Value):
    """Patch of one file, and the number of its lines that are left out."""

    lines: tuple[str, ...]
    omitted_lines: int = 0


class PackagePatch(Value):
    """Patches of the files of one package, and the number of files that are left out."""

    files: tuple[FilePatch, ...]
    omitted_files: int = 0


@dataclass(slots=True)
class PackageChangeReader:
    """Reads what drafts change in packages; one per process.

    Patches are kept by the namespace and the trees before and after: what one namespace has read
    is not for another that only knows the ids.
    """

    git: GitStore
    _patches: dict[tuple[str, str, str], PackagePatch] = field(default_factory=dict)
    _lines_kept: int = 0

    def read_changes(self, variants: Sequence[RenderedVariant]) -> tuple[PackageChange, ...]:
        """Return the changes of the variants' drafts, each with the packages that have it.

        A package that cannot be read is left out: without its change a text still says what it
        is about.
        """
        paths_by_patch: dict[FilePatch, list[str]] = {}
        files_left_out: dict[int, list[str]] = {}
        with open_one_at_a_time(self.git) as open_reader:
            for variant in variants[:_MAX_PACKAGES]:
                patch = self._find_patch(variant, open_reader)
                for file in patch.files:
                    paths_by_patch.setdefault(file, []).append(variant.spec.path)
                if patch.omitted_files:
                    files_left_out.setdefault(patch.omitted_files, []).append(variant.spec.path)
        changes = _join_patches(paths_by_patch)
        changes += [
            PackageChange(tuple(paths), (), f"{pluralize(number, 'more file')} of each")
            for number, paths in sorted(files_left_out.items())
        ]
        rest = [variant.spec.path for variant in variants[_MAX_PACKAGES:]]
        if rest:
            changes.append(
                PackageChange(tuple(rest), (), f"the changes of {pluralize(len(rest), 'package')}")
            )
        return tuple(changes)

    def _find_patch(self, variant: RenderedVariant, open_reader: OpenReader) -> PackagePatch:
        draft = find_next_draft(variant)
        if draft is None:
            return PackagePatch(())
        old_tree = variant.observed.package_state.tree
        key = variant.spec.namespace, old_tree or "", draft.tree or ""
        patch = self._patches.get(key)
        if patch is None:
            try:
                patch = _build_patch(variant, draft, open_reader)
            except FanoutError:
                return PackagePatch(())
            size = 1 + sum(len(file.lines) for file in patch.files)
            if self._lines_kept + size > _MAX_LINES_KEPT:
                self._patches.clear()
                self._lines_kept = 0
            self._lines_kept += size
            self._patches[key] = patch
        return patch


def _join_patches(paths_by_patch: Mapping[FilePatch, Sequence[str]]) -> list[PackageChange]:
    """Join the files that the same variants change alike; what most have comes first."""
    files_by_paths: dict[tuple[str, ...], list[FilePatch]] = {}
    for file, paths in paths_by_patch.items():
        files_by_paths.setdefault(tuple(paths), []).append(file)
    changes: list[PackageChange] = []
    for paths in sorted(files_by_paths, key=lambda it: (-len(it), it)):
        lines: list[str] = []
        omitted_lines = omitted_files = 0
        for file in files_by_paths[paths]:
            if len(lines) + len(file.lines) > _MAX_LINES:
                omitted_files += 1
                continue
            lines += file.lines
            omitted_lines += file.omitted_lines
        omitted = [(omitted_lines, "more line"), (omitted_files, "more file")]
        words = " and ".join(pluralize(number, noun) for number, noun in omitted if number)
        changes.append(PackageChange(paths, tuple(lines), words))
    return changes


def _build_patch(
    variant: RenderedVariant, draft: OpenDraft, open_reader: OpenReader
) -> PackagePatch:
    """Compare the package on the branch with the draft. Raises what reading raises."""
    location = variant.observed.package_location
    old_tree = variant.observed.package_state.tree
    old: Mapping[str, TreeEntry] = {}
    if old_tree is not None:
        old = open_reader(location.repository_state.remote).entries(old_tree)
    new = _read_entries(variant, draft, open_reader)
    changed = sorted(it for it in old.keys() | new.keys() if old.get(it) != new.get(it))
    shown = changed[:_MAX_FILES]
    before: Files = {}
    if old_tree is not None:
        reader = open_reader(location.repository_state.remote)
        before = {it: (old[it].mode, reader.blob(old[it].oid)) for it in shown if it in old}
    reader = open_reader(variant.observed.repository_state.remote)
    after = {
        it: (new[it].mode, _read_content(variant, new[it].oid, reader)) for it in shown if it in new
    }
    masked_before, masked_after = mask_secrets((before, after), ("before", "after"))
    return PackagePatch(
        tuple(_patch_file(path, masked_before, masked_after) for path in shown),
        len(changed) - len(shown),
    )


def _read_entries(
    variant: RenderedVariant, draft: OpenDraft, open_reader: OpenReader
) -> Mapping[str, TreeEntry]:
    if not draft.commit:
        assert variant.draft_content is not None, "a draft without a commit is to be written"
        return variant.draft_content.entries
    if draft.tree is None:
        return {}
    return open_reader(variant.observed.repository_state.remote).entries(draft.tree)


def _read_content(variant: RenderedVariant, oid: str, reader: ObjectReader) -> bytes:
    """Return the content of a file of the draft, which may be written by this pass only."""
    content, package = variant.draft_content, variant.selected.package
    data = content.blobs.get(oid) if content is not None else None
    if data is None and content is not None and package is not None:
        files = package.upstream.files.values()
        data = next((data for entry, data in files if entry.oid == oid), None)
    return reader.blob(oid) if data is None else data


def _patch_file(path: str, before: Files, after: Files) -> FilePatch:
    sides = [{path: side[path]} if path in side else {} for side in (before, after)]
    size = sum(len(data) for side in sides for _, data in side.values())
    if size > _MAX_FILE_SIZE:
        return FilePatch((f"diff --git a/{path} b/{path}", f"{size:,} bytes, too long to compare"))
    lines = tuple(format_patch(sides[0], sides[1], ("a", "b")))
    return FilePatch(lines[:_MAX_FILE_LINES], max(0, len(lines) - _MAX_FILE_LINES))

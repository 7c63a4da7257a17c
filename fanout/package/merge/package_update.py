"""Update of a package: the three-way merge, and the other update strategies.

`resource-merge` is the contract of design §4, and kpt's where that is silent (porch.md
§3.3). Each package and subpackage is merged by itself, because objects of one identity
may exist in several of them. Files that are equal on all sides are not read, and
neither is a Kptfile that is unchanged locally.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from fanout.api.reasons import Reason
from fanout.api.text_fields import list_first, pluralize
from fanout.control_characters import escape_unprintable
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import MISSING, REMOVE, Edit, apply_edits, get_value, same_json
from fanout.package.ignored_files import find_ignored
from fanout.package.json_manifest import is_json
from fanout.package.kptfile import KPTFILE_NAME as KPTFILE
from fanout.package.kptfile import find_package, package_directories
from fanout.package.manifest import Manifest
from fanout.package.merge.kpt_annotations import equal_files
from fanout.package.merge.line_merge import build_file_conflict, merge_plain_file
from fanout.package.merge.merge_conflicts import (
    NO_CHOICES,
    ConflictCause,
    ConflictChoices,
    MergeConflict,
    MergeSide,
    build_conflict,
)
from fanout.package.merge.merge_keys import Schemas, read_schemas
from fanout.package.merge.merge_notes import find_doubtful_files, find_lost_comments
from fanout.package.merge.merge_units import (
    DocumentReader,
    MergeFile,
    collect_units,
    follow_namespaces,
    is_list,
    is_manifest,
)
from fanout.package.merge.merge_values import ValueSource
from fanout.package.merge.merge_writer import ResultUnit, write_file
from fanout.package.merge.object_merge import ObjectMerge, find_crds
from fanout.package.sealed_values import find_seal
from fanout.package.tree_ids import TreeEntry, blob_id, tree_id
from fanout.package.yaml_nodes import InvalidManifest
from fanout.values import Value, replace

FileContent = tuple[str, bytes]  # mode as git writes it, and bytes
Files = Mapping[str, FileContent]
PackageSides = tuple[Files, Files, Files]  # origin, upstream, local
_MODES = frozenset(("100644", "100755"))
_CRD = b"CustomResourceDefinition"
_SEPARATOR = re.compile(rb"^(?:---|\.\.\.|%)", re.MULTILINE)  # of documents


class MergeResult(Value):
    """Merged package, its conflicts, and notes for people."""

    files: dict[str, FileContent]
    conflicts: tuple[MergeConflict, ...] = ()
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()  # files whose local content a blunt strategy gave up


@dataclass(slots=True)
class PackageMerge:
    """State of one merge in progress."""

    choices: ConflictChoices
    schemas: Schemas
    reader: DocumentReader
    files: dict[str, FileContent] = field(default_factory=dict)
    conflicts: list[MergeConflict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sealed_files: set[str] = field(default_factory=set)  # files that are one value
    ignored: frozenset[str] = frozenset()  # files that a side's `.krmignore` names


def merge_packages(
    origin: Files, upstream: Files, local: Files, choices: ConflictChoices = NO_CHOICES
) -> MergeResult:
    """Apply upstream's changes since the origin to the local package.

    `choices` names winners of conflicts by their key. Without one upstream wins, except
    that an object or file that one side deleted and the other changed keeps its local
    state. Raises InvalidInput for links and submodules.
    """
    sides: PackageSides = origin, upstream, local
    for files in sides:
        check_file_modes(files)
    if upstream in (origin, local):
        return MergeResult(dict(local))
    if local == origin:
        return MergeResult(dict(upstream))
    reader = DocumentReader()
    merge = PackageMerge(choices, _collect_schemas(sides, reader), reader)
    merge.ignored = frozenset().union(*map(find_ignored, sides))
    directories = set().union(*map(package_directories, sides))
    whole_packages = _decide_subpackages(sides, directories, merge)
    for directory, paths in _paths_by_package(sides, directories).items():
        if not any(_is_inside(directory, whole_package) for whole_package in whole_packages):
            _merge_one_package(directory, paths, sides, merge)
    for directory, side in whole_packages.items():
        winner = upstream if side is MergeSide.UPSTREAM else local
        # A subpackage that one side added or deleted has no base on the other: mixing two
        # such trees object by object would build a package that nobody wrote.
        merge.files |= {p: c for p, c in winner.items() if _is_inside(p, directory)}
    # Last, because only the complete result shows whether a file and a directory have one name.
    _resolve_path_collisions(sides, merge)
    merge.notes += find_doubtful_files(sides, reader, merge.ignored)
    files = dict(sorted(merge.files.items()))
    return MergeResult(files, tuple(merge.conflicts), tuple(merge.notes))


def check_file_modes(files: Files) -> None:
    """Raise InvalidInput for a link or a submodule: it cannot be merged."""
    for path, (mode, _) in files.items():
        if mode not in _MODES:
            raise InvalidInput(
                "it is neither a file nor an executable file",
                reason=Reason.INVALID_PACKAGE,
                remedy="replace links and submodules by files",
                where=ErrorLocation(file=path),
            )


def _collect_schemas(sides: PackageSides, reader: DocumentReader) -> Schemas:
    """Return the shapes of custom resources that any side defines, in any of its packages."""
    crd_files: dict[bytes, MergeFile | None] = {}
    for files in sides:
        for path, (_, data) in files.items():
            if _CRD in data and data not in crd_files and is_manifest(path):
                crd_files[data] = reader.parse(path, data)
    units, _ = collect_units([[file for file in crd_files.values() if file]])
    return read_schemas(find_crds(units))


# ---- packages inside the package ----------------------------------------------------------------


def _is_inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _decide_subpackages(
    sides: PackageSides, directories: set[str], merge: PackageMerge
) -> dict[str, MergeSide]:
    """Return the winning side of each subpackage taken as a whole (porch.md §3.3.1)."""
    winners: dict[str, MergeSide] = {}
    for directory in sorted(directories - {""}):
        if any(_is_inside(directory, outer) for outer in winners):
            continue
        match tuple(f"{directory}/{KPTFILE}" in files for files in sides):
            case False, True, True:
                cause, one, other = ConflictCause.BOTH_ADDED, sides[1], sides[2]
            case True, True, False:
                cause, one, other = ConflictCause.DELETED_HERE, sides[0], sides[1]
            case True, False, True:
                cause, one, other = ConflictCause.DELETED_THERE, sides[0], sides[2]
            case _:
                continue
        if not _equal_subpackages(directory, one, other):
            winners[directory] = _record_subpackage_conflict(directory, cause, sides, merge)
        elif cause is ConflictCause.DELETED_HERE:
            winners[directory] = MergeSide.LOCAL
    return winners


def _equal_subpackages(directory: str, left: Files, right: Files) -> bool:
    """Return whether two sides have the same subpackage, but for kpt's annotations."""
    paths = {path for path in (*left, *right) if _is_inside(path, directory)}
    return all(equal_files(path, left.get(path), right.get(path)) for path in paths)


def _subpackage_tree_id(files: Files, directory: str) -> str:
    tree_entries = {
        p: TreeEntry(m, blob_id(d)) for p, (m, d) in files.items() if _is_inside(p, directory)
    }
    return tree_id(tree_entries) if tree_entries else ""


def _record_subpackage_conflict(
    directory: str, cause: ConflictCause, sides: PackageSides, merge: PackageMerge
) -> MergeSide:
    """Record a conflict about a subpackage and return its winner.

    The message says how many files differ, since a tree's id would tell people nothing.
    """
    trees = [_subpackage_tree_id(files, directory) for files in sides]
    origin_tree, upstream_tree, local_tree = (f"tree {tree}" if tree else MISSING for tree in trees)
    where = ErrorLocation(file=directory)
    conflict = build_conflict(
        where, cause, (origin_tree, upstream_tree, local_tree), MergeSide.LOCAL, merge.choices
    )
    compared_sides = (1, 2) if trees[1] and trees[2] else (0, 1 if trees[1] else 2)
    one, other = (
        {(path, *content) for path, content in sides[side].items() if _is_inside(path, directory)}
        for side in compared_sides
    )
    files = pluralize(len({path for path, *_ in one ^ other}), "file")
    one_name, other_name = (("base", "upstream", "local")[side] for side in compared_sides)
    merge.conflicts.append(
        replace(conflict, difference=f"{one_name} and {other_name} differ in {files}")
    )
    return conflict.winner


def _paths_by_package(sides: PackageSides, directories: set[str]) -> dict[str, list[str]]:
    paths_by_directory: dict[str, list[str]] = {}
    for path in sorted({path for files in sides for path in files}):
        paths_by_directory.setdefault(find_package(path, directories), []).append(path)
    return paths_by_directory


# ---- one package --------------------------------------------------------------------------------


def _merge_one_package(
    directory: str, paths: Sequence[str], sides: PackageSides, merge: PackageMerge
) -> None:
    changed: list[str] = []
    for path in paths:
        origin, upstream, local = (files.get(path) for files in sides)
        if origin == upstream == local:
            if local is not None:
                merge.files[path] = local
        # Every variant has a Kptfile, and most are unchanged locally: none of these has to
        # be parsed.
        elif upstream and origin == local and _is_single_kptfile(path, (origin, upstream)):
            merge.files[path] = upstream
        else:
            changed.append(path)
    upstream_changed = [path for path in changed if sides[0].get(path) != sides[1].get(path)]
    only_local_changed = sorted(set(changed).difference(upstream_changed))
    manifests = _parse_manifests(upstream_changed, sides, merge)
    # An object may move between files, so in general all changed files have to be read. Most
    # revisions move none: then the files that only the local side changed are taken as bytes.
    if _have_same_objects(set(upstream_changed) - merge.ignored, manifests):
        merge.files |= {path: sides[2][path] for path in only_local_changed if path in sides[2]}
        merge.files |= {
            path: sides[1][path] for path in upstream_changed if _is_unchanged_locally(path, sides)
        }
        changed = [path for path in upstream_changed if not _is_unchanged_locally(path, sides)]
        manifests = {path: it for path, it in manifests.items() if path in changed}
    elif only_local_changed:
        manifests |= _parse_manifests(only_local_changed, sides, merge)
        manifests = {path: manifests[path] for path in changed if path in manifests}
    for path in changed:
        if path not in manifests:
            _merge_plain(path, sides, merge)
    _merge_manifests(manifests, sides, merge, is_root_package=not directory)


def _is_unchanged_locally(path: str, sides: PackageSides) -> bool:
    """Return whether the file exists on all sides and is unchanged locally."""
    origin, upstream, local = (files.get(path) for files in sides)
    return upstream is not None and origin is not None and origin == local


def _is_single_kptfile(path: str, contents: Sequence[FileContent | None]) -> bool:
    """Return whether the file is a Kptfile of one document, matched without parsing."""
    return path.rpartition("/")[2] == KPTFILE and not any(
        content and _SEPARATOR.search(content[1]) for content in contents
    )


def _parse_manifests(
    paths: Iterable[str], sides: PackageSides, merge: PackageMerge
) -> dict[str, "ParsedSides"]:
    return {path: parsed for path in paths if (parsed := _parse_manifest(path, sides, merge))}


def _have_same_objects(paths: Iterable[str], manifests: Mapping[str, "ParsedSides"]) -> bool:
    """Return whether each file that upstream changed has the same objects on all sides.

    Then no object moves between files, and files that upstream did not change stay unread.
    """
    if any(path not in manifests and is_manifest(path) for path in paths):
        return False
    files = [[parsed[side] for parsed in manifests.values()] for side in range(3)]
    units, notes = collect_units([[file for file in side if file] for side in files])
    containers = [{key: unit.container for key, unit in side.items()} for side in units]
    return not notes and containers[0] == containers[1] == containers[2]


ParsedSides = tuple[MergeFile | None, MergeFile | None, MergeFile | None]


def _parse_manifest(path: str, sides: PackageSides, merge: PackageMerge) -> ParsedSides | None:
    """Parse a file of objects on all sides that have it; None if it is merged as text."""
    if not is_manifest(path):
        return None
    contents = [files.get(path) for files in sides]
    parsed = [merge.reader.parse(path, content[1]) if content else None for content in contents]
    if path in merge.ignored:
        # Bytes, but a MAC over them is one all the same.
        if any(find_seal(it.value.data) for file in parsed if file for it in file.documents):
            merge.sealed_files.add(path)
        return None
    unread = [side for side, c, f in zip(_SIDE_NAMES, contents, parsed, strict=True) if c and not f]
    if unread:
        if not is_json(path):
            merge.notes.append(f"{path}: not readable as YAML ({unread[0]}); merged as text")
        return None
    present = [file for file in parsed if file is not None]
    if not any(file.documents for file in present):
        return None
    if any(map(_is_sealed_file, present)):
        merge.sealed_files.add(path)
        return None
    if is_json(path):  # a JSON file holds one object, or one List
        units, _ = collect_units([[file] for file in present])
        # Different objects on the sides cannot both be in one JSON file, so the file is
        # merged as text.
        if len({next(iter(side)) for side in units}) > 1:
            return None
    return parsed[0], parsed[1], parsed[2]


def _is_sealed_file(file: MergeFile) -> bool:
    """Return whether the file is sealed beyond a single object."""
    sealed = [it.value.data for it in file.documents if find_seal(it.value.data)]
    # SOPS computes one MAC over all documents of a file and writes it into each of them. A
    # document that alone has one is an object among others, and a List is none.
    return len(sealed) > 1 or any(map(is_list, sealed))


_SIDE_NAMES = ("origin", "upstream", "local")


def _merge_plain(path: str, sides: PackageSides, merge: PackageMerge) -> None:
    origin, upstream, local = (_file_bytes(path, files) for files in sides)
    is_sealed = path in merge.sealed_files
    data, conflict = merge_plain_file(
        path, origin, upstream, local, merge.choices, is_sealed=is_sealed
    )
    if conflict:
        merge.conflicts.append(conflict)
    if data is not None:
        merge.files[path] = _merge_mode(path, sides), data


def _file_bytes(path: str, files: Files) -> bytes | None:
    return files[path][1] if path in files else None


def _merge_mode(path: str, sides: PackageSides) -> str:
    """Merge the file mode three ways; new files have upstream's."""
    origin, upstream, local = (files[path][0] if path in files else None for files in sides)
    mode = upstream if local == origin or local is None else local
    return mode or local or "100644"


def _merge_manifests(
    manifests: Mapping[str, ParsedSides],
    sides: PackageSides,
    merge: PackageMerge,
    *,
    is_root_package: bool,
) -> None:
    files = [[f[side] for f in manifests.values() if f[side]] for side in range(3)]
    units, notes = collect_units([[file for file in side if file] for side in files])
    merge.notes += notes
    objects = ObjectMerge(
        units[0],
        *follow_namespaces(*units),
        merge.schemas,
        merge.choices,
        is_root_package,
        merge.conflicts,
    )
    placed: dict[str, list[ResultUnit]] = {}
    for key in objects.ordered_keys():
        destination = objects.find_destination(key)
        if destination is None or len(destination) > 1:
            continue  # the items of a List come with it
        outcome = objects.merge_unit(key)
        if outcome.source is not ValueSource.REMOVED:
            path = str(destination[0])
            placed.setdefault(path, []).append(ResultUnit(path, outcome, objects.units_of_key(key)))
    for path, (origin_file, upstream_file, local_file) in manifests.items():
        is_emptied = upstream_file and not upstream_file.documents and path not in placed
        # Nobody touched the file here: upstream's bytes, comments alone if that is what they are.
        if is_emptied and origin_file and local_file and origin_file.data == local_file.data:
            merge.files[path] = sides[1][path]
    written: dict[str, bytes] = {}
    for path, placed_units in placed.items():
        written[path] = write_file(placed_units, manifests[path], merge.reader)
        merge.files[path] = _merge_mode(path, sides), written[path]
    origin, _, local = ([file for file in side if file] for side in files)
    merge.notes += find_lost_comments(origin, local, written)


# ---- names --------------------------------------------------------------------------------------


def _resolve_path_collisions(sides: PackageSides, merge: PackageMerge) -> None:
    """Resolve paths that are a file and a directory; note paths that differ by case alone."""
    folded: dict[str, str] = {}
    for path in sorted(merge.files):
        other = folded.setdefault(path.casefold(), path)
        if other != path:
            merge.notes.append(f"{path} and {other} differ only in case")
        for parent in _parents(path):
            if parent in merge.files and path in merge.files:
                _choose_file_or_directory(parent, sides, merge)


def _parents(path: str) -> Iterator[str]:
    """Yield the directories around a file, the innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def _choose_file_or_directory(name: str, sides: PackageSides, merge: PackageMerge) -> None:
    """Leave either the file or the directory of that name, the one that the conflicts name.

    A path that is only on the local side stays if it won a conflict before; otherwise the
    path is a conflict.
    """
    at_name = {path for path in merge.files if _is_inside(path, name)}
    local_paths = {path for path in at_name if path in sides[2] and path not in sides[1]}
    winners = {path for path in local_paths if _wins_locally(path, sides, merge)}
    for path in at_name - winners if winners else local_paths:
        del merge.files[path]
    for path in winners:
        # With all its objects: some may have followed upstream into files that now go.
        merge.files[path] = sides[2][path]
    if winners:
        kinds = "a file", "a directory"
        local, upstream = kinds if name in winners else kinds[::-1]
        merge.notes.append(
            f"{name} is {local} here and {upstream} upstream; upstream's is left out"
        )


def _wins_locally(path: str, sides: PackageSides, merge: PackageMerge) -> bool:
    """Return whether a local path stays where upstream has a file and a directory in its way."""
    if any(it.where.file == path and it.winner is MergeSide.LOCAL for it in merge.conflicts):
        return True
    origin, upstream, local = (_file_bytes(path, files) for files in sides)
    cause, default = ConflictCause.BOTH_ADDED, MergeSide.UPSTREAM
    if origin is not None:
        cause, default = ConflictCause.DELETED_THERE, MergeSide.LOCAL
    conflict = build_file_conflict(path, cause, (origin, upstream, local), default, merge.choices)
    merge.conflicts.append(conflict)
    return conflict.winner is MergeSide.LOCAL


_MAX_SHOWN: Final = 5  # names in a message
# Fields that differ in every clone; a package without other changes counts as unchanged.
_CLONE_FIELDS: Final = (
    ("metadata", "name"),
    ("upstream",),
    ("upstreamLock",),
    ("status", "renderStatus"),
)


class KptUpdateStrategy(StrEnum):
    """Update strategy of a Kptfile (`upstream.updateStrategy`). The first one is the default."""

    RESOURCE_MERGE = "resource-merge"
    FAST_FORWARD = "fast-forward"
    FORCE_DELETE_REPLACE = "force-delete-replace"
    COPY_MERGE = "copy-merge"


def update_package(
    strategy: KptUpdateStrategy,
    origin: Files,
    upstream: Files,
    local: Files,
    choices: ConflictChoices = NO_CHOICES,
) -> MergeResult:
    """Return the local package after an update by a strategy.

    The package's own Kptfile is always merged, so that its name, origin and added functions
    stay. `dropped` names the files whose local content is lost. Raises InvalidInput if
    fast-forward finds local changes, and as `merge_packages` does.
    """
    if strategy is KptUpdateStrategy.RESOURCE_MERGE:
        return merge_packages(origin, upstream, local, choices)
    if strategy is KptUpdateStrategy.FAST_FORWARD:
        _refuse_local_changes(origin, local)
    kptfile = merge_packages(
        _kptfile_only(origin), _kptfile_only(upstream), _kptfile_only(local), choices
    )
    files = dict(upstream)
    if strategy is KptUpdateStrategy.COPY_MERGE:
        directories = {parent for path in files for parent in _parents(path)}
        local_additions = {
            path: content
            for path, content in local.items()
            # A file and a directory of one name cannot both be in a tree.
            if path not in origin
            and path not in directories
            and not any(parent in files for parent in _parents(path))
        }
        files = {**local_additions, **files}
    # Upstream's Kptfile would name upstream's package; the merged one, if there is one,
    # replaces it.
    files.pop(KPTFILE, None)
    files = dict(sorted((files | kptfile.files).items()))
    dropped = tuple(
        path
        for path, content in sorted(local.items())
        if path != KPTFILE
        and files.get(path) != content
        and not equal_files(path, content, origin.get(path))
    )
    return replace(kptfile, files=files, dropped=dropped)


def _kptfile_only(files: Files) -> Files:
    return {KPTFILE: files[KPTFILE]} if KPTFILE in files else {}


def _refuse_local_changes(origin: Files, local: Files) -> None:
    changed = [
        path
        for path in sorted({*origin, *local})
        if not equal_files(path, origin.get(path), local.get(path))
        and not (path == KPTFILE and _equal_but_clone_fields(origin, local))
    ]
    if changed:
        raise InvalidInput(
            "the package cannot be fast-forwarded:"
            f" {list_first([*map(escape_unprintable, changed)], _MAX_SHOWN)} changed locally",
            reason=Reason.INVALID_PACKAGE,
            remedy=f"revert the changes, or use updateStrategy {KptUpdateStrategy.RESOURCE_MERGE}",
        )


def _equal_but_clone_fields(origin: Files, local: Files) -> bool:
    try:
        origin_data, local_data = (list(_without_clone_fields(files)) for files in (origin, local))
    except (KeyError, InvalidManifest):
        return False
    return same_json(origin_data, local_data)


def _without_clone_fields(files: Files) -> Iterator[Any]:
    """Yield the Kptfile's data without the fields that differ in every clone."""
    for document in Manifest.parse(files[KPTFILE][1], KPTFILE).documents:
        value = document.value
        for path in _CLONE_FIELDS:
            if get_value(value, path) is not MISSING:
                value = apply_edits(value, [Edit(0, path, REMOVE)])
        if get_value(value, ("status",)) == {}:
            value = apply_edits(value, [Edit(0, ("status",), REMOVE)])
        yield value

"""Update of a package: the three-way merge, and the other update strategies.

`resource-merge` is the merge of docs/concepts/merge.md, and kpt's where that page is silent
(docs/reference/kpt-differences.md). Each package and subpackage is merged by itself, because
objects of one identity may exist in several of them. Files that are equal on all sides are not
read, and neither is a Kptfile that is unchanged locally.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.api.text_fields import list_first, pluralize
from fanout.control_characters import escape_unprintable
from fanout.errors import ErrorLocation
from fanout.package.field_edits import MISSING, REMOVE, get_value, same_json, with_value
from fanout.package.ignored_files import find_ignored
from fanout.package.json_manifest import is_json
from fanout.package.kptfile import KPTFILE, find_package, package_directories, package_problem
from fanout.package.manifest import Manifest
from fanout.package.merge.kpt_clone import equal_files
from fanout.package.merge.line_merge import build_file_conflict, merge_order, merge_plain_file
from fanout.package.merge.merge_conflicts import (
    NO_CHOICES,
    ConflictCause,
    ConflictChoices,
    MergeConflict,
    build_conflict,
)
from fanout.package.merge.merge_keys import Schemas, read_schemas
from fanout.package.merge.merge_output import (
    FileSides,
    ResultUnit,
    find_doubtful_files,
    find_lost_comments,
    write_file,
)
from fanout.package.merge.merge_units import (
    DocumentReader,
    MergeFile,
    collect_units,
    follow_namespaces,
    is_list,
    is_manifest,
)
from fanout.package.merge.merge_values import ValueSource, find_seal
from fanout.package.merge.object_merge import ObjectMerge
from fanout.package.tree_ids import FileContent, Files, TreeEntry, blob_id, tree_id
from fanout.package.yaml_nodes import InvalidManifest
from fanout.values import Value, replace

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

    sides: PackageSides
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
    # Custom resources that any side defines, in any of its packages.
    crd_files: dict[bytes, MergeFile | None] = {}
    for files in sides:
        for path, (_, data) in files.items():
            if _CRD in data and data not in crd_files and is_manifest(path):
                crd_files[data] = reader.parse(path, data)
    units, _ = collect_units([[file for file in crd_files.values() if file]])
    schemas = read_schemas(
        unit.value.data for side in units for key, unit in side.items() if key[0] == "object"
    )
    merge = PackageMerge(sides, choices, schemas, reader)
    merge.ignored = frozenset().union(*map(find_ignored, sides))
    directories = set().union(*map(package_directories, sides))
    whole_packages = _decide_subpackages(directories, merge)
    paths_by_directory: dict[str, list[str]] = {}
    for path in sorted({path for files in sides for path in files}):
        paths_by_directory.setdefault(find_package(path, directories), []).append(path)
    for directory, paths in paths_by_directory.items():
        if not any(_is_inside(directory, whole_package) for whole_package in whole_packages):
            _merge_one_package(directory, paths, merge)
    for directory, side in whole_packages.items():
        winner = upstream if side is ConflictWinner.UPSTREAM else local
        # A subpackage that one side added or deleted has no base on the other: mixing two such
        # trees object by object would build a package that nobody wrote.
        merge.files |= {p: c for p, c in winner.items() if _is_inside(p, directory)}
    # Last, because only the complete result shows whether a file and a directory have one name.
    folded: dict[str, str] = {}
    for path in sorted(merge.files):
        if (other := folded.setdefault(path.casefold(), path)) != path:
            merge.notes.append(f"{path} and {other} differ only in case")
        for parent in _parents(path):
            if parent in merge.files and path in merge.files:
                _choose_file_or_directory(parent, merge)
    merge.notes += find_doubtful_files(sides, reader, merge.ignored)
    files = dict(sorted(merge.files.items()))
    return MergeResult(files, tuple(merge.conflicts), tuple(merge.notes))


def check_file_modes(files: Files) -> None:
    """Raise InvalidInput for a link or a submodule: it cannot be merged."""
    for path, (mode, _) in files.items():
        if mode not in _MODES:
            problem = "it is neither a file nor an executable file"
            remedy = "replace links and submodules by files"
            raise package_problem(problem, remedy, ErrorLocation(file=path))


# ---- packages inside the package ----------------------------------------------------------------


def _is_inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _decide_subpackages(directories: set[str], merge: PackageMerge) -> dict[str, ConflictWinner]:
    """Return the winning side of each subpackage taken as a whole."""
    sides = merge.sides
    winners: dict[str, ConflictWinner] = {}
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
        paths = {path for path in (*one, *other) if _is_inside(path, directory)}
        if not all(equal_files(path, one.get(path), other.get(path)) for path in paths):
            winners[directory] = _record_subpackage_conflict(directory, cause, merge)
        elif cause is ConflictCause.DELETED_HERE:
            winners[directory] = ConflictWinner.LOCAL
    return winners


def _record_subpackage_conflict(
    directory: str, cause: ConflictCause, merge: PackageMerge
) -> ConflictWinner:
    """Record a conflict about a subpackage and return its winner.

    The message says how many files differ, since a tree's id would tell people nothing.
    """
    parts = [
        {path: content for path, content in files.items() if _is_inside(path, directory)}
        for files in merge.sides
    ]
    entries = [
        {path: TreeEntry(mode, blob_id(data)) for path, (mode, data) in part.items()}
        for part in parts
    ]
    origin, upstream, local = (f"tree {tree_id(it)}" if it else MISSING for it in entries)
    values, where = (origin, upstream, local), ErrorLocation(file=directory)
    conflict = build_conflict(where, cause, values, ConflictWinner.LOCAL, merge.choices)
    one, other = (1, 2) if parts[1] and parts[2] else (0, 1 if parts[1] else 2)
    differing = {path for path, _ in parts[one].items() ^ parts[other].items()}
    names = ("base", "upstream", "local")
    difference = f"{names[one]} and {names[other]} differ in {pluralize(len(differing), 'file')}"
    merge.conflicts.append(replace(conflict, difference=difference))
    return conflict.winner


# ---- one package --------------------------------------------------------------------------------


def _merge_one_package(directory: str, paths: Sequence[str], merge: PackageMerge) -> None:
    sides = merge.sides
    changed: list[str] = []
    for path in paths:
        origin, upstream, local = (files.get(path) for files in sides)
        if origin == upstream == local:
            if local is not None:
                merge.files[path] = local
        # Every variant has a Kptfile, and most are unchanged locally: none of these has to be
        # parsed, if it is one document.
        elif (
            upstream
            and origin == local
            and path.rpartition("/")[2] == KPTFILE
            and not any(it and _SEPARATOR.search(it[1]) for it in (origin, upstream))
        ):
            merge.files[path] = upstream
        else:
            changed.append(path)
    upstream_changed = [path for path in changed if sides[0].get(path) != sides[1].get(path)]
    only_local_changed = sorted(set(changed).difference(upstream_changed))
    manifests = _parse_manifests(upstream_changed, merge)
    # An object may move between files, so in general all changed files have to be read. Most
    # revisions move none: then the files that only the local side changed are taken as bytes.
    may_have_moved = any(
        path not in manifests and path not in merge.ignored and is_manifest(path)
        for path in upstream_changed
    )
    if not may_have_moved:
        units, notes = collect_units(_files_by_side(manifests))
        containers = [{key: unit.container for key, unit in side.items()} for side in units]
        may_have_moved = bool(notes) or not containers[0] == containers[1] == containers[2]
    if not may_have_moved:
        merge.files |= {path: sides[2][path] for path in only_local_changed if path in sides[2]}
        unchanged_locally = {
            path
            for path in upstream_changed
            if path in sides[1] and path in sides[0] and sides[0][path] == sides[2].get(path)
        }
        merge.files |= {path: sides[1][path] for path in unchanged_locally}
        changed = [path for path in upstream_changed if path not in unchanged_locally]
        manifests = {path: it for path, it in manifests.items() if path in changed}
    elif only_local_changed:
        manifests |= _parse_manifests(only_local_changed, merge)
        manifests = {path: manifests[path] for path in changed if path in manifests}
    for path in changed:
        if path not in manifests:
            origin_data, upstream_data, local_data = (_file_bytes(path, files) for files in sides)
            is_sealed = path in merge.sealed_files
            data, conflict = merge_plain_file(
                path, origin_data, upstream_data, local_data, merge.choices, is_sealed=is_sealed
            )
            if conflict:
                merge.conflicts.append(conflict)
            if data is not None:
                merge.files[path] = _merge_mode(path, sides), data
    _merge_manifests(manifests, merge, is_root_package=not directory)


def _parse_manifests(paths: Iterable[str], merge: PackageMerge) -> dict[str, FileSides]:
    """Parse the files of objects on all sides that have them. Others are merged as text."""
    manifests: dict[str, FileSides] = {}
    side_names = ("origin", "upstream", "local")
    for path in filter(is_manifest, paths):
        contents = [files.get(path) for files in merge.sides]
        parsed = [merge.reader.parse(path, content[1]) if content else None for content in contents]
        present = [file for file in parsed if file is not None]
        if path in merge.ignored:
            # Bytes, but a MAC over them is one all the same.
            if any(find_seal(it.value.data) for file in present for it in file.documents):
                merge.sealed_files.add(path)
            continue
        sides = zip(side_names, contents, parsed, strict=True)
        unread = [side for side, content, file in sides if content and not file]
        if unread and not is_json(path):
            merge.notes.append(f"{path}: not readable as YAML ({unread[0]}); merged as text")
        if unread or not any(file.documents for file in present):
            continue
        sealed = [
            [it.value.data for it in file.documents if find_seal(it.value.data)] for file in present
        ]
        # SOPS computes one MAC over all documents of a file and writes it into each of them. A
        # document that alone has one is an object among others, and a List is none.
        if any(len(objects) > 1 or any(map(is_list, objects)) for objects in sealed):
            merge.sealed_files.add(path)
            continue
        if is_json(path):  # a JSON file holds one object, or one List
            units, _ = collect_units([[file] for file in present])
            # Different objects on the sides cannot both be in one JSON file: merged as text.
            if len({next(iter(side)) for side in units}) > 1:
                continue
        manifests[path] = parsed[0], parsed[1], parsed[2]
    return manifests


def _files_by_side(manifests: Mapping[str, FileSides]) -> list[list[MergeFile]]:
    return [[file for it in manifests.values() if (file := it[side])] for side in range(3)]


def _file_bytes(path: str, files: Files) -> bytes | None:
    return files[path][1] if path in files else None


def _merge_mode(path: str, sides: PackageSides) -> str:
    """Merge the file mode three ways; new files have upstream's."""
    origin, upstream, local = (files[path][0] if path in files else None for files in sides)
    mode = upstream if local == origin or local is None else local
    return mode or local or "100644"


def _merge_manifests(
    manifests: Mapping[str, FileSides], merge: PackageMerge, *, is_root_package: bool
) -> None:
    files = _files_by_side(manifests)
    units, notes = collect_units(files)
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
    for key in merge_order(list(objects.origin), list(objects.upstream), list(objects.local)):
        if (destination := objects.find_destination(key)) is None or len(destination) > 1:
            continue  # the items of a List come with it
        outcome = objects.merge_unit(key)
        if outcome.source is not ValueSource.REMOVED:
            path = str(destination[0])
            placed.setdefault(path, []).append(ResultUnit(path, outcome, objects.units_of_key(key)))
    for path, (origin_file, upstream_file, local_file) in manifests.items():
        is_emptied = upstream_file and not upstream_file.documents and path not in placed
        # Nobody touched the file here: upstream's bytes, comments alone if that is what they are.
        if is_emptied and origin_file and local_file and origin_file.data == local_file.data:
            merge.files[path] = merge.sides[1][path]
    written: dict[str, bytes] = {}
    for path, placed_units in placed.items():
        written[path] = write_file(placed_units, manifests[path], merge.reader)
        merge.files[path] = _merge_mode(path, merge.sides), written[path]
    merge.notes += find_lost_comments(files[0], files[2], written)


# ---- names --------------------------------------------------------------------------------------


def _parents(path: str) -> Iterator[str]:
    """Yield the directories around a file, the innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def _choose_file_or_directory(name: str, merge: PackageMerge) -> None:
    """Leave either the file or the directory of that name, the one that the conflicts name.

    A path that is only on the local side stays if it won a conflict before; otherwise the
    path is a conflict.
    """
    sides = merge.sides
    at_name = {path for path in merge.files if _is_inside(path, name)}
    local_paths = {path for path in at_name if path in sides[2] and path not in sides[1]}
    winners = {path for path in local_paths if _wins_locally(path, merge)}
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


def _wins_locally(path: str, merge: PackageMerge) -> bool:
    """Return whether a local path stays where upstream has a file and a directory in its way."""
    if any(it.where.file == path and it.winner is ConflictWinner.LOCAL for it in merge.conflicts):
        return True
    origin, upstream, local = (_file_bytes(path, files) for files in merge.sides)
    cause, default = ConflictCause.BOTH_ADDED, ConflictWinner.UPSTREAM
    if origin is not None:
        cause, default = ConflictCause.DELETED_THERE, ConflictWinner.LOCAL
    conflict = build_file_conflict(path, cause, (origin, upstream, local), default, merge.choices)
    merge.conflicts.append(conflict)
    return conflict.winner is ConflictWinner.LOCAL


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
    strategy: KptUpdateStrategy, origin: Files, upstream: Files, local: Files
) -> MergeResult:
    """Return the local package after an update by a strategy.

    The package's own Kptfile is always merged, so that its name, origin and added functions
    stay. `dropped` names the files whose local content is lost. Raises InvalidInput if
    fast-forward finds local changes, and as `merge_packages` does.
    """
    if strategy is KptUpdateStrategy.RESOURCE_MERGE:
        return merge_packages(origin, upstream, local)
    changed = [
        path
        for path in sorted({*origin, *local})
        if not equal_files(path, local.get(path), origin.get(path))
    ]
    if strategy is KptUpdateStrategy.FAST_FORWARD:
        if KPTFILE in changed and KPTFILE in origin and KPTFILE in local:
            with suppress(InvalidManifest):
                data = (list(_without_clone_fields(it[KPTFILE][1])) for it in (origin, local))
                if same_json(*data):
                    changed.remove(KPTFILE)
        if changed:
            names = list_first([*map(escape_unprintable, changed)], _MAX_SHOWN)
            raise package_problem(
                f"the package cannot be fast-forwarded: {names} changed locally",
                f"revert the changes, or use updateStrategy {KptUpdateStrategy.RESOURCE_MERGE}",
            )
    kptfile = merge_packages(_kptfile_only(origin), _kptfile_only(upstream), _kptfile_only(local))
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
        for path in changed
        if path in local and path != KPTFILE and files.get(path) != local[path]
    )
    return replace(kptfile, files=files, dropped=dropped)


def _kptfile_only(files: Files) -> Files:
    return {KPTFILE: files[KPTFILE]} if KPTFILE in files else {}


def _without_clone_fields(data: bytes) -> Iterator[Any]:
    """Yield the Kptfile's data without the fields that differ in every clone."""
    for document in Manifest.parse(data, KPTFILE).documents:
        value = document.value
        for path in _CLONE_FIELDS:
            if get_value(value, path) is not MISSING:
                value = with_value(value, path, REMOVE)
        if get_value(value, ("status",)) == {}:
            value = with_value(value, ("status",), REMOVE)
        yield value

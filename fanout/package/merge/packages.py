"""Packages three ways (`resource-merge`): the contract of design §4, kpt's where it is silent.

Every package and subpackage is merged by itself, because objects of one identity may stand in
several of them. What all three sides have alike is not read at all; a Kptfile that is here as it
was is not either.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fanout.api.reasons import Reason
from fanout.api.texts import plural_of
from fanout.errors import InvalidInput, Where
from fanout.package.edits import MISSING
from fanout.package.jsontext import is_json
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.merge.bookkeeping import same_file
from fanout.package.merge.comments import lost_comments
from fanout.package.merge.conflicts import (
    NO_CHOICES,
    Cause,
    Choices,
    Conflict,
    Side,
    disputed,
)
from fanout.package.merge.documents import File, Reader, is_manifest, units_of
from fanout.package.merge.doubtful import doubtful_files
from fanout.package.merge.files import file_conflict, merge_file
from fanout.package.merge.keys import Schemas, schemas_of
from fanout.package.merge.namespaces import followed
from fanout.package.merge.objects import Objects, crds_of
from fanout.package.merge.outcome import How
from fanout.package.merge.writing import Placed, write_file
from fanout.package.tree import Entry, blob_id, tree_id
from fanout.values import frozen, replace

Content = tuple[str, bytes]  # mode as git writes it, and bytes
Files = Mapping[str, Content]
Sides = tuple[Files, Files, Files]  # origin, upstream, local
_MODES = frozenset(("100644", "100755"))
_CRD = b"CustomResourceDefinition"
_SEPARATOR = re.compile(rb"^(?:---|\.\.\.|%)", re.MULTILINE)  # of documents


@frozen
class MergeResult:
    """A merged package, what was in dispute, and what else people should know."""

    files: dict[str, Content]
    conflicts: tuple[Conflict, ...] = ()
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()  # files whose local content a blunt strategy gave up


@dataclass(slots=True)
class Merge:
    """One merge under way."""

    choices: Choices
    schemas: Schemas
    reader: Reader
    files: dict[str, Content] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge_packages(
    origin: Files, upstream: Files, local: Files, choices: Choices = NO_CHOICES
) -> MergeResult:
    """Upstream's changes since the origin, made to the local package.

    `choices` names winners of conflicts by their key; upstream wins by default, and what one side
    deleted and the other one changed stays as it is here where it is an object or file. Raises
    InvalidInput for what is neither file nor executable.
    """
    sides: Sides = origin, upstream, local
    for files in sides:
        _check(files)
    if upstream in (origin, local):
        return MergeResult(dict(local))
    if local == origin:
        return MergeResult(dict(upstream))
    reader = Reader()
    merge = Merge(choices, _schemas(sides, reader), reader)
    directories = _packages(sides)
    settled = _settled(sides, directories, merge)
    for directory, paths in _scopes(sides, directories).items():
        if not any(_inside(directory, other) for other in settled):
            _merge_scope(directory, paths, sides, merge)
    for directory, side in settled.items():
        winner = upstream if side is Side.UPSTREAM else local
        merge.files |= {p: c for p, c in winner.items() if _inside(p, directory)}
    _separate(sides, merge)
    merge.notes += doubtful_files(sides, reader)
    files = dict(sorted(merge.files.items()))
    return MergeResult(files, tuple(merge.conflicts), tuple(merge.notes))


def _check(files: Files) -> None:
    for path, (mode, _) in files.items():
        if mode not in _MODES:
            raise InvalidInput(
                "it is neither a file nor an executable file",
                reason=Reason.INVALID_PACKAGE,
                remedy="replace links and submodules by files",
                where=Where(file=path),
            )


def _schemas(sides: Sides, reader: Reader) -> Schemas:
    """The custom resources that any side defines, in whatever package."""
    seen: dict[bytes, File | None] = {}
    for files in sides:
        for path, (_, data) in files.items():
            if _CRD in data and data not in seen and is_manifest(path):
                seen[data] = reader.parse(path, data)
    units, _ = units_of([[file for file in seen.values() if file]])
    return schemas_of(crds_of(units))


# ---- packages inside the package ----------------------------------------------------------------


def _packages(sides: Sides) -> set[str]:
    """The directories of subpackages, on any side."""
    return {
        path.removesuffix(f"/{KPTFILE}")
        for files in sides
        for path in files
        if path.endswith(f"/{KPTFILE}")
    }


def _inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _settled(sides: Sides, directories: Iterable[str], merge: Merge) -> dict[str, Side]:
    """Subpackages that are one side's as a whole (porch.md §3.3.1)."""
    found: dict[str, Side] = {}
    for directory in sorted(directories):
        if any(_inside(directory, outer) for outer in found):
            continue
        o, u, mine = (f"{directory}/{KPTFILE}" in files for files in sides)
        trees = [_tree(files, directory) for files in sides]
        if not o and u and mine and not _alike(directory, sides[1], sides[2]):
            found[directory] = _dispute(directory, Cause.BOTH_ADDED, trees, sides, merge)
        elif o and u and not mine:
            found[directory] = Side.LOCAL
            if not _alike(directory, sides[0], sides[1]):
                found[directory] = _dispute(directory, Cause.DELETED_HERE, trees, sides, merge)
        elif o and mine and not u and not _alike(directory, sides[0], sides[2]):
            found[directory] = _dispute(directory, Cause.DELETED_THERE, trees, sides, merge)
    return found


def _alike(directory: str, one: Files, other: Files) -> bool:
    """Has the subpackage the same files on both sides, but for kpt's bookkeeping?"""
    paths = {path for path in (*one, *other) if _inside(path, directory)}
    return all(same_file(path, one.get(path), other.get(path)) for path in paths)


def _tree(files: Files, directory: str) -> str:
    inside = {p: Entry(m, blob_id(d)) for p, (m, d) in files.items() if _inside(p, directory)}
    return tree_id(inside) if inside else ""


def _dispute(
    directory: str, cause: Cause, trees: Sequence[str], sides: Sides, merge: Merge
) -> Side:
    """People are told how many files differ: what a tree's id stands for, nobody can see."""
    o, u, mine = (f"tree {tree}" if tree else MISSING for tree in trees)
    where = Where(file=directory)
    conflict = disputed(where, cause, (o, u, mine), Side.LOCAL, merge.choices)
    of_both = (1, 2) if trees[1] and trees[2] else (0, 1 if trees[1] else 2)
    one, other = (
        {(path, *content) for path, content in sides[side].items() if _inside(path, directory)}
        for side in of_both
    )
    files = plural_of(len({path for path, *_ in one ^ other}), "file")
    first, second = (("base", "upstream", "local")[side] for side in of_both)
    merge.conflicts.append(replace(conflict, gist=f"{first} and {second} differ in {files}"))
    return conflict.winner


def _scopes(sides: Sides, directories: set[str]) -> dict[str, list[str]]:
    """The paths of each package, by its directory."""
    found: dict[str, list[str]] = {}
    for path in sorted({path for files in sides for path in files}):
        found.setdefault(package_of(path, directories), []).append(path)
    return found


def package_of(path: str, directories: Collection[str]) -> str:
    """The directory, of those given, of the innermost package that the file is in."""
    directory = path.rpartition("/")[0]
    while directory and directory not in directories:
        directory = directory.rpartition("/")[0]
    return directory


# ---- one package --------------------------------------------------------------------------------


def _merge_scope(directory: str, paths: Sequence[str], sides: Sides, merge: Merge) -> None:
    changed: list[str] = []
    for path in paths:
        o, u, mine = (files.get(path) for files in sides)
        if o == u == mine:
            if mine is not None:
                merge.files[path] = mine
        elif u and o == mine and _is_one_kptfile(path, (o, u)):
            merge.files[path] = u
        else:
            changed.append(path)
    theirs = [path for path in changed if sides[0].get(path) != sides[1].get(path)]
    ours = sorted(set(changed).difference(theirs))
    manifests = _manifests(theirs, sides, merge)
    if _in_place(theirs, manifests):
        merge.files |= {path: sides[2][path] for path in ours if path in sides[2]}
        merge.files |= {path: sides[1][path] for path in theirs if _is_upstreams(path, sides)}
        changed = [path for path in theirs if not _is_upstreams(path, sides)]
        manifests = {path: it for path, it in manifests.items() if path in changed}
    elif ours:
        more = _manifests(ours, sides, merge)
        manifests = {p: (manifests | more)[p] for p in changed if p in manifests or p in more}
    for path in changed:
        if path not in manifests:
            _merge_plain(path, sides, merge)
    _merge_manifests(manifests, sides, merge, root=not directory)


def _is_upstreams(path: str, sides: Sides) -> bool:
    """Is the file on all sides, and here as it was?"""
    o, u, mine = (files.get(path) for files in sides)
    return u is not None and o is not None and o == mine


def _is_one_kptfile(path: str, contents: Sequence[Content | None]) -> bool:
    """Is it one object by its name, that no other file can have, so that nobody need read it?"""
    return path.rpartition("/")[2] == KPTFILE and not any(
        content and _SEPARATOR.search(content[1]) for content in contents
    )


def _manifests(paths: Iterable[str], sides: Sides, merge: Merge) -> dict[str, "Parsed"]:
    return {path: parsed for path in paths if (parsed := _manifest(path, sides, merge))}


def _in_place(paths: Iterable[str], manifests: Mapping[str, "Parsed"]) -> bool:
    """Has each file that upstream changed the same objects on all sides?

    Then no object comes from another file or goes to one, and files that upstream left alone are
    what they are here, unread.
    """
    if any(path not in manifests and is_manifest(path) for path in paths):
        return False
    files = [[parsed[side] for parsed in manifests.values()] for side in range(3)]
    units, notes = units_of([[file for file in side if file] for side in files])
    places = [{key: unit.container for key, unit in side.items()} for side in units]
    return not notes and places[0] == places[1] == places[2]


Parsed = tuple[File | None, File | None, File | None]


def _manifest(path: str, sides: Sides, merge: Merge) -> Parsed | None:
    """A file of objects on all sides that have it; None for one that is merged as text."""
    if not is_manifest(path):
        return None
    contents = [files.get(path) for files in sides]
    parsed = [merge.reader.parse(path, content[1]) if content else None for content in contents]
    unread = [side for side, c, f in zip(_NAMES, contents, parsed, strict=True) if c and not f]
    if unread:
        if not is_json(path):
            merge.notes.append(f"{path}: no readable YAML ({unread[0]}); it is merged as text")
        return None
    present = [file for file in parsed if file is not None]
    if not any(file.documents for file in present):
        return None
    if is_json(path):  # it has room for one object, or one List
        units, _ = units_of([[file] for file in present])
        if len({next(iter(side)) for side in units}) > 1:
            return None
    return parsed[0], parsed[1], parsed[2]


_NAMES = ("origin", "upstream", "local")


def _merge_plain(path: str, sides: Sides, merge: Merge) -> None:
    o, u, mine = (_bytes(path, files) for files in sides)
    data, conflict = merge_file(path, o, u, mine, merge.choices)
    if conflict:
        merge.conflicts.append(conflict)
    if data is not None:
        merge.files[path] = _mode(path, sides), data


def _bytes(path: str, files: Files) -> bytes | None:
    return files[path][1] if path in files else None


def _mode(path: str, sides: Sides) -> str:
    """The mode, three ways; new files have upstream's."""
    o, u, mine = (files[path][0] if path in files else None for files in sides)
    mode = u if mine == o or mine is None else mine
    return mode or mine or "100644"


def _merge_manifests(
    manifests: Mapping[str, Parsed], sides: Sides, merge: Merge, *, root: bool
) -> None:
    files = [[f[side] for f in manifests.values() if f[side]] for side in range(3)]
    units, notes = units_of([[file for file in side if file] for side in files])
    merge.notes += notes
    o = units[0]
    u, mine = followed(*units)
    objects = Objects(o, u, mine, merge.schemas, merge.choices, root, merge.conflicts)
    placed: dict[str, list[Placed]] = {}
    for key in objects.in_order():
        destination = objects.destination(key)
        if destination is None or len(destination) > 1:
            continue  # the items of a List come with it
        outcome = objects.merge(key)
        if outcome.how is not How.GONE:
            path = str(destination[0])
            placed.setdefault(path, []).append(Placed(key, path, outcome, objects.units(key)))
    written: dict[str, bytes] = {}
    for path, inside in placed.items():
        written[path] = write_file(inside, manifests[path], merge.reader)
        merge.files[path] = _mode(path, sides), written[path]
    origin, _, local = ([file for file in side if file] for side in files)
    merge.notes += lost_comments(origin, local, written)


# ---- names --------------------------------------------------------------------------------------


def _separate(sides: Sides, merge: Merge) -> None:
    """No path is a file and a directory, and none differs from another by case alone."""
    folded: dict[str, str] = {}
    for path in sorted(merge.files):
        other = folded.setdefault(path.casefold(), path)
        if other != path:
            merge.notes.append(f"{path} and {other} are one file where case does not count")
        parent = path
        while parent := parent.rpartition("/")[0]:
            if parent in merge.files and path in merge.files:
                _choose(path, parent, sides, merge)


def _choose(path: str, parent: str, sides: Sides, merge: Merge) -> None:
    """One of a file and a directory of that name goes; by default the one that is here."""
    loser = path if path in sides[2] and parent in sides[1] else parent
    o, u, mine = (_bytes(loser, files) for files in sides)
    values, default = (o, u, mine), Side.UPSTREAM
    conflict = file_conflict(loser, Cause.BOTH_ADDED, values, default, merge.choices)
    if all(known.key != conflict.key for known in merge.conflicts):
        merge.conflicts.append(conflict)
    if conflict.winner is Side.LOCAL:
        loser = parent if loser == path else path
    del merge.files[loser]

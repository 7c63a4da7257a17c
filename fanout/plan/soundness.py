"""Can a draft be used as people left it? Files that are no YAML, conflict markers, broken Kptfiles
and objects that stand there twice would otherwise be published with it.

Only what people brought in counts: upstream's own oddities, and what is in force already, are not
theirs to correct on the draft.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.invalid import InvalidManifest
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.kptfile import kptfile_of
from fanout.package.kptfile_rules import kptfile_faults
from fanout.package.manifests import Manifest
from fanout.package.merge.documents import is_manifest
from fanout.package.portable import file_faults
from fanout.plan.merging import Files
from fanout.values import replace
from fanout.variants.duplicates import duplicates, identities

_REGULAR = ("100644", "100755")
_OURS, _THEIRS = (re.compile(rb"^%c{7} " % sign, re.MULTILINE) for sign in b"<>")
_Found = tuple[tuple[object, ...], InvalidInput]  # what makes two of them the same, and the fault


def new_faults(files: Files, known: Sequence[Files], directory: str) -> tuple[InvalidInput, ...]:
    """The faults of a package that none of the known ones has, with file and line, by place.

    `directory` is where the package is in its repository; the faults' files are named with it.
    """
    found = dict(_faults(files, _suspects(files, known[0]) if known else files))
    before = {key for other in known for key, _ in _faults(other, other)} if found else set()
    faults = [fault for key, fault in found.items() if key not in before]
    for fault in faults:
        fault.where = replace(fault.where, file=f"{directory}/{fault.where.file}")
    return tuple(sorted(faults, key=lambda fault: (fault.where.file, fault.where.line)))


def remedied(fault: InvalidInput) -> str:
    """The fault and that it is to be corrected, once; where to do so is to follow."""
    told = str(fault)
    return told if fault.remedy.startswith("correct ") else f"{told}; correct it"


def _suspects(files: Files, known: Files) -> Files:
    """The files that may have a fault that the known package has not.

    Those are the changed ones; all, where an object came that may be in another file already.
    """
    changed = {path: it for path, it in files.items() if known.get(path) != it}
    if _packages(files) != _packages(known):
        return files
    same = all(_objects(path, it[1]) <= _known_objects(path, known) for path, it in changed.items())
    return changed if same else files


def _packages(files: Files) -> set[str]:
    return {path for path in files if path.rpartition("/")[2] == KPTFILE}


def _known_objects(path: str, known: Files) -> Counter[object]:
    return _objects(path, known[path][1]) if path in known else Counter()


def _objects(path: str, data: bytes) -> Counter[object]:
    try:
        manifest = _parsed(data, path) if is_manifest(path) else None
    except InvalidManifest:
        return Counter()
    found = identities(manifest) if manifest else ()
    return Counter((identity, local) for identity, local, _ in found)


def _faults(files: Files, suspects: Files) -> Iterator[_Found]:
    """What is wrong in some files of a package."""
    manifests: dict[str, Manifest] = {}
    for path, (mode, data) in suspects.items():
        fault = _unreadable(path, mode, data, manifests)
        if fault is not None:
            yield (path, mode, data), fault
    for path, problem in file_faults(files):
        yield (path, problem), _refused(problem, "rename the file", _at(path))
    if KPTFILE not in files:
        yield (KPTFILE,), _refused("there is no Kptfile", "put it back", Where(file=KPTFILE))
    yield from _kptfiles(manifests)
    for fault in duplicates(manifests):
        yield ("twice", fault.where.object), fault


def _unreadable(
    path: str, mode: str, data: bytes, manifests: dict[str, Manifest]
) -> InvalidInput | None:
    """Why the file cannot be used; a manifest that can is added to the others."""
    if mode not in _REGULAR:
        return _refused("is a symbolic link, which a package may not have", "use a file", _at(path))
    marked = _OURS.search(data)
    if marked is not None and _THEIRS.search(data, marked.end()):
        line = data.count(b"\n", 0, marked.start()) + 1
        problem = "the markers of a merge conflict were committed"
        return _refused(problem, "decide the conflict and remove them", _at(path, line))
    if is_manifest(path):
        try:
            manifests[path] = _parsed(data, path)
        except InvalidManifest as error:
            return error.problems[0]
    return None


@lru_cache(maxsize=256)  # most files of a package are the same in all of its variants
def _parsed(data: bytes, path: str) -> Manifest:
    return Manifest.parse(data, path)


def _kptfiles(manifests: Mapping[str, Manifest]) -> Iterator[_Found]:
    for path, manifest in manifests.items():
        if path.rpartition("/")[2] != KPTFILE:
            continue
        try:
            faults = list(kptfile_faults(kptfile_of(manifest)))
        except InvalidInput as error:
            faults = [error]
        for fault in faults:
            yield (path, fault.where.field, fault.problem), fault


def _at(path: str, line: int = 0) -> Where:
    return Where(file=path, line=line)


def _refused(problem: str, remedy: str, where: Where) -> InvalidInput:
    return InvalidInput(problem, reason=Reason.DRAFT_BROKEN, remedy=remedy, where=where)

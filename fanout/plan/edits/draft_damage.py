"""Faults that edits brought into a draft and that must not be published with it.

These are files that are not YAML, conflict markers, invalid Kptfiles and duplicate objects. Only
faults added by edits count: upstream's own, and those already published, are not the editor's.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.ignored_files import find_ignored
from fanout.package.kptfile import KPTFILE, find_kptfile, find_kptfile_problems
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import is_manifest
from fanout.package.package_limits import (
    DEFAULT_SIZES,
    SizeLimits,
    ValueCounter,
    find_unportable_files,
)
from fanout.package.yaml_nodes import InvalidManifest
from fanout.plan import plan_wording
from fanout.plan.edits.edit_merge import PackageFiles
from fanout.values import replace
from fanout.variants.manifest_objects import find_duplicates, find_identities

_REGULAR_MODES = ("100644", "100755")
_OURS, _THEIRS = (re.compile(rb"^%c{7} " % sign, re.MULTILINE) for sign in b"<>")
# Identity of an error across sides, and the error.
_KeyedFault = tuple[tuple[object, ...], InvalidInput]


def find_new_faults(
    files: PackageFiles,
    references: Sequence[PackageFiles],
    directory: str,
    limits: SizeLimits = DEFAULT_SIZES,
) -> tuple[InvalidInput, ...]:
    """Return the faults that no reference package has, ordered by file and line.

    `directory` is the package's path in its repository; it is put before the faults' files.
    Raises InvalidInput, with the file inside the package, for a package with more values
    than `limits` allows.
    """
    suspects, reference = files, references[0] if references else {}
    if references and _kptfile_paths(files) == _kptfile_paths(reference):
        changed = {path: it for path, it in files.items() if reference.get(path) != it}
        ignored = find_ignored(files)
        # Checking every file of every draft would dominate a pass. Unchanged files can only matter
        # where an object was added that one of them may contain too. And what a `.krmignore` does
        # not name any more may have any fault.
        if ignored == find_ignored(reference) & files.keys() and all(
            _object_counts(path, data, limits)
            <= (
                _object_counts(path, reference[path][1], limits) if path in reference else Counter()
            )
            for path, (_, data) in changed.items()
            if path not in ignored
        ):
            suspects = changed
    by_key = dict(_find_faults(files, suspects, limits))
    # Checking the references again costs as much, and most packages have no fault.
    for reference in references if by_key else ():
        for key, _ in _find_faults(reference, reference, limits):
            by_key.pop(key, None)
    for fault in by_key.values():
        fault.where = replace(fault.where, file=f"{directory}/{fault.where.file}")
    return tuple(sorted(by_key.values(), key=lambda it: (it.where.file, it.where.line)))


def describe_outside_files(
    paths: Iterable[str], packages: Collection[str], *, is_removal: bool = False
) -> tuple[InvalidInput, ...]:
    """Return the faults of a draft that changes these files outside of its packages.

    A publication takes the packages alone, and Git counts the whole branch as merged then. The
    merge of a draft that removes packages takes the whole branch, without gates for the rest.
    """
    effect = "its change is no removal" if is_removal else "a publication would drop its change"
    names = f"package {next(iter(packages))}" if len(packages) == 1 else "the packages of the draft"
    return tuple(
        _draft_broken(
            f"the file is outside of {names}, and {effect}",
            "keep the change on a branch of its own, and take it back",
            path,
        )
        for path in paths
    )


def build_faults_hold(faults: Sequence[InvalidInput], ref: str, repository: str) -> Hold:
    """Build the hold of a draft that edits have broken: it is neither published nor rewritten."""
    first, *others = faults
    more = f" (and {len(others)} more)" if others else ""
    branch = ref.removeprefix("refs/heads/")
    return Hold(
        Reason.DRAFT_BROKEN,
        f"{with_remedy(first)} on branch {branch}{more}, or remove the branch to have the draft"
        " rewritten",
        who=plan_wording.format_maintainers(repository),
    )


def with_remedy(fault: InvalidInput) -> str:
    """Return the fault with a remedy, to which the caller appends the place."""
    text = str(fault)
    return text if fault.remedy.startswith(("correct ", "keep ")) else f"{text}; correct it"


def _kptfile_paths(files: PackageFiles) -> set[str]:
    return {path for path in files if path.rpartition("/")[2] == KPTFILE}


def _object_counts(path: str, data: bytes, limits: SizeLimits) -> Counter[object]:
    try:
        manifest = _parse_manifest(data, path, limits.values)[0] if is_manifest(path) else None
    except InvalidManifest:
        return Counter()
    object_identities = find_identities(manifest) if manifest else ()
    return Counter((identity, local) for identity, local, _ in object_identities)


def _find_faults(
    files: PackageFiles, suspects: PackageFiles, limits: SizeLimits
) -> Iterator[_KeyedFault]:
    manifests: dict[str, Manifest] = {}
    counter = ValueCounter(limits.values)
    ignored = find_ignored(files)
    for path, (mode, data) in suspects.items():
        fault = _file_fault(path, mode, data, None if path in ignored else manifests, counter)
        if fault is not None:
            yield (path, mode, data), fault
    for path, problem in find_unportable_files(files):
        yield (path, problem), _draft_broken(problem, "rename the file", path)
    if KPTFILE not in files:
        yield (KPTFILE,), _draft_broken("there is no Kptfile", "put it back", KPTFILE)
    for path, manifest in manifests.items():
        if path.rpartition("/")[2] != KPTFILE:
            continue
        try:
            faults = list(find_kptfile_problems(find_kptfile(manifest)))
        except InvalidInput as error:
            faults = [error]
        for kptfile_fault in faults:
            yield (path, kptfile_fault.where.field, kptfile_fault.problem), kptfile_fault
    for duplicate in find_duplicates(manifests, files):
        if not duplicate.is_build_input:
            yield ("twice", duplicate.package, duplicate.where.object), duplicate.error


def _file_fault(
    path: str, mode: str, data: bytes, manifests: dict[str, Manifest] | None, counter: ValueCounter
) -> InvalidInput | None:
    """Return why a file cannot be used, or None; valid manifests are added to `manifests`.

    Without them the file is bytes.
    Raises InvalidInput if the package has more values than `counter` accepts.
    """
    if mode not in _REGULAR_MODES:
        problem = "is a symbolic link, which a package may not have"
        return _draft_broken(problem, "use a file", path)
    # Both markers are required, in order: one such line alone can be legitimate text.
    if (marked := _OURS.search(data)) is not None and _THEIRS.search(data, marked.end()):
        line = data.count(b"\n", 0, marked.start()) + 1
        problem = "the markers of a merge conflict were committed"
        return _draft_broken(problem, "decide the conflict and remove them", path, line)
    if manifests is not None and is_manifest(path):
        try:
            manifests[path], value_count = _parse_manifest(data, path, counter.limit)
        except InvalidManifest as error:
            return error.problems[0]
        counter.add(value_count, path)
    return None


# Most files are equal in all variants. Hence the limit is part of the key, and what the package's
# other files leave of it is not.
@lru_cache(maxsize=256)
def _parse_manifest(data: bytes, path: str, max_values: int) -> tuple[Manifest, int]:
    """Return the file's manifest and its number of values. Raises InvalidInput beyond them."""
    counter = ValueCounter(max_values)
    return Manifest.parse(data, path, counter), counter.count


def _draft_broken(problem: str, remedy: str, file: str, line: int = 0) -> InvalidInput:
    where = ErrorLocation(file=file, line=line)
    return InvalidInput(problem, reason=Reason.DRAFT_BROKEN, remedy=remedy, where=where)

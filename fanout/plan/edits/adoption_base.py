"""Base of the first merge when fanout adopts a package that it did not write.

kpt and Porch record in a package's Kptfile which upstream state it was cloned from. That state is
the base, so that edits can be distinguished from upstream changes (docs/concepts/life-cycle.md). A
clone is first committed raw or as its pipeline rendered it; the base is whichever of the two the
package is nearer to, since only against it objects that a function renames are the same objects.
"""

import re
from collections.abc import Iterable, Mapping

from fanout.api.reasons import Reason
from fanout.api.text_fields import normalize_inside
from fanout.errors import ErrorLocation, FanoutError, InvalidInput
from fanout.package.field_edits import MISSING, Edit, Path, get_value
from fanout.package.kptfile import (
    API_VERSION,
    KPTFILE,
    UpstreamLock,
    find_kptfile,
    pipeline_functions,
)
from fanout.package.manifest import Manifest
from fanout.package.merge.kpt_clone import (
    compute_distance,
    find_identities,
    find_unmatched,
    remove_stale_marks,
)
from fanout.package.merge.merge_units import MergeUnit, object_identity
from fanout.pending_inputs import Responses
from fanout.plan.edits.edit_merge import FilesChange, PackageFiles
from fanout.plan.observation.repository_state import Remote
from fanout.values import Value
from fanout.variants.package_context import CONTEXT
from fanout.variants.package_preparation import refuse_errors
from fanout.variants.package_rendering import render_package
from fanout.variants.render_model import RenderLimits

ADOPTION_LOCK_REMEDY = (
    "write upstreamLock into its Kptfile as kpt does (git: repo, directory, ref and commit of the"
    " revision that it came from) and commit it"
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LOCK = ("upstreamLock", "git")
# Fields that describe a clone; upstream's own Kptfile has other values there, or none.
_CLONE_FIELDS: tuple[Path, ...] = (("metadata", "name"), ("upstream",), ("upstreamLock",))
_EMPTY_KPTFILE = f"apiVersion: {API_VERSION}\nkind: {KPTFILE}\n".encode()


class UpstreamOrigin(Value):
    """The upstream state of a clone, resolved to a repository and a tree id."""

    upstream: Remote
    tree: str


def parse_upstream_lock(kptfile: bytes | None, file: str) -> UpstreamLock:
    """Parse the `upstreamLock` of a Kptfile; None stands for a missing Kptfile.

    Raises InvalidInput, with the file, if there is no lock or it does not name a commit id.
    """
    if kptfile is None:
        raise _base_missing("the package has no Kptfile", file)
    value = find_kptfile(Manifest.parse(kptfile, file)).value
    fields = [get_value(value, (*_LOCK, name)) for name in ("repo", "directory", "commit")]
    if get_value(value, _LOCK) is MISSING:
        raise _base_missing("the Kptfile has no upstreamLock", file)
    if not all(isinstance(text, str) for text in fields) or not _COMMIT.fullmatch(fields[2]):
        raise _base_missing(
            "the upstreamLock of the Kptfile lacks a repo, a directory or the ID of a commit", file
        )
    ref = get_value(value, (*_LOCK, "ref"))
    repo, directory, commit = fields
    return UpstreamLock(repo, directory, commit, ref if isinstance(ref, str) else "")


def _base_missing(problem: str, file: str) -> InvalidInput:
    return InvalidInput(
        problem,
        reason=Reason.ADOPTION_BASE_MISSING,
        remedy=ADOPTION_LOCK_REMEDY,
        where=ErrorLocation(file=file),
    )


def find_clone_edits(
    upstream_files: PackageFiles,
    local_files: PackageFiles,
    limits: RenderLimits,
    answers: Responses,
) -> FilesChange:
    """Return the package as it was first committed, and as it is now.

    The first is upstream's files, raw or rendered by their own pipeline, whichever the
    package is nearer to. A pipeline changed in the clone is an edit, and so are its
    effects. Raises InvalidInput (AdoptionBaseMissing) where objects could not be matched
    again, and InputPending where a function needs another input first.
    """
    # Name and upstream in the Kptfile are the clone's, so that they do not count as edits.
    local_value = find_kptfile(Manifest.parse(local_files[KPTFILE][1], KPTFILE)).value
    mode, data = upstream_files.get(KPTFILE, ("100644", _EMPTY_KPTFILE))
    manifest = Manifest.parse(data, KPTFILE)
    index = find_kptfile(manifest).index
    clone_values = [(path, get_value(local_value, path)) for path in _CLONE_FIELDS]
    clone_edits = [Edit(index, path, value) for path, value in clone_values if value is not MISSING]
    kptfile = manifest.apply_edits_to_text(clone_edits)
    raw: PackageFiles = {**upstream_files, KPTFILE: (mode, kptfile)}
    if not any(
        b"pipeline" in data
        for files in (raw, local_files)
        for data in _kptfile_contents(files).values()
    ):
        return raw, local_files
    # The package context says which clone it is: functions may read it, and it is no edit.
    context = {CONTEXT: local_files[CONTEXT]} if CONTEXT in local_files else {}
    rendered, error = _render_raw(raw, {**raw, **context}, limits, answers)
    # The clone's Kptfiles, which people may have changed, and the files that configure their
    # functions.
    clone_configuration = {path: local_files[path] for path in _kptfile_contents(local_files)}
    for path, (_, data) in list(clone_configuration.items()):
        try:
            value = find_kptfile(Manifest.parse(data, path)).value
        except FanoutError:
            continue  # reported when the package is rendered
        for _, entry in pipeline_functions(value):
            name = entry.get("configPath") if isinstance(entry, Mapping) else None
            if isinstance(name, str):
                name = path[: -len(KPTFILE)] + normalize_inside(name)
                if name in local_files and name != CONTEXT:
                    clone_configuration[name] = local_files[name]
    rendered_by_clone = rendered
    # If the clone's pipeline is upstream's, it need not run a second time.
    if any(raw.get(path) != content for path, content in clone_configuration.items()):
        inputs = {**raw, **context, **clone_configuration}
        rendered_by_clone, clone_error = _render_raw(raw, inputs, limits, answers)
        error = error or clone_error
    base = raw
    if (
        compute_distance(rendered, local_files) <= compute_distance(raw, local_files)
        and rendered != raw
    ):
        base = rendered
        local_files = remove_stale_marks(local_files, find_identities(base))
    # A raw clone with an object that rendering renames would have it twice. The merge follows an
    # object into another namespace, so that alone is accepted. A rendered base has the names that
    # functions give.
    if base is raw:
        differences = find_unmatched(raw, rendered)
        kinds = {unit.key[1:3] for unit in differences.added}
        local_identities = {identity for _, identity in find_identities(local_files)}
        for unit in differences.removed:
            if unit.key[1:3] in kinds and _unit_identities(unit) & local_identities:
                problem = "the pipeline of the package gives this object another name"
                raise _object_refused(unit, problem)
    _refuse_unmatched(base, local_files, (raw, rendered, rendered_by_clone), error)
    return base, local_files


def _kptfile_contents(files: PackageFiles) -> dict[str, bytes]:
    return {p: data for p, (_, data) in files.items() if p.rpartition("/")[2] == KPTFILE}


def _render_raw(
    raw: PackageFiles, inputs: PackageFiles, limits: RenderLimits, answers: Responses
) -> tuple[PackageFiles, FanoutError | None]:
    """Render upstream's files with a pipeline, or return them raw with the problem.

    Kptfiles and the package context stay as they are upstream.
    """
    try:
        # Validators change nothing, and judge an old state.
        stripped: dict[str, tuple[str, bytes]] = {}
        for path, data in _kptfile_contents(inputs).items():
            manifest = Manifest.parse(data, path)
            document = find_kptfile(manifest)
            pipeline = document.value.get("pipeline")
            if isinstance(pipeline, dict) and "validators" in pipeline:
                edit = Edit(document.index, ("pipeline", "validators"))
                stripped[path] = inputs[path][0], manifest.apply_edits_to_text([edit])
        rendered_files, results = render_package({**inputs, **stripped}, limits, answers)
        refuse_errors(results)
    except FanoutError as problem:
        return raw, problem
    kept_paths = _kptfile_contents(inputs).keys() | ({CONTEXT} & inputs.keys())
    files = {path: content for path, content in rendered_files.items() if path not in kept_paths}
    return {**files, **{path: raw[path] for path in kept_paths if path in raw}}, None


def _refuse_unmatched(
    base: PackageFiles,
    local: PackageFiles,
    forms: Iterable[PackageFiles],
    error: FanoutError | None,
) -> None:
    """Refuse an object that looks added but is upstream's under another name.

    It would be duplicated in the draft, or its edits would be lost.
    """
    differences = find_unmatched(base, local)
    upstream_identities = set[object]()
    for form in forms:
        upstream_identities |= {identity for _, identity in find_identities(form)}
    renamed = [
        unit
        for unit in differences.added
        if differences.removed and _unit_identities(unit) & upstream_identities
    ]
    if renamed:
        raise _object_refused(
            renamed[0],
            "the object is from upstream, but its name does not match the rest of the clone",
        )
    if error is not None and differences.removed and differences.added:
        problem = (
            "the object may be from upstream under another name; the pipeline that would show it"
            f" cannot run: {error}"
        )
        raise _object_refused(differences.added[0], problem)


def _unit_identities(unit: MergeUnit) -> set[object]:
    return {unit.key[1:5], object_identity(unit.value.data)}


def _object_refused(unit: MergeUnit, problem: str) -> InvalidInput:
    where = ErrorLocation(unit.name, "", unit.document.file, unit.document.line + 1)
    return InvalidInput(
        problem,
        reason=Reason.ADOPTION_BASE_MISSING,
        remedy=(
            "render the package with the pipeline that it has upstream at its upstreamLock (as"
            " `kpt fn render` does), or give the objects the names that they have then, and commit"
            " it"
        ),
        where=where,
    )

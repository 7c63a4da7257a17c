"""Per-object run of a pipeline over the objects that are equal for all targets.

Functions that look at one object at a time run once per pipeline, and the result is
shared by all variants; the objects in which targets differ are run for each variant.
"""

from collections import deque
from collections.abc import Iterable, Mapping

from fanout.errors import InvalidInput
from fanout.package.field_edits import REMOVE, format_path, get_value, with_value
from fanout.package.kptfile import KPTFILE_NAME as KPTFILE
from fanout.package.tree_ids import TreeEntry, blob_id
from fanout.selection.cluster_objects import group_of
from fanout.values import replace
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    ExternalFunction,
    FunctionResult,
    Identity,
    ObjectFinding,
    PackageFacts,
    UnfitObject,
    mapping,
)
from fanout.variants.functions.kind_scopes import is_namespaced
from fanout.variants.manifest_rewrite import replace_object, rewrite_manifest
from fanout.variants.overlay import NO_CHANGES, ObjectChanges, Overlay
from fanout.variants.package_preparation import ObjectPlace, PreparedPackage, SharedRun, StepResult
from fanout.variants.pending_inputs import NO_RESPONSES, ResponseError, Responses, get_response
from fanout.variants.pipeline_steps import ALL_OBJECTS, FunctionStep, function_error
from fanout.variants.size_accounting import SizeCounter
from fanout.variants.target_edits import CACHE_ENTRIES
from fanout.variants.tree_template import TreeTemplate

NEW_FILE_MODE = "100644"


def shared_run(
    prepared: PreparedPackage, steps: tuple[FunctionStep, ...], responses: Responses = NO_RESPONSES
) -> SharedRun:
    """Return the shared run of these steps, cached by what the steps do.

    Raises InvalidInput with file and line when an object does not have the shape that a
    step needs, and InputPending.
    """
    key = tuple(step.key for step in steps)
    run = prepared.run_cache.get(key)
    if run is None:
        # A run holds changes and blobs of the complete package; an unbounded cache would grow with
        # the number of distinct configurations.
        if len(prepared.run_cache) >= CACHE_ENTRIES:
            prepared.run_cache.clear()
        run = prepared.run_cache[key] = _run_shared(prepared, steps, responses)
    return run


def is_visible(
    prepared: PreparedPackage, step: FunctionStep, place: ObjectPlace, overlay: Overlay
) -> bool:
    """Return whether the function of the step gets this object (porch.md §8.2)."""
    return (
        place[0].startswith(step.directory_prefix)
        and (step.function.includes_local or place not in prepared.local_config)
        and not overlay.dropped
        and (step.selection is ALL_OBJECTS or step.selection.selects(overlay.value))
    )


def run_step(
    step: FunctionStep, facts: PackageFacts, file: str, overlay: Overlay, size_counter: SizeCounter
) -> Iterable[FunctionResult]:
    """Run a function on one visible object and return its findings.

    Raises InvalidInput with file and line when the object does not fit the function, or
    when the package would exceed its size limits.
    """
    function = step.function
    assert isinstance(function, CatalogFunction), "programs see all objects at once"
    if function.reads_text:
        facts = replace(
            facts, file=file[len(step.directory_prefix) :], text=overlay, size_limiter=size_counter
        )
    try:
        changes = function.changes(step.config, overlay.value, facts)
        # Applied while the function still yields: each change is counted against the size limits
        # before the next one is even computed, so a runaway function is stopped early.
        for path, value in () if step.validates else changes:
            size_counter.count_change(file, path, get_value(overlay.value, path), value)
            if not path and value is not REMOVE:
                replace_object(overlay, value, facts.list_schemas)
            elif isinstance(value, list) and isinstance(get_value(overlay.value, path), list):
                replace_object(overlay, with_value(overlay.value, path, value), facts.list_schemas)
            else:
                overlay.set(path, value)
        if step.validates:
            # A validator's changes are discarded, but its generator must run to raise UnfitObject.
            deque(changes, maxlen=0)
        if function.check_object is None:
            return ()
        findings = list(function.check_object(step.config, overlay.value, facts))
    except UnfitObject as unfit:
        raise overlay.unfit_error(function.name, unfit) from None
    return [_build_result(function.name, finding, file, overlay) for finding in findings]


def _build_result(
    function: str, finding: ObjectFinding, file: str, overlay: Overlay
) -> FunctionResult:
    path, problem, severity = finding
    name = mapping(mapping(overlay.value).get("metadata")).get("name", "")
    item = f"{mapping(overlay.value).get('kind', '')}/{name}"
    return FunctionResult(
        problem, severity, function, item, format_path(path), file, overlay.line_of(path)
    )


def collect_facts(
    prepared: PreparedPackage,
    step: FunctionStep,
    overlays: Mapping[ObjectPlace, Overlay],
    responses: Responses,
) -> PackageFacts:
    """Return the facts that the function may use, with the response to its required input.

    Raises InputPending while the input is missing, and InvalidInput where it cannot be
    had.
    """
    facts = _package_facts(prepared, overlays)
    function = step.function
    if isinstance(function, ExternalFunction) or function.pending_input is None:
        return facts
    response = get_response(function.pending_input(step.config), responses)
    if isinstance(response, ResponseError):
        problem = InvalidInput(response.problem, remedy=response.remedy)
        raise function_error(function, problem, step.where)
    return replace(facts, response=response)


def put_file(
    file: str, data: bytes | None, entries: dict[str, TreeEntry], blobs: dict[str, bytes]
) -> None:
    """Store a file's new content in `entries` and `blobs`; None removes the file."""
    if data is None:
        entries.pop(file, None)
        return
    oid = blob_id(data)
    present = entries.get(file)
    entries[file] = TreeEntry(present.mode if present else NEW_FILE_MODE, oid)
    blobs[oid] = data


def _run_shared(
    prepared: PreparedPackage, steps: tuple[FunctionStep, ...], responses: Responses
) -> SharedRun:
    overlays = {place: Overlay(place[0], part) for place, part in prepared.objects.items()}
    steps_with_facts: list[tuple[FunctionStep, PackageFacts]] = []
    results: list[StepResult] = []
    size_counter = prepared.new_size_counter()
    for number, step in enumerate(steps):
        # Anew for every step: facts name the objects of the package, which earlier steps may have
        # renamed or moved to another namespace.
        facts = collect_facts(prepared, step, overlays, responses)
        steps_with_facts.append((step, facts))
        for place, overlay in overlays.items():
            if is_visible(prepared, step, place, overlay):
                step_results = run_step(step, facts, place[0], overlay, size_counter)
                results += [StepResult(number, place, result) for result in step_results]
    changes_by_place = {place: overlay.collect_changes() for place, overlay in overlays.items()}
    entries = dict(prepared.entries)
    blobs: dict[str, bytes] = {}
    changes_by_file: dict[str, dict[int, ObjectChanges]] = {}
    for (file, number), object_changes in changes_by_place.items():
        if object_changes is not NO_CHANGES and file not in prepared.varying_files:
            changes_by_file.setdefault(file, {})[number] = object_changes
    for file, file_changes in changes_by_file.items():
        put_file(file, rewrite_manifest(prepared.manifests[file], file_changes), entries, blobs)
    varying_changes = {
        place: changes
        for place, changes in changes_by_place.items()
        if place[0] in prepared.varying_files
    }
    varying = {KPTFILE, *prepared.varying_files}
    # The tree template needs a row for every varying file, also for one that upstream does not have
    # (the package context that is added).
    no_entry = TreeEntry("100644", "0" * 40)  # stands for a file of the variant
    tree = TreeTemplate({**dict.fromkeys(varying, no_entry), **entries}, varying)
    return SharedRun(tuple(steps_with_facts), varying_changes, entries, blobs, tree, tuple(results))


def _package_facts(
    prepared: PreparedPackage, overlays: Mapping[ObjectPlace, Overlay]
) -> PackageFacts:
    """Return the facts of the package at this point of the pipeline.

    The set of namespaced objects is computed only where an object declares dependencies,
    since it costs a walk over all objects per step.
    """
    if not prepared.has_dependencies:
        return prepared.facts
    namespaced: set[Identity] = set()
    for place, overlay in overlays.items():
        if place in prepared.local_config or overlay.dropped:
            continue
        item = overlay.value
        meta = mapping(item.get("metadata"))
        group, kind = group_of(str(item.get("apiVersion", ""))), str(item.get("kind", ""))
        if is_namespaced(group, kind, meta.get("namespace"), prepared.facts):
            namespace = str(meta.get("namespace") or "default")
            namespaced.add((group, kind, namespace, str(meta.get("name", ""))))
    return replace(prepared.facts, namespaced=frozenset(namespaced))

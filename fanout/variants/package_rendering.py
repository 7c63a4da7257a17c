"""Rendering of variants, and of plain packages by their own pipeline.

The order is Porch's: package context, injected fields, then the complete pipeline on
the result. Of a variant only the files in which targets differ are computed; the
others come from caches on the prepared package.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.kptfile import KPTFILE, package_problem
from fanout.package.revision import Revision
from fanout.package.tree_ids import TreeEntry, blob_id, tree_id
from fanout.pending_inputs import NO_RESPONSES, Responses
from fanout.selection.variant_spec import VariantSpec
from fanout.values import replace
from fanout.variants.compiled_template import (
    CompiledTemplate,
    UnsuitableVariant,
    compile_template,
    split_parameters,
)
from fanout.variants.functions.function_interface import (
    ERROR,
    FunctionResult,
    Object,
    mapping,
    render_error,
)
from fanout.variants.manifest_objects import find_objects
from fanout.variants.overlay import NO_CHANGES, ObjectChanges, rewrite_manifest
from fanout.variants.package_context import CONTEXT
from fanout.variants.package_preparation import (
    ObjectPlace,
    PreparedPackage,
    StepResult,
    prepare_package,
    refuse_errors,
)
from fanout.variants.pipeline_run import (
    WholePackageRun,
    find_sought,
    first_object,
    is_visible,
    put_file,
    report_unmatched,
    run_step,
    shared_run,
)
from fanout.variants.pipeline_steps import DeclaredFunction, FunctionStep, Pipeline
from fanout.variants.render_model import (
    RenderedPackage,
    RenderInputs,
    RenderLimits,
    UpstreamPackage,
)
from fanout.variants.size_accounting import compute_file_sizes
from fanout.variants.target_edits import (
    PreparedManifests,
    TargetEdits,
    build_overlays,
    collect_target_edits,
    prepare_kptfile,
    prepare_manifests,
)
from fanout.variants.variant_kptfile import variant_kptfile_edits

_Files = tuple[
    dict[str, TreeEntry],
    dict[str, bytes],
    Callable[[Mapping[str, TreeEntry]], str],
    tuple[FunctionResult, ...],
]

_MAX_TEMPLATES = 256  # per package
# Markers in place of a template: a shape of no variant so far, or of one.
_UNSEEN_SHAPE, _SEEN_ONCE = object(), object()


def render_variant(
    prepared: PreparedPackage,
    spec: VariantSpec,
    inputs: RenderInputs,
    responses: Responses = NO_RESPONSES,
) -> RenderedPackage:
    """Return the variant's files for this revision; equal arguments give equal bytes.

    A required injection point without a source does not stop the rendering: it holds the draft.
    Raises InvalidInput, with file and line, for a function or configuration that cannot be run, for
    an object without the shape that a change needs, and for errors reported by functions. Raises
    InputPending while a required input is missing.
    """
    shape, parameters = split_parameters(spec, inputs)
    template = prepared.template_cache.get(shape, _UNSEEN_SHAPE)
    if isinstance(template, CompiledTemplate):
        try:
            filled = template.fill(parameters)
        except InvalidInput:
            # The template has no files and lines for an error; the ordinary rendering fails with
            # them.
            filled = None
        if filled is not None:
            return filled
    target_edits = collect_target_edits(prepared, spec, inputs)
    manifests = prepare_manifests(prepared, target_edits)
    pipeline = prepared.order_pipeline(spec)
    if _needs_whole_package(prepared, pipeline):
        run = WholePackageRun.start(prepared, manifests, target_edits, responses)
        run.run(pipeline)
        files: _Files = (*run.write(), tree_id, tuple(run.results))
    else:
        files = _run_per_object(prepared, manifests, target_edits, pipeline, responses)
    entries, blobs, tree, results = files
    refuse_errors(results)
    kptfile = prepare_kptfile(prepared, spec)
    kptfile_edits = variant_kptfile_edits(kptfile, spec, inputs)
    put_file(KPTFILE, kptfile.apply_edits_to_text(kptfile_edits), entries, blobs)
    prepared.limits.check_sizes(compute_file_sizes(entries, blobs, prepared.upstream.files))
    rendered = RenderedPackage(tree(entries), entries, blobs, (*prepared.duplicates, *results))
    if template is _UNSEEN_SHAPE or template is _SEEN_ONCE:
        if len(prepared.template_cache) >= _MAX_TEMPLATES:
            prepared.template_cache.clear()
        # Compiling costs several renderings, so it starts with the second variant of the shape.
        prepared.template_cache[shape] = _SEEN_ONCE
        if template is _SEEN_ONCE:
            # With an unsuitable sample the shape stays at _SEEN_ONCE, and the next variant is
            # tried. None, in contrast, means that no variant of the shape can have a template.
            with suppress(UnsuitableVariant):
                prepared.template_cache[shape] = compile_template(
                    prepared, spec, inputs, responses, rendered
                )
    return rendered


def _run_per_object(
    prepared: PreparedPackage,
    manifests: PreparedManifests,
    target_edits: TargetEdits,
    pipeline: Pipeline,
    responses: Responses,
) -> _Files:
    """Return the files; those equal for all targets are taken from the shared run."""
    size_counter = prepared.new_size_counter()
    overlays = build_overlays(manifests, target_edits, size_counter)

    def read(file: str) -> Object:
        return first_object(manifests.get(file) or prepared.manifests[file], overlays)

    steps = tuple(
        item if isinstance(item, FunctionStep) else item.build_step(read) for item in pipeline
    )
    shared = shared_run(prepared, steps, responses)
    entries, blobs = dict(shared.entries), dict(shared.blobs)
    tree: Callable[[Mapping[str, TreeEntry]], str] = shared.tree.compute_id
    # The shared run also covers the objects in which this target differs, with upstream's
    # content. Its findings in those are replaced by the findings in the target's own objects.
    findings = [item for item in shared.results if item.place not in overlays]
    unmatched = {number: names for number, names in enumerate(shared.unmatched) if names}
    if unmatched:
        for match in shared.matches:
            if match.place not in overlays and match.step in unmatched:
                unmatched[match.step] -= match.names
    for file, manifest in manifests.items():
        changes: dict[int, ObjectChanges] = {}
        for object_number in find_objects(manifest):
            place = (file, object_number)
            if (overlay := overlays.get(place)) is None:
                changes[object_number] = shared.changes.get(place, NO_CHANGES)
                continue
            steps_with_facts = shared.steps if place in prepared.objects else ()
            for number, (step, facts) in enumerate(steps_with_facts):
                if not is_visible(prepared, step, place, overlay):
                    continue
                if unmatched.get(number):
                    unmatched[number] -= find_sought(step, overlay, size_counter)
                if results := run_step(step, facts, overlay, size_counter):
                    findings += [StepResult(number, place, result) for result in results]
            changes[object_number] = overlay.collect_changes()
        data = rewrite_manifest(manifest, changes)
        if data is None:
            # A removed file leaves no row, so the template of the tree does not apply.
            tree = tree_id
        if data is None or file not in entries or data != prepared.upstream.files[file][1]:
            put_file(file, data, entries, blobs)
    findings += [
        StepResult(number, _BEHIND_ALL, report_unmatched(shared.steps[number][0], names))
        for number, names in unmatched.items()
        if names
    ]
    # In pipeline order, up to the first step with an error: what a run that stops at the first
    # failing step reports (`WholePackageRun.run`). The findings come from the shared run and from
    # the target's own objects, each in its own order.
    findings.sort(key=lambda item: (item.step, item.place))
    failed_step = next((it.step for it in findings if it.result.severity == ERROR), len(steps))
    results = tuple(it.result for it in findings if it.step <= failed_step)
    return entries, blobs, tree, results


_BEHIND_ALL: ObjectPlace = ("\U0010ffff", 0)  # a place, for results about no object


def _needs_whole_package(prepared: PreparedPackage, pipeline: Pipeline) -> bool:
    """Return whether the pipeline needs all objects of the target together."""
    if any(item.function.needs_whole_package for item in pipeline):
        return True
    for at, item in enumerate(pipeline):
        if isinstance(item, DeclaredFunction) and item.config_file:
            document = prepared.manifests[item.config_file].documents[0]
            is_local = (item.config_file, document.index) in prepared.local_config
            # An earlier function that gets the file can change the configuration.
            for earlier in pipeline[:at]:
                includes_it = earlier.function.includes_local or not is_local
                if includes_it and item.config_file.startswith(earlier.directory_prefix):
                    return True
    return False


_BREADTH_FIRST = "kpt.dev/bfs-rendering"
PackageFiles = Mapping[str, tuple[str, bytes]]


def render_package(
    files: PackageFiles, limits: RenderLimits, responses: Responses
) -> tuple[dict[str, tuple[str, bytes]], tuple[FunctionResult, ...]]:
    """Return the package and the results of its own pipeline, as of `kpt fn render`.

    Nothing is cloned, injected or written to the Kptfile. Used for plain directories, and
    to compute what an adopted package was before it was edited. `files` are (mode,
    content) by path. Raises InvalidInput with file and line inside the package, and
    InputPending while a required input is missing.
    """
    if KPTFILE not in files:
        remedy = "use the directory of a package, or create one with `kpt pkg init`"
        raise package_problem("there is no Kptfile", remedy)
    entries = {path: (TreeEntry(mode, blob_id(data)), data) for path, (mode, data) in files.items()}
    no_revision = Revision(name="", commit="", committed_at=0)
    prepared = prepare_package(UpstreamPackage("", "", no_revision, "", entries), limits)
    # kpt renders depth first by default; its opt-in for the opposite order is not implemented, and
    # ignoring it would silently give other files.
    document = prepared.manifests[KPTFILE].documents[0]
    metadata = mapping(mapping(document.value).get("metadata"))
    subpackages = any(path.endswith(f"/{KPTFILE}") for path in prepared.manifests)
    if mapping(metadata.get("annotations")).get(_BREADTH_FIRST) == "true" and subpackages:
        path = ("metadata", "annotations", _BREADTH_FIRST)
        raise render_error(
            "a package cannot be rendered before its subpackages",
            "remove the annotation; subpackages are rendered first",
            ErrorLocation(KPTFILE, ".".join(path), KPTFILE, document.line_of(path)),
        )
    if CONTEXT not in files:  # without the one that `prepare_package` added
        for function in prepared.functions:
            if function.config_file == CONTEXT:
                problem = f"{function.function.name}: there is no {CONTEXT}"
                raise render_error(problem, "add the file, or correct configPath", function.where)
        prepared = replace(
            prepared,
            manifests={file: it for file, it in prepared.manifests.items() if file != CONTEXT},
            objects={place: it for place, it in prepared.objects.items() if place[0] != CONTEXT},
            local_config=frozenset(it for it in prepared.local_config if it[0] != CONTEXT),
        )
    run = WholePackageRun.start(prepared, {}, {}, responses)
    run.run(prepared.functions)
    result, blobs = run.write()
    contents = {entry.oid: data for entry, data in entries.values()} | blobs
    rendered = {path: (entry.mode, contents[entry.oid]) for path, entry in sorted(result.items())}
    return rendered, (*prepared.duplicates, *run.results)

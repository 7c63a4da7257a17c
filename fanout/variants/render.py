"""A variant's files: upstream's, with everything in them that is the variant's own.

The order is Porch's: package context, then the injected fields, then the whole pipeline on the
result. Only files in which this target differs are touched here; the others come from memory.
"""

from collections.abc import Mapping

from fanout.package.edits import Edit
from fanout.package.manifests import Manifest
from fanout.package.tree import tree_id
from fanout.selection.model import Function, VariantSpec
from fanout.variants.cloning import kptfile_edits, shape_of, with_functions
from fanout.variants.context import CONTEXT, context_changes
from fanout.variants.functions.function import Object, Path
from fanout.variants.model import Inputs, Rendered
from fanout.variants.overlay import Overlay
from fanout.variants.pipeline import KPTFILE, Step, policy_step
from fanout.variants.prepared import Place, PreparedPackage, Settled
from fanout.variants.settle import KEPT, put, run_step, settled_for

INJECTED = "kpt.dev/injected-resource"
_NEW_FILE = "100644"


def render(prepared: PreparedPackage, spec: VariantSpec, inputs: Inputs) -> Rendered:
    """The variant's files for this revision; the same arguments give the same bytes.

    Required injection points without a source do not stop it: they hold the draft (design §4).
    Raises InvalidInput, with file and line, for a function or a configuration that cannot be run
    and for an object that has not the shape that a change needs.
    """
    own = _own_content(prepared, spec, inputs)
    overlays = _overlays(prepared, own)
    settled = settled_for(prepared, _steps(prepared, spec, overlays))
    entries, blobs = dict(settled.entries), dict(settled.blobs)
    for file in prepared.varying:
        edits = _file_edits(prepared, settled, file, own, overlays)
        if edits or file not in entries:
            mode = entries[file].mode if file in entries else _NEW_FILE
            put(file, prepared.manifests[file].edited(edits), mode, entries, blobs)
    kptfile = _kptfile(prepared, spec.mutators)
    data = kptfile.edited(kptfile_edits(kptfile, spec, inputs))
    put(KPTFILE, data, entries[KPTFILE].mode, entries, blobs)
    return Rendered(tree_id(entries), entries, blobs)


def _kptfile(prepared: PreparedPackage, mutators: tuple[Function, ...]) -> Manifest:
    """The Kptfile with these functions, from memory where a variant had others of that shape."""
    if not mutators:
        return prepared.kptfile
    shape = shape_of(mutators)
    found = prepared.kptfiles.get(shape)
    if found is None:
        if len(prepared.kptfiles) >= KEPT:
            prepared.kptfiles.clear()
        found = prepared.kptfiles[shape] = with_functions(prepared.kptfile, mutators)
    return found


def _own_content(
    prepared: PreparedPackage, spec: VariantSpec, inputs: Inputs
) -> dict[Place, dict[Path, object]]:
    """What this target alone changes in which document, before any function runs."""
    found: dict[Place, dict[Path, object]] = {(CONTEXT, 0): dict(context_changes(spec))}
    for point, injection in zip(prepared.points, inputs.injections, strict=True):
        if injection.source:
            changes = found.setdefault((point.file, point.document), {})
            changes[point.field,] = injection.value
            changes["metadata", "annotations", INJECTED] = injection.source
    return found


def _overlays(
    prepared: PreparedPackage, own: Mapping[Place, Mapping[Path, object]]
) -> dict[Place, Overlay]:
    """Those of the documents that a function sees or is configured by, with their changes."""
    found: dict[Place, Overlay] = {}
    for place, changes in own.items():
        if place in prepared.objects or place[0] in prepared.configuring:
            file, index = place
            overlay = found[place] = Overlay(file, prepared.manifests[file].document(index))
            for path, value in changes.items():
                overlay.set(path, value)
    return found


def _steps(
    prepared: PreparedPackage, spec: VariantSpec, overlays: Mapping[Place, Overlay]
) -> tuple[Step, ...]:
    """The whole pipeline: subpackages' functions, the policy's, the package's own."""

    def read(file: str) -> Object:
        document = prepared.manifests[file].documents[0]
        overlay = overlays.get((file, document.index))
        value: Object = overlay.value if overlay else document.value
        return value

    own = [declared.step(read) for declared in prepared.functions]
    policy = [policy_step(function, at, spec) for at, function in enumerate(spec.mutators)]
    return (*own[: prepared.policy_at], *policy, *own[prepared.policy_at :])


def _file_edits(
    prepared: PreparedPackage,
    settled: Settled,
    file: str,
    own: Mapping[Place, Mapping[Path, object]],
    overlays: Mapping[Place, Overlay],
) -> list[Edit]:
    edits: list[Edit] = []
    for document in prepared.manifests[file].documents:
        place = (file, document.index)
        overlay = overlays.get(place)
        if overlay is not None:
            if place in prepared.objects:
                for step, facts in settled.steps:
                    run_step(step, facts, file, overlay)
            edits += overlay.edits()
        elif place in own:
            edits += [Edit(document.index, path, value) for path, value in own[place].items()]
        else:
            edits += settled.edits.get(place, ())
    return edits

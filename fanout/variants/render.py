"""A variant's files: upstream's, with everything in them that is the variant's own.

The order is Porch's: package context, then the injected fields, then the whole pipeline on the
result. Only files in which this target differs are touched here; the others come from memory.
"""

from collections.abc import Callable, Iterator, Mapping

from fanout.package.edits import Edit
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.manifests import Document, Manifest
from fanout.selection.model import VariantSpec
from fanout.variants.cloning import form_key, kptfile_edits, kptfile_form
from fanout.variants.context import CONTEXT, context_changes
from fanout.variants.functions.function import Change, Object, Path, mapping
from fanout.variants.model import Injection, Inputs, Rendered
from fanout.variants.overlay import Overlay
from fanout.variants.pipeline import Step, policy_step
from fanout.variants.points import Point
from fanout.variants.prepared import Place, PreparedPackage, Settled
from fanout.variants.settle import KEPT, put, run_step, settled_for

INJECTED = "kpt.dev/injected-resource"
_NEW_FILE = "100644"
_Own = Mapping[Place, Mapping[Path, object]]


def render(prepared: PreparedPackage, spec: VariantSpec, inputs: Inputs) -> Rendered:
    """The variant's files for this revision; the same arguments give the same bytes.

    Required injection points without a source do not stop it: they hold the draft (design §4).
    Raises InvalidInput, with file and line, for a function or a configuration that cannot be run
    and for an object that has not the shape that a change needs.
    """
    own = _own_content(prepared, spec, inputs)
    forms = {file: _form_of(prepared, file, own) for file in prepared.varying}
    overlays = _overlays(prepared, forms, own)
    settled = settled_for(prepared, _steps(prepared, spec, overlays))
    entries, blobs = dict(settled.entries), dict(settled.blobs)
    for file, form in forms.items():
        data = form.edited(_file_edits(prepared, settled, form, own, overlays))
        upstream = entries.get(file)
        if upstream is None or data != prepared.upstream.files[file][1]:
            put(file, data, upstream.mode if upstream else _NEW_FILE, entries, blobs)
    form = _remembered(
        prepared, (KPTFILE, form_key(spec)), lambda: kptfile_form(prepared.kptfile, spec)
    )
    data = form.edited(kptfile_edits(form, spec, inputs))
    put(KPTFILE, data, entries[KPTFILE].mode, entries, blobs)
    return Rendered(settled.tree.id_of(entries), entries, blobs)


def _own_content(prepared: PreparedPackage, spec: VariantSpec, inputs: Inputs) -> _Own:
    """What this target alone changes in which document, before any function runs."""
    found: dict[Place, dict[Path, object]] = {(CONTEXT, 0): dict(context_changes(spec))}
    for point, injection in zip(prepared.points, inputs.injections, strict=True):
        if injection.source:
            document = prepared.manifests[point.file].document(point.document)
            changes = found.setdefault((point.file, point.document), {})
            changes.update(_injected(document, point, injection))
    return found


def _injected(document: Document, point: Point, injection: Injection) -> Iterator[Change]:
    """The field as a whole; texts under the same keys one by one, so that comments stay."""
    present, value = mapping(document.value).get(point.field), mapping(injection.value)
    if (
        isinstance(present, Mapping)
        and present.keys() == value.keys()
        and all(type(text) is str for text in value.values())
    ):
        for key, text in value.items():
            yield (point.field, key), text
    else:
        yield (point.field,), _in_order(injection.value)
    yield ("metadata", "annotations", INJECTED), injection.source


def _in_order(value: object) -> object:
    """The value with its keys sorted: maps of the cluster have no order, files do."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(item) for item in value] if isinstance(value, list) else value


def _form_of(prepared: PreparedPackage, file: str, own: _Own) -> Manifest:
    """The file with a place for every text that is to come, so that the rest is replacing."""
    manifest = prepared.manifests[file]
    places = [
        (document.index, [path for path, value in changes.items() if isinstance(value, str)])
        for document in manifest.documents
        if (changes := own.get((file, document.index)))
    ]
    if not places:
        return manifest

    def make() -> Manifest:
        edits: list[Edit] = []
        for index, paths in places:
            overlay = Overlay(file, manifest.document(index))
            for path in paths:
                overlay.place(path)
            edits += overlay.edits()
        return Manifest.parse(manifest.edited(edits), file)

    key = (file, *((index, *paths) for index, paths in places))
    return _remembered(prepared, key, make)


def _remembered(prepared: PreparedPackage, key: object, make: Callable[[], Manifest]) -> Manifest:
    found = prepared.forms.get(key)
    if found is None:
        if len(prepared.forms) >= KEPT:
            prepared.forms.clear()
        found = prepared.forms[key] = make()
    return found


def _overlays(
    prepared: PreparedPackage, forms: Mapping[str, Manifest], own: _Own
) -> dict[Place, Overlay]:
    """Those of the documents that a function sees or is configured by, with their changes."""
    found: dict[Place, Overlay] = {}
    for place, changes in own.items():
        if place in prepared.objects or place[0] in prepared.configuring:
            file, index = place
            overlay = found[place] = Overlay(file, forms[file].document(index))
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
    form: Manifest,
    own: _Own,
    overlays: Mapping[Place, Overlay],
) -> list[Edit]:
    edits: list[Edit] = []
    for document in form.documents:
        place = (form.file, document.index)
        overlay = overlays.get(place)
        if overlay is not None:
            if place in prepared.objects:
                for step, facts in settled.steps:
                    run_step(step, facts, form.file, overlay)
            edits += overlay.edits()
        elif place in own:
            edits += [Edit(document.index, path, value) for path, value in own[place].items()]
        else:
            edits += settled.edits.get(place, ())
    return edits

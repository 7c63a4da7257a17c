"""Edits that one target makes to a package before any function runs.

These are the package context and the injected fields. Files with such content get a prepared
manifest: the file with an empty text at every path that receives one, shared by all targets that
bring texts for the same paths, so that only scalars are left to be replaced.
"""

from collections.abc import Callable, Iterator, Mapping

from fanout.api.object_meta import Label
from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING, REMOVE, Edit, same_json
from fanout.package.kptfile import KPTFILE
from fanout.package.manifest import Manifest
from fanout.selection.variant_spec import VariantSpec
from fanout.variants.functions.function_interface import Change, Path, UnfitObject, mapping
from fanout.variants.manifest_objects import find_objects
from fanout.variants.overlay import Overlay
from fanout.variants.package_context import CONTEXT, context_edits, refuse_context_keys
from fanout.variants.package_preparation import ObjectPlace, PreparedPackage
from fanout.variants.render_model import RenderInputs
from fanout.variants.size_accounting import SizeCounter
from fanout.variants.variant_kptfile import kptfile_form_key, with_variant_fields

CACHE_ENTRIES = 64  # manifests or runs; where every target has its own, more only costs memory

TargetEdits = Mapping[ObjectPlace, Mapping[Path, object]]
PreparedManifests = Mapping[str, Manifest]


def collect_target_edits(
    prepared: PreparedPackage, spec: VariantSpec, inputs: RenderInputs
) -> TargetEdits:
    """Return the target-specific values by object and path, before any function runs.

    Raises InvalidInput for keys that the package context cannot have.
    """
    edits: dict[ObjectPlace, dict[Path, object]] = {}
    if prepared.has_context:
        edits[CONTEXT, 0] = dict(context_edits(spec))
    else:
        refuse_context_keys(spec)
    for point, injection in zip(prepared.points, inputs.injections, strict=True):
        if injection.source:
            place = (point.file, point.number)
            object_edits = edits.setdefault(place, {})
            present = mapping(prepared.all_objects[place].value).get(point.field)
            object_edits.update(_value_edits(present, injection.value, (point.field,)))
            source_path = ("metadata", "annotations", Label.INJECTED_RESOURCE.value)
            object_edits[source_path] = injection.source
    return edits


def _value_edits(present: object, value: object, path: Path) -> Iterator[Change]:
    """Yield the edits that turn one value into the other, by entry where maps overlap.

    Texts are yielded even where they are equal, so that all variants share one prepared manifest.
    """
    if not isinstance(present, Mapping) or not isinstance(value, Mapping):
        if isinstance(value, str) or not same_json(present, value):
            yield path, _sort_keys(value)
    # Without a common key nothing of upstream's map is kept, so it is written as one block in
    # sorted order instead of being emptied key by key.
    elif not present.keys() & value.keys():
        yield path, _sort_keys(value)
    else:
        yield from (((*path, key), REMOVE) for key in present if key not in value)
        for key in [*present, *sorted(value.keys() - present.keys())]:
            if key in value:
                yield from _value_edits(present.get(key, MISSING), value[key], (*path, key))


def _sort_keys(value: object) -> object:
    """Return the value with sorted keys: maps from the cluster have no order, files do."""
    if isinstance(value, dict):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(item) for item in value] if isinstance(value, list) else value


def prepare_manifests(prepared: PreparedPackage, target_edits: TargetEdits) -> PreparedManifests:
    """Return the varying files with an empty text at every path that gets one.

    Raises InvalidInput with file and line for an injection into a sealed object.
    """
    return {
        file: _prepare_manifest(prepared, file, target_edits) for file in prepared.varying_files
    }


def _prepare_manifest(prepared: PreparedPackage, file: str, target_edits: TargetEdits) -> Manifest:
    manifest = prepared.manifests[file]
    objects = find_objects(manifest)
    places = [
        (number, [path for path, value in changes.items() if isinstance(value, str)])
        for number in objects
        if (changes := target_edits.get((file, number)))
    ]
    if not places:
        return manifest

    def build() -> Manifest:
        edits: list[Edit] = []
        for number, paths in places:
            overlay = Overlay(file, objects[number])
            try:
                for path in paths:
                    if overlay.peek(path) is MISSING:  # to be replaced later
                        overlay.set(path, "")
            except UnfitObject as unfit:
                raise _unfit_error(overlay, unfit) from None
            edits += overlay.collect_edits()
        return Manifest.parse(manifest.apply_edits_to_text(edits), file)

    return _get_or_build(prepared, (file, *((number, *paths) for number, paths in places)), build)


def prepare_kptfile(prepared: PreparedPackage, spec: VariantSpec) -> Manifest:
    """Return the Kptfile with empty values at every path that the variant sets."""
    key = (KPTFILE, kptfile_form_key(spec))
    return _get_or_build(prepared, key, lambda: with_variant_fields(prepared.kptfile, spec))


def _get_or_build(
    prepared: PreparedPackage, key: object, build: Callable[[], Manifest]
) -> Manifest:
    if (manifest := prepared.manifest_cache.get(key)) is None:
        if len(prepared.manifest_cache) >= CACHE_ENTRIES:
            # Cleared instead of evicting one by one: where every target has a shape of its own no
            # entry is used twice, and the order of use would only cost bookkeeping.
            prepared.manifest_cache.clear()
        manifest = prepared.manifest_cache[key] = build()
    return manifest


def build_overlays(
    manifests: PreparedManifests, target_edits: TargetEdits, size_counter: SizeCounter
) -> dict[ObjectPlace, Overlay]:
    """Return the objects of these files that the target edits, with the edits applied.

    Raises InvalidInput with file and line when the package would exceed its size limits.
    """
    objects = {file: find_objects(manifest) for file, manifest in manifests.items()}
    overlays: dict[ObjectPlace, Overlay] = {}
    for (file, number), values in target_edits.items():
        overlay = overlays[file, number] = Overlay(file, objects[file][number])
        try:
            for path, value in values.items():
                size_counter.count_change(file, path, overlay.peek(path), value)
                overlay.set(path, value)
        except UnfitObject as unfit:
            raise _unfit_error(overlay, unfit) from None
    return overlays


def _unfit_error(overlay: Overlay, unfit: UnfitObject) -> InvalidInput:
    return overlay.unfit_error("package context" if overlay.file == CONTEXT else "injection", unfit)

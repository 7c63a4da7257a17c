"""What one target alone changes in a package before any function runs: context and injections.

The files with such content get a form: the file with a place for every text that is to come, which
all targets share that bring texts for the same places.
"""

from collections.abc import Callable, Iterator, Mapping

from fanout.api.labels import Label
from fanout.package.edits import MISSING, REMOVE, Edit, get, same
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.manifests import Manifest
from fanout.selection.model import VariantSpec
from fanout.variants.cloning import form_key, kptfile_form
from fanout.variants.context import CONTEXT, context_changes, refuse_keys
from fanout.variants.functions.function import Change, Path, Unfit, mapping
from fanout.variants.growth import Growth
from fanout.variants.model import Injection, Inputs
from fanout.variants.overlay import Overlay
from fanout.variants.parts import Part, parts_of
from fanout.variants.points import Point
from fanout.variants.prepared import Place, PreparedPackage

KEPT = 64  # forms, and pipelines; where every target has its own, more would only cost memory

Own = Mapping[Place, Mapping[Path, object]]
Forms = Mapping[str, Manifest]
Parts = Mapping[Place, Part]


def own_content(prepared: PreparedPackage, spec: VariantSpec, inputs: Inputs) -> Own:
    """What this target alone changes in which object, before any function runs.

    Raises InvalidInput for keys that the package context cannot have.
    """
    found: dict[Place, dict[Path, object]] = {}
    if prepared.has_context:
        found[CONTEXT, 0] = dict(context_changes(spec))
    else:
        refuse_keys(spec)
    for point, injection in zip(prepared.points, inputs.injections, strict=True):
        if injection.source:
            place = (point.file, point.number)
            changes = found.setdefault(place, {})
            changes.update(_injected(prepared.parts[place], point, injection))
    return found


def _injected(part: Part, point: Point, injection: Injection) -> Iterator[Change]:
    """The field as a whole; what stays in it keeps its comments."""
    yield from _becoming(mapping(part.value).get(point.field), injection.value, (point.field,))
    yield ("metadata", "annotations", Label.INJECTED_RESOURCE.value), injection.source


def _becoming(present: object, value: object, path: Path) -> Iterator[Change]:
    """What makes one value the other, entry by entry as far as maps have entries in common.

    Texts are told also where they are the same, so that all variants share one form of the file.
    """
    if not isinstance(present, Mapping) or not isinstance(value, Mapping):
        if isinstance(value, str) or not same(present, value):
            yield path, _in_order(value)
    elif not present.keys() & value.keys():
        yield path, _in_order(value)
    else:
        yield from (((*path, key), REMOVE) for key in present if key not in value)
        for key in [*present, *sorted(value.keys() - present.keys())]:
            if key in value:
                yield from _becoming(present.get(key, MISSING), value[key], (*path, key))


def _in_order(value: object) -> object:
    """The value with its keys sorted: maps of the cluster have no order, files do."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(item) for item in value] if isinstance(value, list) else value


def form_of(prepared: PreparedPackage, file: str, own: Own) -> Manifest:
    """The file with a place for every text that is to come, so that the rest is replacing."""
    manifest = prepared.manifests[file]
    parts = parts_of(manifest)
    places = [
        (number, [path for path, value in changes.items() if isinstance(value, str)])
        for number in parts
        if (changes := own.get((file, number)))
    ]
    if not places:
        return manifest

    def make() -> Manifest:
        edits: list[Edit] = []
        for number, paths in places:
            overlay = Overlay(file, parts[number])
            for path in paths:
                overlay.place(path)
            edits += overlay.edits()
        return Manifest.parse(manifest.edited(edits), file)

    key = (file, *((number, *paths) for number, paths in places))
    return _remembered(prepared, key, make)


def kptfile_form_of(prepared: PreparedPackage, spec: VariantSpec) -> Manifest:
    """The Kptfile with a place for all that the variant puts there."""
    key = (KPTFILE, form_key(spec))
    return _remembered(prepared, key, lambda: kptfile_form(prepared.kptfile, spec))


def _remembered(prepared: PreparedPackage, key: object, make: Callable[[], Manifest]) -> Manifest:
    found = prepared.forms.get(key)
    if found is None:
        if len(prepared.forms) >= KEPT:
            prepared.forms.clear()
        found = prepared.forms[key] = make()
    return found


def parts_in(forms: Forms) -> Parts:
    """The objects of these files by their places."""
    return {(file, at): part for file, it in forms.items() for at, part in parts_of(it).items()}


def overlay_of(parts: Parts, own: Own, place: Place, growth: Growth) -> Overlay:
    """The object with what the target changes in it.

    Raises InvalidInput with file and line when the package would exceed its limits.
    """
    overlay = Overlay(place[0], parts[place])
    try:
        for path, value in own[place].items():
            growth.put(place[0], path, get(overlay.value, path), value)
            overlay.set(path, value)
    except Unfit as unfit:
        what = "package context" if place[0] == CONTEXT else "injection"
        raise overlay.refused(what, unfit) from None
    return overlay

"""A variant's files: upstream's, with everything in them that is the variant's own.

The order is Porch's: package context, then the injected fields, then the whole pipeline on the
result. Only files in which this target differs are touched here; the others come from memory.
"""

from collections.abc import Callable, Iterator, Mapping

from fanout.api.labels import Label
from fanout.package.edits import MISSING, REMOVE, Edit, same
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.manifests import Manifest
from fanout.package.tree import Entry, tree_id
from fanout.selection.model import VariantSpec
from fanout.variants.cloning import form_key, kptfile_edits, kptfile_form
from fanout.variants.context import CONTEXT, context_changes
from fanout.variants.functions.function import Change, Object, Path, Result, mapping
from fanout.variants.model import Injection, Inputs, Rendered
from fanout.variants.overlay import UNTOUCHED, Outcome, Overlay
from fanout.variants.parts import Part, parts_of
from fanout.variants.pipeline import Declared, Pipeline, Step, in_order
from fanout.variants.points import Point
from fanout.variants.prepared import Found, Place, PreparedPackage, Settled
from fanout.variants.questions import NOTHING_KNOWN, Answers
from fanout.variants.results import first_failure, refuse_errors
from fanout.variants.settle import KEPT, put, run_step, sees, settled_for
from fanout.variants.whole import Whole
from fanout.variants.writing import written

_Own = Mapping[Place, Mapping[Path, object]]
_Forms = Mapping[str, Manifest]
_Parts = Mapping[Place, Part]
_Files = tuple[
    dict[str, Entry], dict[str, bytes], Callable[[Mapping[str, Entry]], str], tuple[Result, ...]
]


def render(
    prepared: PreparedPackage, spec: VariantSpec, inputs: Inputs, answers: Answers = NOTHING_KNOWN
) -> Rendered:
    """The variant's files for this revision; the same arguments give the same bytes.

    Required injection points without a source do not stop it: they hold the draft (design §4).
    Raises InvalidInput, with file and line, for a function or a configuration that cannot be run
    and for an object that has not the shape that a change needs; for what a function finds to be an
    error; Unanswered where the world is to be asked something first.
    """
    own = _own_content(prepared, spec, inputs)
    forms = {file: _form_of(prepared, file, own) for file in prepared.varying}
    pipeline = in_order(
        prepared.functions, prepared.policy_at, spec, prepared.manifests, prepared.programs
    )
    entries, blobs, tree, results = (_wholly if _whole(prepared, pipeline) else _mostly_shared)(
        prepared, forms, own, pipeline, answers
    )
    refuse_errors(results)
    form = _remembered(
        prepared, (KPTFILE, form_key(spec)), lambda: kptfile_form(prepared.kptfile, spec)
    )
    put(KPTFILE, form.edited(kptfile_edits(form, spec, inputs)), entries, blobs)
    return Rendered(tree(entries), entries, blobs, results)


def _mostly_shared(
    prepared: PreparedPackage, forms: _Forms, own: _Own, pipeline: Pipeline, answers: Answers
) -> _Files:
    """The files, those in which targets do not differ from memory."""
    parts = _parts(forms)
    overlays = _overlays(prepared, parts, own, pipeline)
    settled = settled_for(prepared, _steps(prepared, forms, pipeline, overlays), answers)
    for place in prepared.local & own.keys() - overlays.keys():
        if any(step.function.sees_local for step, _ in settled.steps):
            overlays[place] = _overlay(parts, own, place)
    entries, blobs = dict(settled.entries), dict(settled.blobs)
    tree: Callable[[Mapping[str, Entry]], str] = settled.tree.id_of
    found = [item for item in settled.results if item.place not in overlays]
    for file, form in forms.items():
        data = written(form, _outcomes(prepared, settled, form, own, overlays, found))
        if data is None:
            tree = tree_id  # the remembered form of the tree has a place for the file
        if data is None or file not in entries or data != prepared.upstream.files[file][1]:
            put(file, data, entries, blobs)
    return entries, blobs, tree, first_failure(found)


def _wholly(
    prepared: PreparedPackage, forms: _Forms, own: _Own, pipeline: Pipeline, answers: Answers
) -> _Files:
    """The files after functions that look at the objects of a package together."""
    parts = _parts(forms)
    overlays = {
        place: _overlay(parts, own, place) if place in own else Overlay(place[0], part)
        for place, part in prepared.objects.items()
    }
    overlays |= {place: _overlay(parts, own, place) for place in own.keys() - overlays.keys()}
    whole = Whole(prepared, forms, overlays, answers=answers)
    whole.run(pipeline)
    return *whole.write(), tree_id, tuple(whole.results)


def _whole(prepared: PreparedPackage, pipeline: Pipeline) -> bool:
    """Must the functions be shown this target's objects all together?"""
    if any(item.function.looks_around for item in pipeline):
        return True
    return any(
        isinstance(item, Declared) and item.config_file and _may_change(prepared, before, item)
        for at, item in enumerate(pipeline)
        for before in pipeline[:at]
    )


def _may_change(prepared: PreparedPackage, before: Step | Declared, item: Declared) -> bool:
    """Can the function before it change what the other is configured by?"""
    if not item.config_file.startswith(before.below):
        return False
    document = prepared.manifests[item.config_file].documents[0]
    return before.function.sees_local or (item.config_file, document.index) not in prepared.local


def _own_content(prepared: PreparedPackage, spec: VariantSpec, inputs: Inputs) -> _Own:
    """What this target alone changes in which object, before any function runs."""
    found: dict[Place, dict[Path, object]] = {(CONTEXT, 0): dict(context_changes(spec))}
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


def _form_of(prepared: PreparedPackage, file: str, own: _Own) -> Manifest:
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


def _remembered(prepared: PreparedPackage, key: object, make: Callable[[], Manifest]) -> Manifest:
    found = prepared.forms.get(key)
    if found is None:
        if len(prepared.forms) >= KEPT:
            prepared.forms.clear()
        found = prepared.forms[key] = make()
    return found


def _overlays(
    prepared: PreparedPackage, parts: _Parts, own: _Own, pipeline: Pipeline
) -> dict[Place, Overlay]:
    """Those of the objects that a function sees or is configured by, with their changes."""
    configuring = {item.config_file for item in pipeline if isinstance(item, Declared)}
    return {
        place: _overlay(parts, own, place)
        for place in own
        if (place in prepared.objects and place not in prepared.local) or place[0] in configuring
    }


def _parts(forms: _Forms) -> _Parts:
    return {(file, at): part for file, it in forms.items() for at, part in parts_of(it).items()}


def _overlay(parts: _Parts, own: _Own, place: Place) -> Overlay:
    overlay = Overlay(place[0], parts[place])
    for path, value in own[place].items():
        overlay.set(path, value)
    return overlay


def _steps(
    prepared: PreparedPackage,
    forms: _Forms,
    pipeline: Pipeline,
    overlays: Mapping[Place, Overlay],
) -> tuple[Step, ...]:
    def read(file: str) -> Object:
        document = (forms.get(file) or prepared.manifests[file]).documents[0]
        overlay = overlays.get((file, document.index))
        value: Object = overlay.value if overlay else document.value
        return value

    return tuple(item if isinstance(item, Step) else item.step(read) for item in pipeline)


def _outcomes(
    prepared: PreparedPackage,
    settled: Settled,
    form: Manifest,
    own: _Own,
    overlays: Mapping[Place, Overlay],
    results: list[Found],
) -> dict[int, Outcome]:
    """What becomes of the objects of a file in which targets differ; adds to `results`."""
    found: dict[int, Outcome] = {}
    for at, part in parts_of(form).items():
        place = (form.file, at)
        overlay = overlays.get(place)
        if overlay is not None:
            if place in prepared.objects:
                for number, (step, facts) in enumerate(settled.steps):
                    if sees(prepared, step, place, overlay):
                        said = run_step(step, facts, form.file, overlay)
                        if said:
                            results += [Found(number, place, result) for result in said]
            found[at] = overlay.outcome()
        elif place in own:
            edits = (
                Edit(part.index, (*part.path, *path), value) for path, value in own[place].items()
            )
            found[at] = Outcome(tuple(edits))
        else:
            found[at] = settled.outcomes.get(place, UNTOUCHED)
    return found

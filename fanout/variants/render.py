"""A variant's files: upstream's, with everything in them that is the variant's own.

The order is Porch's: package context, then the injected fields, then the whole pipeline on the
result. Only files in which this target differs are touched here; the others come from memory.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from fanout.errors import InvalidInput
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.manifests import Manifest
from fanout.package.tree import Entry, tree_id
from fanout.selection.model import VariantSpec
from fanout.variants.cloning import kptfile_edits
from fanout.variants.functions.function import Object, Result
from fanout.variants.growth import Growth, sizes_in
from fanout.variants.leaves import split
from fanout.variants.model import Inputs, Rendered
from fanout.variants.mould import Mould, Unsuited, make
from fanout.variants.overlay import UNTOUCHED, Outcome, Overlay
from fanout.variants.own import (
    Forms,
    Own,
    form_of,
    kptfile_form_of,
    overlay_of,
    own_content,
    parts_in,
)
from fanout.variants.parts import parts_of
from fanout.variants.pipeline import Declared, Pipeline, Step, in_order
from fanout.variants.prepared import Found, Place, PreparedPackage, Settled
from fanout.variants.questions import NOTHING_KNOWN, Answers
from fanout.variants.results import first_failure, refuse_errors
from fanout.variants.settle import put, run_step, sees, settled_for
from fanout.variants.whole import Whole
from fanout.variants.writing import written

_Files = tuple[
    dict[str, Entry], dict[str, bytes], Callable[[Mapping[str, Entry]], str], tuple[Result, ...]
]

_MOST_FORMS = 256  # remembered per package
_NEW, _SEEN = object(), object()  # in place of a mould: a form that nobody, or one variant, has had


def render(
    prepared: PreparedPackage, spec: VariantSpec, inputs: Inputs, answers: Answers = NOTHING_KNOWN
) -> Rendered:
    """The variant's files for this revision; the same arguments give the same bytes.

    Required injection points without a source do not stop it: they hold the draft (design §4).
    Raises InvalidInput, with file and line, for a function or a configuration that cannot be run
    and for an object that has not the shape that a change needs; for what a function finds to be an
    error; Unanswered where the world is to be asked something first.
    """
    form, leaves = split(spec, inputs)
    mould = prepared.moulds.get(form, _NEW)
    if isinstance(mould, Mould):
        try:
            filled = mould.filled(leaves)
        except InvalidInput:
            filled = None  # the ordinary way says what is wrong, and where
        if filled is not None:
            return filled
    rendered = _one_by_one(prepared, spec, inputs, answers)
    if mould is _NEW or mould is _SEEN:
        if len(prepared.moulds) >= _MOST_FORMS:
            prepared.moulds.clear()
        prepared.moulds[form] = _SEEN  # what one variant alone has is not worth a mould
        if mould is _SEEN:
            with suppress(Unsuited):
                prepared.moulds[form] = make(prepared, spec, inputs, answers, rendered)
    return rendered


def _one_by_one(
    prepared: PreparedPackage, spec: VariantSpec, inputs: Inputs, answers: Answers
) -> Rendered:
    """The same for one variant alone, step by step."""
    own, growth = own_content(prepared, spec, inputs), prepared.growth()
    forms = {file: form_of(prepared, file, own) for file in prepared.varying}
    pipeline = in_order(
        prepared.functions, prepared.policy_at, spec, prepared.manifests, prepared.programs
    )
    entries, blobs, tree, results = (_wholly if _whole(prepared, pipeline) else _mostly_shared)(
        prepared, forms, own, pipeline, answers, growth
    )
    refuse_errors(results)
    form = kptfile_form_of(prepared, spec)
    put(KPTFILE, form.edited(kptfile_edits(form, spec, inputs)), entries, blobs)
    prepared.limits.check_sizes(sizes_in(entries, blobs, prepared.upstream.files))
    return Rendered(tree(entries), entries, blobs, results)


def _mostly_shared(
    prepared: PreparedPackage,
    forms: Forms,
    own: Own,
    pipeline: Pipeline,
    answers: Answers,
    growth: Growth,
) -> _Files:
    """The files, those in which targets do not differ from memory."""
    parts = parts_in(forms)
    overlays = {place: overlay_of(parts, own, place, growth) for place in own}
    settled = settled_for(prepared, _steps(prepared, forms, pipeline, overlays), answers)
    entries, blobs = dict(settled.entries), dict(settled.blobs)
    tree: Callable[[Mapping[str, Entry]], str] = settled.tree.id_of
    found = [item for item in settled.results if item.place not in overlays]
    for file, form in forms.items():
        data = written(form, _outcomes(prepared, settled, form, overlays, found, growth))
        if data is None:
            tree = tree_id  # the remembered form of the tree has a place for the file
        if data is None or file not in entries or data != prepared.upstream.files[file][1]:
            put(file, data, entries, blobs)
    return entries, blobs, tree, first_failure(found)


def _wholly(
    prepared: PreparedPackage,
    forms: Forms,
    own: Own,
    pipeline: Pipeline,
    answers: Answers,
    growth: Growth,
) -> _Files:
    """The files after functions that look at the objects of a package together."""
    parts = parts_in(forms)
    overlays = {
        place: overlay_of(parts, own, place, growth) if place in own else Overlay(place[0], part)
        for place, part in prepared.objects.items()
    }
    others = own.keys() - overlays.keys()
    overlays |= {place: overlay_of(parts, own, place, growth) for place in others}
    whole = Whole(prepared, forms, overlays, answers=answers, growth=growth)
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


def _steps(
    prepared: PreparedPackage,
    forms: Forms,
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
    overlays: Mapping[Place, Overlay],
    results: list[Found],
    growth: Growth,
) -> dict[int, Outcome]:
    """What becomes of the objects of a file in which targets differ; adds to `results`."""
    found: dict[int, Outcome] = {}
    for at in parts_of(form):
        place = (form.file, at)
        overlay = overlays.get(place)
        if overlay is not None:
            if place in prepared.objects:
                for number, (step, facts) in enumerate(settled.steps):
                    if sees(prepared, step, place, overlay):
                        said = run_step(step, facts, form.file, overlay, growth)
                        if said:
                            results += [Found(number, place, result) for result in said]
            found[at] = overlay.outcome()
        else:
            found[at] = settled.outcomes.get(place, UNTOUCHED)
    return found

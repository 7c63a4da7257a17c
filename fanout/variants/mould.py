"""What all variants of one form have in common: made once, and then filled with leaves.

A pipeline is run on marks in place of the leaves. Where they come to stand in what it yields, each
variant has its own values; the rest of every file is the same for all. That holds as long as no
step of the pipeline goes by a text that has a mark: `heeds` says what a function goes by, and one
that does not say it may see no mark at all. A mould is used only after it has yielded what the
ordinary way yields.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fanout.errors import InvalidInput
from fanout.package.blobs import Blobs, Filled
from fanout.package.edits import Edit, get, independent, same
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.manifests import Manifest
from fanout.package.scalars import is_plain, scalar
from fanout.package.tree import Entry, blob_id
from fanout.selection.model import VariantSpec
from fanout.variants.cloning import kptfile_edits
from fanout.variants.functions.function import External, Facts, InProcess, mapping
from fanout.variants.functions.registry import find
from fanout.variants.growth import Sizes, sizes_in
from fanout.variants.leaves import Leaf, marked, split
from fanout.variants.model import Inputs, Rendered
from fanout.variants.overlay import Outcome, Overlay
from fanout.variants.own import form_of, kptfile_form_of, overlay_of, own_content, parts_in
from fanout.variants.pipeline import Declared, Step, in_order
from fanout.variants.prepared import PreparedPackage
from fanout.variants.questions import Answers, Unanswered
from fanout.variants.selection import ALL
from fanout.variants.slots import (
    Recipe,
    Slot,
    Slots,
    count_slots,
    filled,
    has_slot,
    holds_mark,
    joined,
)
from fanout.variants.treeform import TreeForm
from fanout.variants.whole import Whole

# A slot is shown by a value that stands without quotes only where every text without a line break
# may be put as `scalar` writes it: not in flow style, where a colon needs quotes, nor in JSON.
_SHOWN = re.compile("(?<=[:-] )zz:slot:([0-9]+):zz(?=\r?\n| #|$)")


class Unsuited(Exception):
    """This variant is no example of its form; another one may be."""


class _NoMould(Exception):
    """Variants of this form have more of their own than leaves."""


class _Check(NamedTuple):
    """A function that is to see the configuration of each variant: what it may refuse in it, and
    what decides in it."""

    function: InProcess
    config: Any  # with slots
    copied: tuple[str, ...]  # names in its `data` whose values are slots

    @classmethod
    def of(cls, function: InProcess, config: Any) -> "_Check":
        """The function with a configuration that has slots."""
        data = mapping(config.get("data"))
        return cls(function, config, tuple(it for it in data if isinstance(data[it], Slot)))

    def passes(self, values: Sequence[Leaf]) -> bool:
        """Is nothing in it but what is copied? Raises InvalidInput where it is refused."""
        config = filled(self.config, values)
        self.function.configure(config)
        return all(self.function.copies(name, config["data"][name]) for name in self.copied)


class _Present(NamedTuple):
    """A value that upstream has where a slot is: nobody who has the same changes how it stands."""

    slot: int  # which one of the file
    recipe: int
    value: object
    spelling: str


class _Text(NamedTuple):
    """A file as pieces that stay and slots between them."""

    pieces: list[str]  # with room for the values: every second one is empty
    recipes: list[int]
    present: list[_Present]


class _File(NamedTuple):
    """One file in which variants of the form differ."""

    path: str
    mode: str
    upstream: str  # id of what upstream has there
    manifest: Manifest
    edits: tuple[Edit, ...]  # with slots
    text: _Text | None  # None: it must be edited each time


class Mould:
    """Variants of one form, but for their leaves."""

    def __init__(
        self,
        files: Sequence[_File],
        checks: Sequence[_Check],
        leaves: int,
        joining: tuple[Recipe, ...],
        first: Rendered,
        sizes: Sizes,
    ) -> None:
        self._sizes = sizes
        varying = {file.path for file in files}
        self._files = files
        self._checks = checks
        self._joined = joining
        recipes = {recipe for file in files if file.text for recipe in file.text.recipes}
        self._written = sorted(recipe for recipe in recipes if recipe < leaves)
        self._entries = first.entries
        self._results = first.results
        self._blobs = {
            entry.oid: first.blobs[entry.oid]
            for path, entry in first.entries.items()
            if path not in varying and entry.oid in first.blobs
        }
        self._tree = TreeForm(first.entries, varying)

    def filled(self, leaves: Sequence[Leaf]) -> Rendered | None:
        """The variant with these leaves; None where one of them is more than copied.

        Raises InvalidInput where the ordinary way would.
        """
        made = joined(leaves, self._joined, self._sizes.limits.file_size)
        if made is None:
            return None
        values = [*leaves, *made]
        if not all(check.passes(values) for check in self._checks):
            return None
        if not all(map(is_plain, made)):
            return None  # what was joined may have become a number
        texts = dict(enumerate(made, len(leaves)))
        for leaf in self._written:
            texts[leaf] = scalar(leaves[leaf])
        plain = "\\n" not in "".join(texts.values())  # none has more than one line
        entries, whole, own = dict(self._entries), self._blobs, dict[str, Filled]()
        room = self._sizes.room
        for file in self._files:
            found = _quickly(file.text, values, texts) if plain and file.text else None
            own_texts = found.texts if found else _longest(file, values)
            if not self._sizes.holds(own_texts):
                return None
            data = _edited(file, values) if found is None else found.data
            room -= len(data)
            if room < 0 or len(data) > self._sizes.limits.file_size:
                return None
            oid = blob_id(data)
            entries[file.path] = Entry(file.mode, oid)
            if oid == file.upstream or oid in whole or oid in own:
                continue
            if found is not None:
                own[oid] = found
            else:
                whole = {**whole, oid: data}
        return Rendered(self._tree.id_of(entries), entries, Blobs(whole, own), self._results)


def _longest(file: _File, values: Sequence[Leaf]) -> list[str]:
    """Texts that are at least as long as all that comes into the file."""
    slots = sum(count_slots(edit.value) for edit in file.edits)
    return [max(map(str, values), key=len)] * slots if values else []


def _edited(file: _File, values: Sequence[Leaf]) -> bytes:
    edits = [edit._replace(value=filled(edit.value, values)) for edit in file.edits]
    return file.manifest.edited(edits)


def _quickly(text: _Text, values: Sequence[Leaf], texts: Mapping[int, str]) -> Filled:
    written = [texts[recipe] for recipe in text.recipes]
    for slot, recipe, value, spelling in text.present:
        own = values[recipe]
        if own == value and same(own, value):
            written[slot] = spelling
    return Filled(text.pieces, written)


def make(
    prepared: PreparedPackage,
    spec: VariantSpec,
    inputs: Inputs,
    answers: Answers,
    rendered: Rendered,
) -> Mould | None:
    """The mould of this variant's form; `rendered` is what the ordinary way yields for it.

    None where variants of the form must each go the ordinary way. Raises Unsuited.
    """
    leaves = split(spec, inputs).leaves
    try:
        mould = _made(prepared, *marked(spec, inputs), answers, Slots(len(leaves)), rendered)
        again = mould.filled(leaves)
    except (_NoMould, InvalidInput, Unanswered):
        return None
    if again is None:
        raise Unsuited
    return mould if again == rendered else None


def _made(
    prepared: PreparedPackage,
    spec: VariantSpec,
    inputs: Inputs,
    answers: Answers,
    slots: Slots,
    rendered: Rendered,
) -> Mould:
    if prepared.waits:
        raise _NoMould  # objects go by the names of others
    whole = _before_functions(prepared, spec, inputs, answers)
    checks = [*_policy_checks(spec, slots)]
    for item in in_order(
        prepared.functions, prepared.policy_at, spec, prepared.manifests, prepared.programs
    ):
        checks += _run(whole, item, slots)
    if set(whole.results) != set(rendered.results):
        raise _NoMould
    edits = _edits(whole, slots)
    kptfile = kptfile_form_of(prepared, spec)
    edits[KPTFILE] = [
        edit._replace(value=slots.of(edit.value)) for edit in kptfile_edits(kptfile, spec, inputs)
    ]
    forms = {**prepared.manifests, **whole.forms, KPTFILE: kptfile}
    files = [
        _file(prepared, rendered, forms[path], tuple(its))
        for path, its in edits.items()
        if any(has_slot(edit.value) for edit in its)
    ]
    known = sizes_in(rendered.entries, rendered.blobs, prepared.upstream.files)
    sizes = Sizes.beside(known, {file.path for file in files}, prepared.limits)
    return Mould(files, checks, slots.leaves, slots.joined, rendered, sizes)


def _before_functions(
    prepared: PreparedPackage, spec: VariantSpec, inputs: Inputs, answers: Answers
) -> Whole:
    own = own_content(prepared, spec, inputs)
    forms = {file: form_of(prepared, file, own) for file in prepared.varying}
    parts = parts_in(forms)
    overlays = {place: Overlay(place[0], part) for place, part in prepared.objects.items()}
    growth = prepared.growth()
    overlays |= {place: overlay_of(parts, own, place, growth) for place in own}
    return Whole(prepared, forms, overlays, answers=answers, growth=growth)


def _policy_checks(spec: VariantSpec, slots: Slots) -> Iterator[_Check]:
    for function in (*spec.mutators, *spec.validators):
        found = find(function.image)
        if found is not None and holds_mark(function.config):
            data = slots.of(dict(function.config))
            yield _Check.of(found, {"apiVersion": "v1", "kind": "ConfigMap", "data": data})


def _run(whole: Whole, item: Step | Declared, slots: Slots) -> Iterator[_Check]:
    """Run one function on the marks; yields how the variants' configurations are checked."""
    step = item if isinstance(item, Step) else item.step(whole.read)
    function = step.function
    if isinstance(function, External):
        raise _NoMould
    if item.config_file:
        config = whole.read(item.config_file)
        if holds_mark(config):
            if function.heeds is None:
                raise _NoMould
            yield _Check.of(function, slots.of(config))
    if step.selection is not ALL and any(map(_chooses_marks, whole.overlays.values())):
        raise _NoMould
    for overlay in whole.seen(step).values():
        if any(map(holds_mark, _heeded(function, step, overlay))):
            raise _NoMould
    whole.run((item,))


def _chooses_marks(overlay: Overlay) -> bool:
    """Would selectors go by a mark?"""
    return holds_mark([overlay.value.get(key) for key in ("apiVersion", "kind", "metadata")])


def _heeded(function: InProcess, step: Step, overlay: Overlay) -> Iterator[object]:
    if function.heeds is None:
        yield overlay.value
    else:
        yield from function.heeds(step.config, overlay.value, Facts(written=overlay))


def _edits(whole: Whole, slots: Slots) -> dict[str, list[Edit]]:
    """The edits of the files that hold marks; raises _NoMould where more than edits is due."""
    outcomes: dict[str, list[Outcome]] = {}
    for (file, number), overlay in whole.overlays.items():
        if (file, number) in whole.fresh and holds_mark(overlay.value):
            raise _NoMould
        outcomes.setdefault(file, []).append(overlay.outcome())
    found = {}
    for file, its in outcomes.items():
        edits = [edit for outcome in its for edit in outcome.edits]
        told = [edit._replace(value=slots.of(edit.value)) for edit in edits]
        if any(has_slot(edit.value) for edit in told):
            added = any(place[0] == file for place in whole.fresh)
            if added or any(it.dropped or it.comments or it.text for it in its):
                raise _NoMould
            found[file] = told
        elif any(holds_mark(text) for it in its for text in (it.text, *dict(it.comments).values())):
            raise _NoMould
    return found


def _file(
    prepared: PreparedPackage, rendered: Rendered, manifest: Manifest, edits: tuple[Edit, ...]
) -> _File:
    path = manifest.file
    if path not in rendered.entries or not independent(edits):
        raise _NoMould
    there = prepared.entries.get(path)
    text = _text(manifest, edits)
    mode = rendered.entries[path].mode
    return _File(path, mode, there.oid if there else "", manifest, edits, text)


def _text(manifest: Manifest, edits: Sequence[Edit]) -> _Text | None:
    """The file cut at its slots; None where more than single values are to be put there."""
    recipes: list[int] = []  # of the slots in the order of the edits
    shown = [edit._replace(value=_shown(edit.value, recipes)) for edit in edits]
    pieces, order = _cut(manifest, shown)
    if len(order) != len(recipes):
        return None
    present: list[_Present] = []
    passed = 0
    for number, edit in enumerate(edits):
        there = get(manifest.document(edit.document).value, edit.path)
        if isinstance(edit.value, Slot):
            if isinstance(there, str | int | float) and there != "":
                slot = order.index(passed)
                spelling = _between(pieces, slot, _cut(manifest, _without(number, shown))[0])
                if spelling is None:
                    return None
                present.append(_Present(slot, edit.value.recipe, there, spelling))
        elif has_slot(edit.value) and there.__class__ is edit.value.__class__:
            return None  # the two must be compared
        passed += count_slots(edit.value)
    room = [it for piece in pieces for it in (piece, "")][:-1]
    return _Text(room, [recipes[number] for number in order], present)


def _shown(value: object, recipes: list[int]) -> object:
    """The value with marks that show where its slots come to stand; adds their recipes."""
    if isinstance(value, Slot):
        recipes.append(value.recipe)
        return f"zz:slot:{len(recipes) - 1}:zz"
    if isinstance(value, dict):
        return {name: _shown(item, recipes) for name, item in value.items()}
    return [_shown(item, recipes) for item in value] if isinstance(value, list) else value


def _cut(manifest: Manifest, shown: Sequence[Edit]) -> tuple[list[str], list[int]]:
    """What stands around the slots, and the slots in their order."""
    pieces = _SHOWN.split(manifest.edited(shown).decode())
    return pieces[::2], list(map(int, pieces[1::2]))


def _without(number: int, edits: Sequence[Edit]) -> list[Edit]:
    return [*edits[:number], *edits[number + 1 :]]


def _between(pieces: Sequence[str], slot: int, kept: Sequence[str]) -> str | None:
    """What upstream has at a slot, told from the pieces where it is kept; None: more differs."""
    if len(kept) + 1 != len(pieces):
        return None
    before, after = pieces[slot : slot + 2]
    end = len(kept[slot]) - len(after)
    spelling = kept[slot][len(before) : end]
    told = [*pieces[:slot], f"{before}{spelling}{after}", *pieces[slot + 2 :]]
    return spelling if told == kept else None

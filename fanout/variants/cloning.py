"""The Kptfile of a variant: upstream's, with where it came from and what became of it.

Upstream and lock are written so that `kpt pkg update` works on the result; functions, readiness
gates and conditions as Porch does (porch.md §1.5, §2.1), but lists that hold more than ours keep
their order.
"""

from collections.abc import Iterable

from fanout.api.functions import short_name
from fanout.errors import InvalidInput
from fanout.package.dump import dump
from fanout.package.edits import MISSING, Edit, get, same
from fanout.package.kptfile import (
    NAME,
    Condition,
    Upstream,
    condition_edits,
    gate_edits,
    metadata_edits,
    name_edits,
    upstream_edits,
)
from fanout.package.manifests import Document, Manifest
from fanout.selection.model import Function, VariantSpec
from fanout.variants.canonical import canonical
from fanout.variants.functions.function import mapping
from fanout.variants.model import Injection, Inputs, UpstreamPackage
from fanout.variants.overlay import Overlay
from fanout.variants.points import Point

_PIPELINE = "pipeline"
_SECTIONS = ("mutators", "validators")


def cloned_kptfile(
    package: UpstreamPackage, kptfile: Manifest, points: Iterable[Point]
) -> Manifest:
    """The Kptfile with all that is the same for every variant of this revision.

    Conditions stand in it already, so that a variant changes only what is in them. Raises
    InvalidInput when a section has not the shape that a Kptfile has.
    """
    document = kptfile.documents[0]
    required = {condition_type(point.key): point.required for point in points}
    edits = [
        *upstream_edits(document, _origin(package)),
        *gate_edits(document, [key for key in sorted(required) if required[key]]),
        *condition_edits(
            document, [Condition(key, "Unknown", "-", "-") for key in sorted(required)]
        ),
    ]
    return Manifest.parse(kptfile.edited(edits), NAME)


def kptfile_form(kptfile: Manifest, spec: VariantSpec) -> Manifest:
    """The cloned Kptfile with a place for each function, label and annotation of the variant.

    It depends on `form_key` alone, so variants that differ only in values share it, and what is
    left to do for each is to replace scalars. Raises InvalidInput when the Kptfile has not the
    shape that it should have.
    """
    document = kptfile.documents[0]
    labels = dict.fromkeys(sorted(spec.labels), "")
    annotations = dict.fromkeys(sorted(spec.annotations), "")
    places = [
        edit
        for edit in metadata_edits(document, labels, annotations)
        if get(document.value, edit.path) is MISSING
    ]
    placed = Manifest.parse(kptfile.edited(places), NAME)
    for section, functions in _functions(spec):
        path = (_PIPELINE, section)
        placed = _with_functions(placed, path, [_entry(function) for function in functions])
    return placed


def form_key(spec: VariantSpec) -> object:
    """What variants have in common that share one Kptfile form."""
    return (
        tuple(sorted(spec.labels)),
        tuple(sorted(spec.annotations)),
        tuple(tuple(map(_form, functions)) for _, functions in _functions(spec)),
    )


def _form(function: Function) -> object:
    """What of an entry is not a text of the variant's own."""
    further = function.further()
    form = (function.image, tuple(sorted(function.config)))
    return (*form, canonical(further)) if further else form


def _functions(spec: VariantSpec) -> tuple[tuple[str, tuple[Function, ...]], ...]:
    """The policy's functions by section."""
    return tuple(zip(_SECTIONS, (spec.mutators, spec.validators), strict=True))


def kptfile_edits(kptfile: Manifest, spec: VariantSpec, inputs: Inputs) -> list[Edit]:
    """What one variant changes in its Kptfile form."""
    document = kptfile.documents[0]
    edits = name_edits(document, spec.package)
    edits += metadata_edits(document, spec.labels, spec.annotations)
    for section, functions in _functions(spec):
        for at, function in enumerate(functions):
            place = (_PIPELINE, section, at)
            name = function.name or short_name(function.called)
            text = f"PackageVariant.{spec.name}.{name}.{at}"
            edits.append(Edit(document.index, (*place, "name"), text))
            for key in sorted(function.config):
                edits.append(Edit(document.index, (*place, "configMap", key), function.config[key]))
    if inputs.injections:
        edits += condition_edits(document, map(_condition, inputs.injections))
    return edits


def condition_type(point: str) -> str:
    """The condition and readiness gate of an injection point."""
    return f"config.injection.{point}"


def _origin(package: UpstreamPackage) -> Upstream:
    """Where the package came from; the ref is the tag's whole name, or the commit."""
    revision, directory = package.revision, package.directory
    tagged = revision.name != revision.commit
    ref = f"{directory}/{revision.name}" if tagged and directory else revision.name
    return Upstream(package.repository, directory, ref, revision.commit)


def _condition(injection: Injection) -> Condition:
    kind = condition_type(injection.point)
    if injection.source:
        return Condition(kind, "True", "ConfigInjected", f"taken from {injection.source}")
    return Condition(kind, "False", "NoResourceSelected", injection.problem)


def _with_functions(
    kptfile: Manifest, path: tuple[str, str], entries: list[dict[str, object]]
) -> Manifest:
    """The Kptfile with these entries before its own in a section of its pipeline.

    They are put in as lines, so that the text of the others stays; where the list is not written
    in lines, it is written anew.
    """
    if not entries:
        return kptfile
    document = kptfile.documents[0]
    own = _rows(document, path)
    overlay = Overlay(NAME, document)
    overlay.set(path, [*entries, *own])
    if own and b"\r" not in kptfile.data:
        lines = kptfile.data.decode().split("\n")
        at = document.line_of((*path, 0)) - 1
        margin = lines[at][: -len(lines[at].lstrip())]
        while lines[at - 1].startswith(f"{margin}#"):
            at -= 1  # the comment belongs to the entry below it
        lines[at:at] = [f"{margin}{line}" for line in dump(entries).splitlines()]
        try:
            written = Manifest.parse("\n".join(lines).encode(), NAME)
        except InvalidInput:
            pass
        else:
            if same([document.value for document in written.documents], [overlay.value]):
                return written
    return Manifest.parse(kptfile.edited(overlay.edits()), NAME)


def _entry(function: Function) -> dict[str, object]:
    said = {"image": function.image, "exec": function.exec}
    entry: dict[str, object] = {key: value for key, value in said.items() if value}
    entry["name"] = ""
    if function.config:
        entry["configMap"] = dict.fromkeys(sorted(function.config), "")
    return entry | function.further()


def _rows(document: Document, path: tuple[str, str]) -> list[object]:
    rows = mapping(mapping(document.value).get(path[0])).get(path[1])
    return rows if isinstance(rows, list) else []

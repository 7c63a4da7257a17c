"""The Kptfile of a variant: upstream's, with where it came from and what became of it.

Upstream and lock are written as kpt writes them, so `kpt pkg update` works on the result;
functions, readiness gates and conditions as Porch does (porch.md §1.5, §2.1), but lists that hold
more than ours keep their order.
"""

from collections.abc import Iterable, Iterator

from fanout.errors import InvalidInput
from fanout.package.dump import dump
from fanout.package.edits import Edit, same
from fanout.package.manifests import Document, Manifest
from fanout.selection.model import Function, VariantSpec
from fanout.variants.functions.function import Change, mapping
from fanout.variants.functions.registry import short_name
from fanout.variants.model import Injection, Inputs, UpstreamPackage
from fanout.variants.overlay import Overlay
from fanout.variants.pipeline import KPTFILE
from fanout.variants.points import Point

_GATES = ("info", "readinessGates")
_CONDITIONS = ("status", "conditions")
_MUTATORS = ("pipeline", "mutators")


def cloned_kptfile(
    package: UpstreamPackage, kptfile: Manifest, points: Iterable[Point]
) -> Manifest:
    """The Kptfile with all that is the same for every variant of this revision.

    Conditions stand in it already, so that a variant changes only what is in them. Raises
    InvalidInput when a section has not the shape that a Kptfile has.
    """
    document = kptfile.documents[0]
    overlay = Overlay(KPTFILE, document)
    for path, value in _origin(package):
        overlay.set(path, value)
    keys = sorted((condition_type(point.key), point.required) for point in points)
    for path, field, types in (
        (_GATES, "conditionType", [key for key, required in keys if required]),
        (_CONDITIONS, "type", [key for key, _ in keys]),
    ):
        rows = _rows(document, path)
        known = {mapping(row).get(field) for row in rows}
        missing = [{field: key} for key in types if key not in known]
        if missing:
            overlay.set(path, [*rows, *missing])
    return Manifest.parse(kptfile.edited(overlay.edits()), KPTFILE)


def kptfile_form(kptfile: Manifest, spec: VariantSpec) -> Manifest:
    """The cloned Kptfile with a place for each function, label and annotation of the variant.

    It depends on `form_key` alone, so variants that differ only in values share it, and what is
    left to do for each is to replace scalars. Raises InvalidInput when the Kptfile has not the
    shape that it should have.
    """
    document = kptfile.documents[0]
    overlay = Overlay(KPTFILE, document)
    for field, keys in (("labels", spec.labels), ("annotations", spec.annotations)):
        for key in sorted(keys):
            overlay.place(("metadata", field, key))
    placed = Manifest.parse(kptfile.edited(overlay.edits()), KPTFILE)
    return _with_functions(placed, [_entry(function) for function in spec.mutators])


def form_key(spec: VariantSpec) -> object:
    """What variants have in common that share one Kptfile form."""
    return (
        tuple(sorted(spec.labels)),
        tuple(sorted(spec.annotations)),
        tuple((function.image, tuple(sorted(function.config))) for function in spec.mutators),
    )


def kptfile_edits(kptfile: Manifest, spec: VariantSpec, inputs: Inputs) -> list[Edit]:
    """What one variant changes in its Kptfile form."""
    document = kptfile.documents[0]
    changes: list[Change] = [(("metadata", "name"), spec.package)]
    for field, values in (("labels", spec.labels), ("annotations", spec.annotations)):
        changes += [(("metadata", field, key), values[key]) for key in sorted(values)]
    for at, function in enumerate(spec.mutators):
        name = function.name or short_name(function.image)
        changes.append(((*_MUTATORS, at, "name"), f"PackageVariant.{spec.name}.{name}.{at}"))
        for key, value in function.config.items():
            changes.append(((*_MUTATORS, at, "configMap", key), value))
    if inputs.injections:
        changes += _conditions(document, inputs.injections)
    return [Edit(document.index, path, value) for path, value in changes]


def condition_type(point: str) -> str:
    """The condition and readiness gate of an injection point."""
    return f"config.injection.{point}"


def _origin(package: UpstreamPackage) -> Iterator[Change]:
    revision, directory = package.revision, package.directory
    tagged = revision.name != revision.commit
    tag = f"{directory}/{revision.name}" if tagged and directory else revision.name
    git = {"repo": package.repository, "directory": f"/{directory}"}
    yield (
        ("upstream",),
        {
            "type": "git",
            "git": {**git, "ref": revision.name},
            "updateStrategy": "resource-merge",
        },
    )
    yield (
        ("upstreamLock",),
        {"type": "git", "git": {**git, "ref": tag, "commit": revision.commit}},
    )


def _with_functions(kptfile: Manifest, entries: list[dict[str, object]]) -> Manifest:
    """The Kptfile with these entries before its own mutators.

    They are put in as lines, so that the text of the others stays; where the list is not written
    in lines, it is written anew.
    """
    if not entries:
        return kptfile
    document = kptfile.documents[0]
    own = _rows(document, _MUTATORS)
    overlay = Overlay(KPTFILE, document)
    overlay.set(_MUTATORS, [*entries, *own])
    if own and b"\r" not in kptfile.data:
        lines = kptfile.data.decode().split("\n")
        at = document.line_of((*_MUTATORS, 0)) - 1
        margin = lines[at][: -len(lines[at].lstrip())]
        while lines[at - 1].startswith(f"{margin}#"):
            at -= 1  # the comment belongs to the entry below it
        lines[at:at] = [f"{margin}{line}" for line in dump(entries).splitlines()]
        try:
            written = Manifest.parse("\n".join(lines).encode(), KPTFILE)
        except InvalidInput:
            pass
        else:
            if same([document.value for document in written.documents], [overlay.value]):
                return written
    return Manifest.parse(kptfile.edited(overlay.edits()), KPTFILE)


def _entry(function: Function) -> dict[str, object]:
    entry: dict[str, object] = {"image": function.image, "name": ""}
    if function.config:
        entry["configMap"] = dict.fromkeys(sorted(function.config), "")
    return entry


def _conditions(document: Document, injections: Iterable[Injection]) -> Iterator[Change]:
    rows = enumerate(_rows(document, _CONDITIONS))
    at = {mapping(row).get("type"): index for index, row in rows}
    for injection in injections:
        place = (*_CONDITIONS, at[condition_type(injection.point)])
        found = bool(injection.source)
        yield (*place, "status"), "True" if found else "False"
        yield (*place, "reason"), "ConfigInjected" if found else "NoResourceSelected"
        yield (*place, "message"), f"taken from {injection.source}" if found else injection.problem


def _rows(document: Document, path: tuple[str, str]) -> list[object]:
    rows = mapping(mapping(document.value).get(path[0])).get(path[1])
    return rows if isinstance(rows, list) else []

"""Kptfile of a variant: upstream's plus origin, pipeline, gates and conditions.

`upstream` and `upstreamLock` are written so that `kpt pkg update` works on the
result. Functions, readiness gates and conditions follow Porch (docs/concepts/variants.md),
except that entries which fanout did not add keep their order.
"""

from collections.abc import Iterable

from fanout.api.function_catalog import short_name
from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING, Edit, canonical_text, get_value, same_json
from fanout.package.kptfile import (
    KPTFILE,
    KptfileCondition,
    UpstreamLock,
    condition_edits,
    gate_edits,
    metadata_edits,
    upstream_edits,
)
from fanout.package.manifest import Manifest
from fanout.package.yaml_scalars import dump
from fanout.selection.variant_spec import FunctionSpec, VariantSpec
from fanout.variants.functions.function_interface import mapping
from fanout.variants.injection_points import InjectionPoint
from fanout.variants.overlay import Overlay
from fanout.variants.render_model import RenderInputs, UpstreamPackage

_PIPELINE = "pipeline"
_SECTIONS = ("mutators", "validators")


def clone_kptfile(
    package: UpstreamPackage, kptfile: Manifest, points: Iterable[InjectionPoint]
) -> Manifest:
    """Return the Kptfile with everything that is equal for all variants of this revision.

    A condition is added for every injection point, so that a variant only changes its
    values. Raises InvalidInput when a section is not shaped as in a Kptfile.
    """
    revision, directory = package.revision, package.directory
    tagged = revision.name != revision.commit
    # The full name of the tag, or the commit.
    ref = f"{directory}/{revision.name}" if tagged and directory else revision.name
    origin = UpstreamLock(package.repository, directory, revision.commit, ref)
    document = kptfile.documents[0]
    required = {condition_type(point.key): point.required for point in points}
    edits = [
        *upstream_edits(document, origin),
        *gate_edits(document, [key for key in sorted(required) if required[key]]),
        *condition_edits(
            document, [KptfileCondition(key, "Unknown", "-", "-") for key in sorted(required)]
        ),
    ]
    return Manifest.parse(kptfile.apply_edits_to_text(edits), KPTFILE)


def with_variant_fields(kptfile: Manifest, spec: VariantSpec) -> Manifest:
    """Return the cloned Kptfile with empty functions, labels and annotations added.

    The result depends on `kptfile_form_key` alone, so that variants which differ only in
    values share it and for each only scalars are replaced. Raises InvalidInput when the
    Kptfile is not shaped as it should be.
    """
    document = kptfile.documents[0]
    labels = dict.fromkeys(sorted(spec.labels), "")
    annotations = dict.fromkeys(sorted(spec.annotations), "")
    empty_fields = [
        edit
        for edit in metadata_edits(document, labels, annotations)
        # Only missing fields are added: emptying a present one would lose upstream's spelling where
        # the variant has the same value.
        if get_value(document.value, edit.path) is MISSING
    ]
    form = Manifest.parse(kptfile.apply_edits_to_text(empty_fields), KPTFILE)
    for section, functions in _functions_by_section(spec):
        entries: list[dict[str, object]] = []
        for function in functions:
            source = {"image": function.image, "exec": function.exec}
            entry: dict[str, object] = {key: value for key, value in source.items() if value}
            entry["name"] = ""
            if function.config:
                entry["configMap"] = dict.fromkeys(sorted(function.config), "")
            entries.append(entry | function.extra_fields())
        form = _with_functions(form, (_PIPELINE, section), entries)
    return form


def kptfile_form_key(spec: VariantSpec) -> object:
    """Return a key that is equal for variants sharing one Kptfile form."""
    return (
        tuple(sorted(spec.labels)),
        tuple(sorted(spec.annotations)),
        tuple(
            # The part of a pipeline entry that is not one of the variant's texts.
            tuple(
                (it.image, tuple(sorted(it.config)), canonical_text(fields) if fields else "")
                for it in functions
                for fields in (it.extra_fields(),)
            )
            for _, functions in _functions_by_section(spec)
        ),
    )


def _functions_by_section(spec: VariantSpec) -> tuple[tuple[str, tuple[FunctionSpec, ...]], ...]:
    """Return the policy's functions by section of the pipeline."""
    return tuple(zip(_SECTIONS, (spec.mutators, spec.validators), strict=True))


def variant_kptfile_edits(kptfile: Manifest, spec: VariantSpec, inputs: RenderInputs) -> list[Edit]:
    """Return the edits that one variant makes to its Kptfile form."""
    document = kptfile.documents[0]
    edits = [Edit(document.index, ("metadata", "name"), spec.package)]
    edits += metadata_edits(document, spec.labels, spec.annotations)
    for section, functions in _functions_by_section(spec):
        for number, function in enumerate(functions):
            entry_path = (_PIPELINE, section, number)
            name = function.name or short_name(function.command)
            entry_name = f"PackageVariant.{spec.name}.{name}.{number}"
            edits.append(Edit(document.index, (*entry_path, "name"), entry_name))
            for key in sorted(function.config):
                edits.append(
                    Edit(document.index, (*entry_path, "configMap", key), function.config[key])
                )
    conditions = []
    for injection in inputs.injections:
        status, reason, message = "False", "NoResourceSelected", injection.problem
        if injection.source:
            status, reason, message = "True", "ConfigInjected", f"taken from {injection.source}"
        kind = condition_type(injection.point)
        conditions.append(KptfileCondition(kind, status, reason, message))
    return edits + (condition_edits(document, conditions) if conditions else [])


def condition_type(point_key: str) -> str:
    """Return the type of the condition and readiness gate of an injection point."""
    return f"config.injection.{point_key}"


def _with_functions(
    kptfile: Manifest, path: tuple[str, str], entries: list[dict[str, object]]
) -> Manifest:
    """Return the Kptfile with these entries first in a section of its pipeline.

    They are inserted as lines, so that the text of the existing entries stays; a list in
    flow style is written anew.
    """
    if not entries:
        return kptfile
    document = kptfile.documents[0]
    rows = mapping(mapping(document.value).get(path[0])).get(path[1])
    existing_entries: list[object] = rows if isinstance(rows, list) else []
    overlay = Overlay(KPTFILE, document)
    overlay.set(path, [*entries, *existing_entries])
    if existing_entries and b"\r" not in kptfile.data:
        lines = kptfile.data.decode().split("\n")
        line_number = document.line_of((*path, 0)) - 1
        indentation = lines[line_number][: -len(lines[line_number].lstrip())]
        while lines[line_number - 1].startswith(f"{indentation}#"):
            line_number -= 1  # the comment belongs to the entry below it
        lines[line_number:line_number] = [
            f"{indentation}{line}" for line in dump(entries).splitlines()
        ]
        try:
            edited = Manifest.parse("\n".join(lines).encode(), KPTFILE)
        except InvalidInput:
            pass
        else:
            # Inserting lines can go wrong in unusual layouts: the result counts only if it parses
            # to the intended value.
            if same_json([document.value for document in edited.documents], [overlay.value]):
                return edited
    return Manifest.parse(kptfile.apply_edits_to_text(overlay.collect_edits()), KPTFILE)

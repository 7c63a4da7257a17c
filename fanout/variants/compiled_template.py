"""Compiled templates: the rendering shared by all variants of one shape.

A variant is split into its shape (fields, functions, structure) and its parameters, the texts and
numbers in which hundreds of variants of that shape differ. The pipeline runs once on markers in
place of the parameters; where a marker ends up in the output becomes a placeholder, whose value is
one parameter or a concatenation of constant texts and parameters, and every further variant is
rendered by filling the placeholders. This is correct only while no function decides by a text that
contains a marker: `CatalogFunction.depends_on` names the values that a function decides by, and a
function without it must not see a marker at all. A template is used only after it has reproduced
the rendering of a variant that took the ordinary way.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeGuard

from fanout.errors import InvalidInput
from fanout.package.field_edits import Edit, are_independent, canonical_text, get_value, same_json
from fanout.package.kptfile import KPTFILE
from fanout.package.manifest import Manifest
from fanout.package.tree_ids import FilledText, LazyBlobs, TreeEntry, TreeTemplate, blob_id
from fanout.package.yaml_scalars import format_scalar, is_plain
from fanout.pending_inputs import InputPending, Responses
from fanout.selection.variant_spec import FunctionSpec, VariantSpec
from fanout.values import replace
from fanout.variants.function_registry import find_function
from fanout.variants.functions.function_interface import CatalogFunction, ExternalFunction, mapping
from fanout.variants.overlay import ObjectChanges
from fanout.variants.package_preparation import PreparedPackage
from fanout.variants.pipeline_run import WholePackageRun, show_object
from fanout.variants.pipeline_steps import ALL_OBJECTS, DeclaredFunction, FunctionStep
from fanout.variants.render_model import RenderedPackage, RenderInputs
from fanout.variants.size_accounting import compute_file_sizes
from fanout.variants.target_edits import collect_target_edits, prepare_kptfile, prepare_manifests
from fanout.variants.variant_kptfile import variant_kptfile_edits

Parameter = str | int | float

# A marker is valid wherever functions check texts: as label value, namespace, tag. Numbers are
# marked by numbers that do not occur otherwise.
MARKER = re.compile("zz-leaf-([0-9]+)-zz")
# Markers are recognized in output by value alone: the range is far from ports, sizes in
# bytes and timestamps in milliseconds, and exact in a float.
NUMBER_MARKERS = 7_310_020_000_000


def split_parameters(spec: VariantSpec, inputs: RenderInputs) -> tuple[Hashable, list[Parameter]]:
    """Separate the inputs of a rendering into shape and parameters.

    Renderings of variants with equal shapes differ only in their parameters. An empty text
    belongs to the shape, because functions treat it as absent.
    """
    parent, slash, package = spec.path.rpartition("/")
    # The order here and in `mark_parameters` must be the same: a marker's number is the index
    # in this list.
    parameters: list[Parameter] = [spec.name, parent, package]
    shape: tuple[Hashable, ...] = (
        slash,
        _split_texts(spec.context, parameters),
        spec.remove_keys,
        tuple([_split_function(function, parameters) for function in spec.mutators]),
        tuple([_split_function(function, parameters) for function in spec.validators]),
        _split_texts(spec.labels, parameters),
        _split_texts(spec.annotations, parameters),
    )
    injections = []
    for injection in inputs.injections:
        parameters += (injection.source, injection.problem)
        value_shape = _split_value(injection.value, parameters)
        injections.append((bool(injection.source), bool(injection.problem), value_shape))
    return (*shape, tuple(injections)), parameters


def _split_texts(texts: Mapping[str, str], parameters: list[Parameter]) -> Hashable:
    if not texts:
        return ()
    names = tuple(sorted(texts))
    values = [texts[name] for name in names]
    parameters += values
    return names if all(values) else (names, tuple(map(bool, values)))


def _split_function(function: FunctionSpec, parameters: list[Parameter]) -> Hashable:
    texts = {name: function.config[name] for name in _passed_through_settings(function)}
    fixed = tuple(sorted(it for it in function.config.items() if it[0] not in texts))
    shape = (function.image, function.name, _split_texts(texts, parameters), fixed)
    further_fields = function.extra_fields()
    return (*shape, canonical_text(further_fields)) if further_fields else shape


def _passed_through_settings(function: FunctionSpec) -> list[str]:
    """Return the names of the settings that the function writes unchanged."""
    # With a configuration file the settings are not the variant's, and an executable may do
    # anything with its settings.
    catalog_function = (
        None if function.config_path or function.exec else find_function(function.image)
    )
    if catalog_function is None or catalog_function.depends_on is None:
        return []
    return [
        name
        for name, text in function.config.items()
        if catalog_function.passes_through(name, text)
    ]


def _split_value(value: object, parameters: list[Parameter]) -> Hashable:
    if isinstance(value, str):
        parameters.append(value)
        return str if value else ""
    if isinstance(value, dict):
        names = tuple(sorted(value))
        return (dict, names, tuple([_split_value(value[name], parameters) for name in names]))
    if isinstance(value, list):
        return (list, tuple([_split_value(item, parameters) for item in value]))
    # Booleans and null leave no value that could serve as a marker, so they belong to the shape.
    if value is None or isinstance(value, bool):
        return (value,)
    assert isinstance(value, int | float), "there is no other plain data"
    parameters.append(value)
    return int if isinstance(value, int) else float


# ---- markers -----------------------------------------------------------------------------------


def mark_parameters(spec: VariantSpec, inputs: RenderInputs) -> tuple[VariantSpec, RenderInputs]:
    """Return the inputs with a marker for every parameter, in `split_parameters` order."""
    numbers = count()

    def mark(parameter: Any) -> Any:
        number = next(numbers)
        if isinstance(parameter, str):
            return parameter and f"zz-leaf-{number}-zz"
        return type(parameter)(NUMBER_MARKERS + number)

    parent, slash, package = spec.path.rpartition("/")
    name, parent, package = mark(spec.name), mark(parent), mark(package)
    marked_spec = replace(
        spec,
        name=name,
        path=f"{parent}{slash}{package}",
        context=_mark_texts(spec.context, mark),
        mutators=tuple([_mark_function(function, mark) for function in spec.mutators]),
        validators=tuple([_mark_function(function, mark) for function in spec.validators]),
        labels=_mark_texts(spec.labels, mark),
        annotations=_mark_texts(spec.annotations, mark),
    )
    injections = tuple(
        [
            replace(
                injection,
                source=mark(injection.source),
                problem=mark(injection.problem),
                value=_mark_value(injection.value, mark),
            )
            for injection in inputs.injections
        ]
    )
    return marked_spec, replace(inputs, injections=injections)


def _mark_texts(texts: Mapping[str, str], mark: Callable[[Any], Any]) -> dict[str, str]:
    return {name: mark(texts[name]) for name in sorted(texts)}


def _mark_function(function: FunctionSpec, mark: Callable[[Any], Any]) -> FunctionSpec:
    texts = {name: function.config[name] for name in _passed_through_settings(function)}
    return replace(function, config={**function.config, **_mark_texts(texts, mark)})


def _mark_value(value: object, mark: Callable[[Any], Any]) -> object:
    if isinstance(value, dict):
        # Numbered in sorted order like the parameters, but kept in the order of the value: it is
        # the order in which the file is written.
        marked_items = {name: _mark_value(value[name], mark) for name in sorted(value)}
        return {name: marked_items[name] for name in value}
    if isinstance(value, list):
        return [_mark_value(item, mark) for item in value]
    return value if value is None or isinstance(value, bool) else mark(value)


_MAX_PARAMETERS = 1_000_000  # bounds the range of number markers

Concatenation = tuple[str | int, ...]  # constant texts and parameter numbers


class Placeholder(NamedTuple):
    """A placeholder in a value: the index of the parameter or concatenation that fills it."""

    value_index: int


class PlaceholderTable:
    """Registry of the concatenations used by a template.

    Indexes below the number of parameters mean a single parameter; concatenations follow.
    """

    def __init__(self, parameter_count: int) -> None:
        self.parameter_count = parameter_count
        self._indexes: dict[Concatenation, int] = {
            (number,): number for number in range(parameter_count)
        }

    def replace_markers(self, value: object) -> Any:
        """Return the value with a placeholder for every text and number with a marker."""
        return _map_leaves(value, self._replace_marker)

    def _replace_marker(self, value: object) -> object:
        if isinstance(value, str):
            pieces: list[str | int] = list(MARKER.split(value))
            if len(pieces) == 1:
                return value
            pieces[1::2] = map(int, pieces[1::2])
            return self._placeholder_for(tuple([piece for piece in pieces if piece != ""]))
        if _is_number_marker(value):
            return self._placeholder_for((int(value) - NUMBER_MARKERS,))
        return value

    def _placeholder_for(self, concatenation: Concatenation) -> Placeholder:
        return Placeholder(self._indexes.setdefault(concatenation, len(self._indexes)))

    @property
    def concatenations(self) -> tuple[Concatenation, ...]:
        """Return the concatenations that are more than one parameter, in index order."""
        return tuple(self._indexes)[self.parameter_count :]


def concatenate(
    parameters: Sequence[Parameter], concatenations: Iterable[Concatenation], max_length: int
) -> list[str] | None:
    """Return the text of each concatenation with these parameters.

    Returns None where one would be longer than `max_length` characters.
    """
    texts = []
    for concatenation in concatenations:
        parts = [part if isinstance(part, str) else str(parameters[part]) for part in concatenation]
        if sum(map(len, parts)) > max_length:
            return None
        texts.append("".join(parts))
    return texts


def has_marker(value: object) -> bool:
    """Return whether a marker occurs anywhere in the value, keys of maps included."""
    if isinstance(value, str):
        return MARKER.search(value) is not None
    if isinstance(value, Mapping):
        return any(map(has_marker, value.values())) or any(map(has_marker, value))
    if isinstance(value, list):
        return any(map(has_marker, value))
    return _is_number_marker(value)


def _is_number_marker(value: object) -> TypeGuard[int | float]:
    return (
        isinstance(value, int | float)
        and NUMBER_MARKERS <= value < NUMBER_MARKERS + _MAX_PARAMETERS
    )


def _map_leaves(value: object, replace_leaf: Callable[[Any], object]) -> Any:
    if isinstance(value, dict):
        return {name: _map_leaves(item, replace_leaf) for name, item in value.items()}
    if isinstance(value, list):
        return [_map_leaves(item, replace_leaf) for item in value]
    return replace_leaf(value)


def fill_placeholders(value: object, values: Sequence[Parameter]) -> Any:
    """Return the value with every placeholder replaced by its entry of `values`."""
    return _map_leaves(value, lambda it: values[it.value_index] if type(it) is Placeholder else it)


def count_placeholders(value: object) -> int:
    """Count the placeholders in the value."""
    if isinstance(value, dict | list):
        return sum(map(count_placeholders, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Placeholder)


# The mark is recognized only where a value stands without quotes, and where every single-line text
# can be written by `format_scalar`: not in flow style, where a colon needs quotes, nor in JSON.
_PLACEHOLDER_MARK = re.compile("(?<=[:-] )zz:slot:([0-9]+):zz(?=\r?\n| #|$)")


class UnsuitableVariant(Exception):
    """The variant cannot serve as the sample of its shape, but another variant may."""


class _NotCompilable(Exception):
    """Variants of this shape differ in more than parameter values."""


class _ConfigCheck(NamedTuple):
    """Validation of a function's configuration with the values of each variant.

    A function may refuse a value, or decide by it instead of passing it through.
    """

    function: CatalogFunction
    config: Any  # with placeholders
    passed_through: tuple[str, ...]  # names in `data` whose values are placeholders

    @classmethod
    def from_config(cls, function: CatalogFunction, config: Any) -> "_ConfigCheck":
        """Build the check of a function from a configuration that contains placeholders."""
        data = mapping(config.get("data"))
        return cls(function, config, tuple(it for it in data if isinstance(data[it], Placeholder)))

    def is_satisfied(self, parameters: Sequence[Parameter]) -> bool:
        """Return whether every varying setting is only passed through with these values.

        Raises InvalidInput where the function refuses the configuration.
        """
        config = fill_placeholders(self.config, parameters)
        self.function.configure(config)
        return all(
            self.function.passes_through(name, config["data"][name]) for name in self.passed_through
        )


class _PresentValue(NamedTuple):
    """A value that upstream has at a placeholder.

    A variant with the same value keeps upstream's spelling, so that its bytes do not change.
    """

    placeholder: int  # its number in the file
    value_index: int
    value: object
    spelling: str


class _TextTemplate(NamedTuple):
    """A file as constant pieces with placeholders between them."""

    pieces: list[str]  # every second one is empty, for a value
    value_indexes: list[int]
    present_values: list[_PresentValue]


class _VaryingFile(NamedTuple):
    """A file in which variants of the shape differ."""

    path: str
    mode: str
    upstream_oid: str  # id of upstream's blob, or ""
    manifest: Manifest
    edits: tuple[Edit, ...]  # with placeholders
    text: _TextTemplate | None  # None: edited for every variant


class CompiledTemplate:
    """The rendering of one shape, to be filled with the parameters of each variant."""

    def __init__(
        self,
        files: Sequence[_VaryingFile],
        checks: Sequence[_ConfigCheck],
        parameter_count: int,
        concatenations: tuple[Concatenation, ...],
        sample: RenderedPackage,
        prepared: PreparedPackage,
    ) -> None:
        varying = {file.path for file in files}
        sizes = compute_file_sizes(sample.entries, sample.blobs, prepared.upstream.files)
        constant_size = sum(size for path, size in sizes.items() if path not in varying)
        self._limits = prepared.limits
        self._varying_size_limit = prepared.limits.size - constant_size  # bytes of all such files
        self._files = files
        self._checks = checks
        self._concatenations = concatenations
        value_indexes = {
            value_index for file in files if file.text for value_index in file.text.value_indexes
        }
        self._written_parameters = sorted(
            value_index for value_index in value_indexes if value_index < parameter_count
        )
        self._entries = sample.entries
        self._results = sample.results
        self._blobs = {
            entry.oid: sample.blobs[entry.oid]
            for path, entry in sample.entries.items()
            if path not in varying and entry.oid in sample.blobs
        }
        self._tree = TreeTemplate(sample.entries, varying)

    def fill(self, parameters: Sequence[Parameter]) -> RenderedPackage | None:
        """Return the variant with these parameters, or None if the template cannot render it.

        None where a parameter decides something, where the text template does not cover it, or
        where a size limit could be exceeded. Raises InvalidInput where a function refuses a value.
        """
        concatenated = concatenate(parameters, self._concatenations, self._limits.file_size)
        if concatenated is None:
            return None
        values = [*parameters, *concatenated]
        if not all(check.is_satisfied(values) for check in self._checks):
            return None
        # Each part is a text, yet their concatenation may read as a number, boolean or date.
        # Functions type such a value by its text, which a template cannot follow.
        if not all(map(is_plain, concatenated)):
            return None
        spellings = dict(enumerate(concatenated, len(parameters)))
        for number in self._written_parameters:
            spellings[number] = format_scalar(parameters[number])
        # `format_scalar` escapes line breaks
        single_line = "\\n" not in "".join(spellings.values())
        entries, shared_blobs = dict(self._entries), self._blobs
        filled_blobs: dict[str, FilledText] = {}
        remaining_bytes = self._varying_size_limit
        for file in self._files:
            filled_text = (
                _fill_text(file.text, values, spellings) if single_line and file.text else None
            )
            if filled_text:
                inserted_texts = filled_text.texts
            else:  # texts at least as long as everything inserted into the file
                placeholder_count = sum(count_placeholders(edit.value) for edit in file.edits)
                inserted_texts = [max(map(str, values), key=len, default="")] * placeholder_count
            # Checked before the file is put together: a parameter of kilobytes in thousands of
            # placeholders would otherwise allocate gigabytes only to be refused afterwards.
            if sum(map(len, inserted_texts)) > self._limits.file_size:
                return None
            if filled_text is None:
                edits = [
                    edit._replace(value=fill_placeholders(edit.value, values))
                    for edit in file.edits
                ]
                data = file.manifest.apply_edits_to_text(edits)
            else:
                data = filled_text.data
            remaining_bytes -= len(data)
            if remaining_bytes < 0 or len(data) > self._limits.file_size:
                return None
            oid = blob_id(data)
            entries[file.path] = TreeEntry(file.mode, oid)
            # Upstream's blobs are not repeated in the result: callers treat what is listed there as
            # new objects to be written.
            if oid == file.upstream_oid or oid in shared_blobs or oid in filled_blobs:
                continue
            if filled_text is not None:
                filled_blobs[oid] = filled_text
            else:
                shared_blobs = {**shared_blobs, oid: data}
        return RenderedPackage(
            self._tree.compute_id(entries),
            entries,
            LazyBlobs(shared_blobs, filled_blobs),
            self._results,
        )


def _fill_text(
    template: _TextTemplate, values: Sequence[Parameter], spellings: Mapping[int, str]
) -> FilledText:
    inserted = [spellings[value_index] for value_index in template.value_indexes]
    for placeholder, value_index, upstream_value, spelling in template.present_values:
        value = values[value_index]
        # `same` distinguishes 1 from 1.0 and from true, which compare equal in Python.
        if value == upstream_value and same_json(value, upstream_value):
            inserted[placeholder] = spelling
    return FilledText(template.pieces, inserted)


def compile_template(
    prepared: PreparedPackage,
    spec: VariantSpec,
    inputs: RenderInputs,
    responses: Responses,
    rendered: RenderedPackage,
) -> CompiledTemplate | None:
    """Compile the template of this variant's shape.

    `rendered` is the ordinary rendering of the variant; the template must reproduce it.
    Returns None where variants of the shape must always be rendered the ordinary way.
    Raises UnsuitableVariant where only this variant is no usable sample.
    """
    _, parameters = split_parameters(spec, inputs)
    try:
        template = _compile(
            prepared,
            *mark_parameters(spec, inputs),
            responses,
            PlaceholderTable(len(parameters)),
            rendered,
        )
        reproduced = template.fill(parameters)
    except (_NotCompilable, InvalidInput, InputPending):
        return None
    if reproduced is None:
        raise UnsuitableVariant
    # The safety net of the whole optimization: a function that decides by a value it does not
    # declare in `depends_on` makes the two renderings differ.
    return template if reproduced == rendered else None


def _compile(
    prepared: PreparedPackage,
    spec: VariantSpec,
    inputs: RenderInputs,
    responses: Responses,
    placeholders: PlaceholderTable,
    rendered: RenderedPackage,
) -> CompiledTemplate:
    if prepared.has_dependencies:
        raise _NotCompilable  # depends-on annotations name other objects
    target_edits = collect_target_edits(prepared, spec, inputs)
    manifests = prepare_manifests(prepared, target_edits)
    run = WholePackageRun.start(prepared, manifests, target_edits, responses)
    checks: list[_ConfigCheck] = []
    for function in (*spec.mutators, *spec.validators):
        catalog_function = find_function(function.image)
        # Only settings of the policy can hold markers here; the package's own entries are constant,
        # and its configuration files are checked when their function runs.
        if catalog_function is not None and has_marker(function.config):
            data = placeholders.replace_markers(dict(function.config))
            config = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
            checks.append(_ConfigCheck.from_config(catalog_function, config))
    for item in prepared.order_pipeline(spec):
        checks += _run_function(run, item, placeholders)
    # Results are shown to people and are not filled in: one that quotes a parameter would
    # show the marker.
    if {*prepared.duplicates, *run.results} != set(rendered.results):
        raise _NotCompilable
    edits_by_file = _collect_edits(run, placeholders)
    kptfile = prepare_kptfile(prepared, spec)
    edits_by_file[KPTFILE] = [
        edit._replace(value=placeholders.replace_markers(edit.value))
        for edit in variant_kptfile_edits(kptfile, spec, inputs)
    ]
    forms = {**prepared.manifests, **run.manifests, KPTFILE: kptfile}
    files: list[_VaryingFile] = []
    for path, edits in edits_by_file.items():
        if any(count_placeholders(edit.value) for edit in edits):
            if path not in rendered.entries or not are_independent(edits):
                raise _NotCompilable
            mode, upstream = rendered.entries[path].mode, prepared.entries.get(path)
            manifest, oid = forms[path], upstream.oid if upstream else ""
            text = _build_text_template(manifest, edits)
            files.append(_VaryingFile(path, mode, oid, manifest, tuple(edits), text))
    return CompiledTemplate(
        files, checks, placeholders.parameter_count, placeholders.concatenations, rendered, prepared
    )


def _run_function(
    run: WholePackageRun, item: FunctionStep | DeclaredFunction, placeholders: PlaceholderTable
) -> Iterator[_ConfigCheck]:
    """Run one function on the markers and yield the checks of variants' configurations."""
    step = item if isinstance(item, FunctionStep) else item.build_step(run.read)
    function = step.function
    if isinstance(function, ExternalFunction):
        raise _NotCompilable
    if item.config_file:
        config = run.read(item.config_file)
        if has_marker(config):
            if function.depends_on is None:
                raise _NotCompilable
            yield _ConfigCheck.from_config(function, placeholders.replace_markers(config))
    # A selector that compares a name or label with a marker selects other objects than it
    # would with the variant's value.
    if step.selection is not ALL_OBJECTS:
        for overlay in run.overlays.values():
            if has_marker([overlay.value.get(key) for key in ("apiVersion", "kind", "metadata")]):
                raise _NotCompilable
    for overlay in run.visible_objects(step).values():
        deciding_values: Iterable[object] = (overlay.value,)
        if function.depends_on is not None:
            visible = show_object(step, overlay, run.size_counter)
            deciding_values = function.depends_on(step.config, visible)
        if any(map(has_marker, deciding_values)):
            raise _NotCompilable
    run.run((item,))


def _collect_edits(run: WholePackageRun, placeholders: PlaceholderTable) -> dict[str, list[Edit]]:
    """Return the edits of the files that contain markers, by file.

    Raises _NotCompilable where more than edits of values is needed.
    """
    changes_by_file: dict[str, list[ObjectChanges]] = {}
    for (file, number), overlay in run.overlays.items():
        # An added object has no upstream text into which values could be filled.
        if (file, number) in run.added and has_marker(overlay.value):
            raise _NotCompilable
        changes_by_file.setdefault(file, []).append(overlay.collect_changes())
    edits_by_file = {}
    for file, object_changes in changes_by_file.items():
        edits = [edit for changes in object_changes for edit in changes.edits]
        placeholder_edits = [
            edit._replace(value=placeholders.replace_markers(edit.value)) for edit in edits
        ]
        if any(count_placeholders(edit.value) for edit in placeholder_edits):
            if any(place[0] == file for place in run.added) or any(
                it.dropped or it.comments or it.text for it in object_changes
            ):
                raise _NotCompilable
            edits_by_file[file] = placeholder_edits
        elif any(
            has_marker(text)
            for it in object_changes
            for text in (it.text, *dict(it.comments).values())
        ):
            raise _NotCompilable
    return edits_by_file


def _build_text_template(manifest: Manifest, edits: Sequence[Edit]) -> _TextTemplate | None:
    """Cut the file at its placeholders, or return None if that cannot represent it.

    The file is written once with a recognizable text at every placeholder and split there.
    """
    value_indexes: list[int] = []  # by placeholder, in the order of the edits
    marked_edits = [
        edit._replace(value=_with_placeholder_marks(edit.value, value_indexes)) for edit in edits
    ]
    pieces, order = _split_at_placeholders(manifest, marked_edits)
    # A placeholder in flow style or in quotes is not recognized, because a value there is not
    # written as `format_scalar` writes it. Such files are edited for every variant.
    if len(order) != len(value_indexes):
        return None
    present_values: list[_PresentValue] = []
    placeholders_before = 0
    for number, edit in enumerate(edits):
        upstream_value = get_value(manifest.document(edit.document).value, edit.path)
        if isinstance(edit.value, Placeholder):
            if isinstance(upstream_value, str | int | float) and upstream_value != "":
                placeholder = order.index(placeholders_before)
                # A value equal to upstream's is no edit and keeps its spelling (quotes, 0x10). The
                # spelling is found by writing the file again without this one edit.
                other_edits = [*marked_edits[:number], *marked_edits[number + 1 :]]
                unedited_pieces = _split_at_placeholders(manifest, other_edits)[0]
                spelling = _find_upstream_spelling(pieces, placeholder, unedited_pieces)
                if spelling is None:
                    return None
                present_values.append(
                    _PresentValue(placeholder, edit.value.value_index, upstream_value, spelling)
                )
        elif count_placeholders(edit.value) and upstream_value.__class__ is edit.value.__class__:
            return None  # equality with upstream must be checked for each variant
        placeholders_before += count_placeholders(edit.value)
    gapped_pieces = [it for piece in pieces for it in (piece, "")][:-1]
    return _TextTemplate(gapped_pieces, [value_indexes[number] for number in order], present_values)


def _with_placeholder_marks(value: object, value_indexes: list[int]) -> object:
    """Return the value with a numbered text at every placeholder. Append their value indexes."""

    def mark(leaf: object) -> object:
        if not isinstance(leaf, Placeholder):
            return leaf
        value_indexes.append(leaf.value_index)
        return f"zz:slot:{len(value_indexes) - 1}:zz"

    return _map_leaves(value, mark)


def _split_at_placeholders(
    manifest: Manifest, marked_edits: Sequence[Edit]
) -> tuple[list[str], list[int]]:
    """Return the text around the placeholders, and their numbers in file order."""
    pieces = _PLACEHOLDER_MARK.split(manifest.apply_edits_to_text(marked_edits).decode())
    return pieces[::2], list(map(int, pieces[1::2]))


def _find_upstream_spelling(
    pieces: Sequence[str], placeholder: int, unedited_pieces: Sequence[str]
) -> str | None:
    """Return upstream's text at a placeholder, or None if the pieces differ elsewhere too."""
    if len(unedited_pieces) + 1 != len(pieces):
        return None
    text_before, text_after = pieces[placeholder : placeholder + 2]
    end = len(unedited_pieces[placeholder]) - len(text_after)
    spelling = unedited_pieces[placeholder][len(text_before) : end]
    joined_pieces = [
        *pieces[:placeholder],
        f"{text_before}{spelling}{text_after}",
        *pieces[placeholder + 2 :],
    ]
    return spelling if joined_pieces == unedited_pieces else None

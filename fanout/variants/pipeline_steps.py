"""Steps of a variant's pipeline: the package's own functions and those of its policy.

The order is kpt's: pipelines of subpackages before the pipeline of the enclosing package, each for
the files below its directory, and mutators before validators. In the package's own sections the
policy's functions come first. A function that cannot be run is an error that names it; it is never
skipped (docs/concepts/functions.md). `selectors` and `exclude` limit a function to some objects.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache

from fanout.api.reasons import Reason
from fanout.api.text_fields import normalize_inside
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import canonical_text, format_path
from fanout.package.kptfile import KPTFILE, find_kptfile_problems, pipeline_functions
from fanout.package.manifest import Manifest
from fanout.selection.variant_spec import FunctionSpec, VariantSpec
from fanout.values import Value, asdict, replace
from fanout.variants.function_registry import find_function, resolve_function
from fanout.variants.function_requests import NO_PROGRAMS, AllowedPrograms
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    ExternalFunction,
    Object,
    mapping,
    render_error,
)

_TEXT_CONDITIONS = {"apiVersion", "kind", "name", "namespace"}
_MAP_CONDITIONS = {"labels", "annotations"}


class ObjectSelection(Value):
    """Conditions of a pipeline entry: any of `selectors` (if given) and no `exclude`."""

    selectors: tuple[Mapping[str, object], ...] = ()
    exclude: tuple[Mapping[str, object], ...] = ()
    key: str = ""  # canonical text of the conditions

    @classmethod
    def parse(cls, entry: Mapping[str, object]) -> "ObjectSelection":
        """Parse the conditions of an entry. Raises InvalidInput for unsupported ones."""
        selectors = _parse_conditions(entry, "selectors")
        exclude = _parse_conditions(entry, "exclude")
        if not selectors and not exclude:
            return ALL_OBJECTS
        return cls(selectors, exclude, canonical_text([selectors, exclude]))

    def selects(self, item: Object) -> bool:
        """Return whether the function gets this object."""
        if self.selectors and not any(_matches_condition(row, item) for row in self.selectors):
            return False
        return not any(_matches_condition(row, item) for row in self.exclude)


ALL_OBJECTS = ObjectSelection()


def _parse_conditions(entry: Mapping[str, object], field: str) -> tuple[Mapping[str, object], ...]:
    rows = entry.get(field) or []
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) and row for row in rows):
        raise InvalidInput(f"{field} is not a list of conditions")
    for key, value in (item for row in rows for item in row.items()):
        if key in _TEXT_CONDITIONS and isinstance(value, str):
            continue
        if key in _MAP_CONDITIONS and isinstance(value, Mapping):
            continue
        raise InvalidInput(
            f"{field}: unknown field {key}",
            remedy=(
                f"use strings for {', '.join(sorted(_TEXT_CONDITIONS))} and maps for"
                f" {', '.join(sorted(_MAP_CONDITIONS))}"
            ),
        )
    return tuple(rows)


def _matches_condition(condition: Mapping[str, object], item: Object) -> bool:
    meta = mapping(item.get("metadata"))
    for key, expected in condition.items():
        if key in _MAP_CONDITIONS:
            values = mapping(meta.get(key))
            if any(values.get(name) != value for name, value in mapping(expected).items()):
                return False
        elif (item if key in ("apiVersion", "kind") else meta).get(key) != expected:
            return False
    return True


NOWHERE = ErrorLocation()
_VALIDATORS = "validators"
_Files = Mapping[str, Manifest]


class PipelineEntry(Value, kw_only=True):
    """A function of a pipeline, and the objects that it gets of the files below a directory."""

    function: CatalogFunction | ExternalFunction
    directory_prefix: str = ""  # "" or a directory with its slash
    selection: ObjectSelection = ALL_OBJECTS
    where: ErrorLocation = NOWHERE  # of its entry, for errors
    validates: bool = False  # its changes are discarded
    config_file: str = ""  # "": configured in its entry


class FunctionStep(PipelineEntry, kw_only=True):
    """A function with its configuration, ready to run."""

    config: Hashable

    @property
    def key(self) -> Hashable:
        """Return a key that is equal for steps with the same effect."""
        return (
            self.function.name,
            self.function.version,
            self.config,
            self.directory_prefix,
            self.selection.key,
            self.validates,
        )


class DeclaredFunction(PipelineEntry, kw_only=True):
    """A function whose configuration may be a file of the package.

    Such a file can differ between targets; often it is the package context.
    """

    config: Object | None  # None: in a file

    def build_step(self, read: Callable[[str], Object]) -> FunctionStep:
        """Return the configured step; `read` returns a file's object as the variant has it."""
        config = read(self.config_file) if self.config is None else self.config
        configured = configure_function(self.function, config, self.where)
        return FunctionStep(**(asdict(self) | {"config": configured}))


Pipeline = tuple[FunctionStep | DeclaredFunction, ...]


def configure_function(
    function: CatalogFunction | ExternalFunction, config: Object, where: ErrorLocation
) -> Hashable:
    """Return the function's parsed configuration. Raises InvalidInput at the function's entry."""
    try:
        return function.configure(config)
    except InvalidInput as problem:
        raise function_error(function, problem, where) from None


def function_error(
    function: CatalogFunction | ExternalFunction, problem: InvalidInput, where: ErrorLocation
) -> InvalidInput:
    """Return the error as one of this function at this place."""
    # An exceeded limit keeps its reason: the administrator can raise it, whereas any other
    # error is for the author of the package.
    exceeds_limit = problem.reason == Reason.LIMIT_EXCEEDED
    return InvalidInput(
        f"{function.name}: {problem.problem}",
        reason=problem.reason if exceeds_limit else Reason.RENDER_FAILED,
        remedy=problem.remedy,
        where=where,
    )


def policy_steps(
    spec: VariantSpec, section: str, files: _Files, programs: AllowedPrograms
) -> Iterator[FunctionStep | DeclaredFunction]:
    """Yield the policy's functions of a section. Raises InvalidInput with the entry's field."""
    functions: Sequence[FunctionSpec] = getattr(spec, section)
    for number, function in enumerate(functions):
        try:
            if not function.config_path and find_function(function.image) is not None:
                step = _build_step(function.image, tuple(function.config.items()))
                if function.selectors or function.exclude:
                    step = replace(step, selection=ObjectSelection.parse(function.extra_fields()))
                if section == _VALIDATORS:
                    step = replace(step, validates=True)
                # The place differs for every variant. Without it the step is one cached object for
                # all variants with this configuration, which is what hundreds of them have. It is
                # needed where the step can fail without an object at fault.
                if step.function.needs_whole_package or step.validates:
                    step = replace(step, where=_function_field(spec, section, number))
                yield step
            else:
                entry = {"image": function.image, **function.extra_fields()}
                entry["configMap"] = function.config
                yield _declare_function(
                    entry, section, "", _function_field(spec, section, number), files, programs
                )
        except InvalidInput as problem:
            raise _with_place(problem, _function_field(spec, section, number)) from None


def _function_field(spec: VariantSpec, section: str, number: int) -> ErrorLocation:
    owner = spec.where.object or f"PackageVariant/{spec.name}"
    return replace(spec.where, object=owner, field=f"pipeline.{section}[{number}]")


@lru_cache(maxsize=1024)
def _build_step(image: str, config: tuple[tuple[str, str], ...]) -> FunctionStep:
    function = resolve_function({"image": image}, NO_PROGRAMS, NOWHERE)
    item = {"apiVersion": "v1", "kind": "ConfigMap", "data": dict(config)}
    return FunctionStep(function=function, config=configure_function(function, item, NOWHERE))


def read_pipelines(
    manifests: _Files, programs: AllowedPrograms = NO_PROGRAMS
) -> tuple[DeclaredFunction, ...]:
    """Return the functions of all Kptfiles of the package in the order in which they run.

    Raises InvalidInput, with the line of the entry, for an unavailable function and for a
    pipeline that kpt's rules do not define.
    """
    kptfiles = [file for file in manifests if file.rpartition("/")[2] == KPTFILE]
    # Depth first as in kpt: the function of an enclosing package sees the results of its
    # subpackages.
    deepest_first = sorted(kptfiles, key=lambda file: (-file.count("/"), file))
    functions = []
    for file in deepest_first:
        document = manifests[file].documents[0]
        for fault in find_kptfile_problems(document):
            if fault.where.field.split(".")[0] == "pipeline":
                raise fault  # the functions to run are undefined
        for path, entry in pipeline_functions(document.value):
            where = ErrorLocation(KPTFILE, format_path(path), file, document.line_of(path))
            directory, section = file[: -len(KPTFILE)], str(path[1])
            functions.append(
                _declare_function(mapping(entry), section, directory, where, manifests, programs)
            )
    return tuple(functions)


def find_config_files(manifests: _Files) -> frozenset[str]:
    """Return the files that the Kptfiles among the manifests name as a configuration."""
    return frozenset(
        _config_file(file[: -len(KPTFILE)], mapping(entry))
        for file, manifest in manifests.items()
        if file.rpartition("/")[2] == KPTFILE
        for document in manifest.documents
        for _, entry in pipeline_functions(document.value)
        if mapping(entry).get("configPath")
    )


def _config_file(directory: str, entry: Object) -> str:
    path = str(entry.get("configPath"))
    return f"{directory}{normalize_inside(path) or path}"


def _declare_function(
    entry: Object,
    section: str,
    directory: str,
    where: ErrorLocation,
    files: _Files,
    programs: AllowedPrograms,
) -> DeclaredFunction:
    function = resolve_function(entry, programs, where)
    validates = section == _VALIDATORS
    try:
        selection = ObjectSelection.parse(entry)
    except InvalidInput as problem:
        raise _with_place(problem, where) from None
    if entry.get("configPath"):
        file = _config_file(directory, entry)
        documents = files[file].documents if file in files else ()
        if [type(document.value) for document in documents] != [dict]:
            raise render_error(
                f"{file}, the configuration of {function.name}, is not a file with one object",
                "correct configPath, or the file",
                where,
            )
        config: Object | None = None
    else:
        file, data = "", mapping(entry.get("configMap"))
        config = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
    return DeclaredFunction(
        function=function,
        directory_prefix=directory,
        selection=selection,
        where=where,
        validates=validates,
        config_file=file,
        config=config,
    )


def _with_place(problem: InvalidInput, where: ErrorLocation) -> InvalidInput:
    reason = problem.reason if problem.reason != "Error" else Reason.RENDER_FAILED
    return InvalidInput(problem.problem, reason=reason, remedy=problem.remedy, where=where)

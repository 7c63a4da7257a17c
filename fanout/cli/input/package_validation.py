"""Validation of a package in a directory, with every error at once."""

from collections.abc import Collection, Iterator, Mapping

from fanout.api.reasons import Reason
from fanout.api.text_fields import format_value
from fanout.cli.input.package_directory import DEFAULT_LIMITS
from fanout.cli.settings import Settings
from fanout.cli.startup import build_function_runner, load_configuration
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import MISSING, Path, format_path, get_value
from fanout.package.ignored_files import find_ignored
from fanout.package.kptfile import KPTFILE, find_kptfile, find_kptfile_problems, pipeline_functions
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import is_manifest
from fanout.package.package_limits import ValueCounter
from fanout.package.tree_ids import FileContent, Files
from fanout.package.yaml_nodes import InvalidManifest
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.sandbox.function_runner import find_allowed_programs
from fanout.telemetry.metrics import Counters
from fanout.values import Value, replace
from fanout.variants.function_requests import AllowedPrograms
from fanout.variants.functions.function_interface import FunctionResult
from fanout.variants.injection_points import InjectionPoint, find_injection_points
from fanout.variants.manifest_objects import find_duplicates, find_objects
from fanout.variants.package_preparation import find_errors
from fanout.variants.package_rendering import render_package
from fanout.variants.pipeline_steps import find_config_files, read_pipelines


class PackageFunctions(Value):
    """Programs that the configuration allows, and the loop that runs them on request."""

    programs: AllowedPrograms
    answering: FunctionResultCache


def load_package_functions(settings: Settings) -> PackageFunctions:
    """Return the function runtime that the file of --config describes. Raises InvalidInput."""
    configuration = load_configuration(settings)
    allowed = configuration.functions
    runner = build_function_runner(configuration, Counters())
    return PackageFunctions(find_allowed_programs(allowed), FunctionResultCache(runner))


def run_pipeline(
    files: Files, runtime: PackageFunctions
) -> tuple[dict[str, FileContent], tuple[FunctionResult, ...]]:
    """Run the package's own pipeline and return its new files and function results.

    Only allowed programs run. Raises InvalidInput with file and line inside the package.
    """
    limits = replace(DEFAULT_LIMITS, programs=runtime.programs)
    return runtime.answering.run_until_answered(
        lambda answers: render_package(files, limits, answers)
    )


_Manifests = Mapping[str, Manifest]
_Faults = Iterator[InvalidInput]
_IDENTITY_PATHS: tuple[Path, ...] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
)


class PackageFindings(Value):
    """Errors of a package, and warnings that its functions reported."""

    errors: list[InvalidInput]
    warnings: tuple[FunctionResult, ...] = ()


def validate_package(files: Files, runtime: PackageFunctions) -> PackageFindings:
    """Return every error with file and line inside the package, sorted by position.

    A package without errors is also rendered, in memory, for errors that only functions find.
    """
    warnings: tuple[FunctionResult, ...] = ()
    faults: list[InvalidInput] = []
    try:
        ignored = find_ignored(files)
        counter = ValueCounter()
        manifests = _parse(files, files.keys() - ignored, counter, faults)
        # kpt reads these although they are ignored.
        configurations = _parse(files, find_config_files(manifests) & ignored, counter, faults)
    except InvalidInput as error:
        return PackageFindings([*faults, error])
    if KPTFILE not in files:
        faults.append(_invalid_package("there is no Kptfile", "add one, as `kpt pkg init` does"))
    faults += _check_kptfiles(manifests | configurations, runtime)
    duplicates = find_duplicates(manifests, files)
    faults += (it.error for it in duplicates if not it.is_build_input)
    for find in (_check_names, _check_points):
        faults += find(manifests)
    if not faults:
        try:
            _, results = run_pipeline(files, runtime)
        except InvalidInput as error:
            faults.append(error)
        else:
            faults += (
                _invalid_package(f"{it.message} ({it.function})", "correct the package", it.where)
                for it in find_errors(results)
            )
            warnings = tuple(result for result in results if result.severity == "warning")
    return PackageFindings(sorted(faults, key=lambda it: (it.where.file, it.where.line)), warnings)


def _parse(
    files: Files, paths: Collection[str], counter: ValueCounter, faults: list[InvalidInput]
) -> dict[str, Manifest]:
    """Parse the manifests among these files, and add the errors of those that cannot be read.

    Raises InvalidInput beyond a limit, without parsing the rest for its errors.
    """
    manifests: dict[str, Manifest] = {}
    for path, (_, data) in files.items():
        if path in paths and is_manifest(path):
            try:
                manifests[path] = Manifest.parse(data, path, counter)
            except InvalidManifest as error:
                faults += error.problems
    return manifests


def _check_kptfiles(manifests: _Manifests, runtime: PackageFunctions) -> _Faults:
    resources = {path: manifest for path, manifest in manifests.items() if not _is_kptfile(path)}
    for path, manifest in manifests.items():
        if not _is_kptfile(path):
            continue
        try:
            document = find_kptfile(manifest)
        except InvalidInput as error:
            yield error
            continue
        faults = find_kptfile_problems(document)
        yield from faults
        # An entry with a wrong field would fail as a function too, and be reported twice.
        faulty_fields = {fault.where.field for fault in faults}
        for entry_path, entry in pipeline_functions(document.value):
            section, index = entry_path[1:]
            field = f"pipeline.{section}[{index}]"
            if not any(name == field or name.startswith(f"{field}.") for name in faulty_fields):
                where = ErrorLocation(KPTFILE, field, path, document.line_of(entry_path))
                with_entry = replace(document, value={"pipeline": {section: [entry]}})
                single_entry = Manifest(b"", "", document.file, [with_entry])
                # Files that a function reads are not checked: functions before it may still change
                # them.
                try:
                    pipeline = {**resources, path: single_entry}
                    for function in read_pipelines(pipeline, runtime.programs):
                        if function.config is not None:
                            function.build_step(lambda _: {})
                except InvalidInput as error:
                    problem, remedy = error.problem, error.remedy
                    yield InvalidInput(problem, reason=error.reason, remedy=remedy, where=where)


def _is_kptfile(path: str) -> bool:
    return path.rpartition("/")[2] == KPTFILE


def _check_points(manifests: _Manifests) -> _Faults:
    """Yield errors for marks that are no injection points, and for duplicate points."""
    points_by_key: dict[str, InjectionPoint] = {}
    for path, manifest in manifests.items():
        for number, part in find_objects(manifest).items():
            try:
                points = find_injection_points([(path, number, part)])
            except InvalidInput as error:
                yield error
                continue
            for point in points:
                first_point = points_by_key.setdefault(point.key, point)
                if first_point is not point:
                    yield _invalid_package(
                        f"injection point {point.key} is also at"
                        f" {first_point.file}:{first_point.line}",
                        "rename one of the two objects",
                        ErrorLocation(f"{point.kind}/{point.name}", "", path, point.line),
                    )


def _check_names(manifests: _Manifests) -> _Faults:
    """Yield errors for names that YAML reads as a number or a boolean."""
    for path, manifest in manifests.items():
        for part in () if _is_kptfile(path) else find_objects(manifest).values():
            values = {it: get_value(part.value, it) for it in _IDENTITY_PATHS}
            api_version, kind, name, _ = values.values()
            # A document without kind, or with neither apiVersion nor name, is no Kubernetes object,
            # but values of a tool, for instance.
            if MISSING in (kind, name if api_version is MISSING else api_version):
                continue
            for field, value in values.items():
                if value is MISSING or value is None or isinstance(value, str):
                    continue
                where = ErrorLocation(str(kind), format_path(field), path, part.line_of(field))
                yield _invalid_package(f"{format_value(value)} is not a string", "quote it", where)


def _invalid_package(problem: str, remedy: str, where: ErrorLocation | None = None) -> InvalidInput:
    return InvalidInput(problem, reason=Reason.INVALID_PACKAGE, remedy=remedy, where=where)

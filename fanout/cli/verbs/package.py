"""`fanout package`: the package engine on plain directories.

It needs no policy, no repository and no cluster, so that people and other programs can
merge, render, compare and validate packages of their own.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import click

from fanout.api.reasons import Reason
from fanout.api.text_fields import format_value
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, detailed_option, with_settings
from fanout.cli.input.package_directory import (
    DEFAULT_LIMITS,
    find_changed_paths,
    read_files,
    require_new_directory,
    scan_directory,
    with_directory,
    write_files,
)
from fanout.cli.output.merge_view import format_masked_three_way, print_patch, serialize_conflict
from fanout.cli.output.printer import print_value, write_lines
from fanout.cli.process_exit import ExitCode, detailed_exit_code, invalid_setting
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.cli.startup import build_function_runner, load_configuration
from fanout.control_characters import escape_unprintable
from fanout.declared.finding import Finding, serialize_finding
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import MISSING, format_path, get_value
from fanout.package.ignored_files import find_ignored
from fanout.package.kptfile import KPTFILE, find_kptfile, find_kptfile_problems, pipeline_functions
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_units import is_manifest
from fanout.package.merge.package_update import KptUpdateStrategy, update_package
from fanout.package.package_limits import ValueCounter
from fanout.package.package_patch import format_masked_patch
from fanout.package.tree_ids import FileContent, Files
from fanout.package.yaml_nodes import InvalidManifest
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.sandbox.function_runner import find_allowed_programs
from fanout.telemetry.metrics import Counters
from fanout.values import Value, asdict, replace
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
_IDENTITY_PATHS = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))


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
    faults += (it.error for it in find_duplicates(manifests, files) if not it.is_build_input)
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
                if (first_point := points_by_key.setdefault(point.key, point)) is not point:
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


DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.group()
def command() -> None:
    """Merge, render, compare and validate packages in directories."""


@command.command("merge", cls=VerbCommand)
@click.option("--origin", required=True, type=DIRECTORY, help="Common origin of both packages.")
@click.option("--upstream", required=True, type=DIRECTORY, help="Newer upstream package.")
@click.option("--local", required=True, type=DIRECTORY, help="Local package with edits.")
@click.option("--to", type=NEW_DIRECTORY, help="Write the result to this new or empty directory.")
@click.option("--in-place", is_flag=True, help="Write the result to the local directory.")
@click.option(
    "--strategy",
    type=click.Choice([strategy.value for strategy in KptUpdateStrategy]),
    default=KptUpdateStrategy.RESOURCE_MERGE.value,
    show_default=True,
    help="Merge strategy, as in the field updateStrategy of a Kptfile.",
)
@with_settings(ERROR_OPTIONS, formats=REPORT_FORMATS)
def merge(
    settings: Settings,
    origin: Path,
    upstream: Path,
    local: Path,
    to: Path | None,
    in_place: bool,
    strategy: str,
) -> ExitCode:
    """Merge upstream changes into a local package.

    Writes the result even if there are conflicts. If both packages changed a value, the upstream
    value is used. If one package changed an object or file and the other package deleted it, the
    state in the local package is kept. Exits with code 3 if there are conflicts.
    """
    # --to that names the local directory contradicts nothing.
    if in_place and (to is None or to.resolve() == local.resolve()):
        target = local
    elif to is None or in_place:
        remedy = "use --to NEW-DIRECTORY or --in-place"
        raise invalid_setting("the output directory is missing", remedy, "--to")
    else:
        target = require_new_directory(to)
    origin_files, upstream_files, local_files = map(read_files, (origin, upstream, local))
    update_strategy = KptUpdateStrategy(strategy)
    try:
        result = update_package(update_strategy, origin_files, upstream_files, local_files)
    except InvalidInput as error:
        raise with_directory(error, local) from None
    write_files(target, local_files if in_place else {}, result.files)
    if settings.output is OutputFormat.TABLE:
        lines = [f"conflict: {conflict}" for conflict in result.conflicts]
        lines += (
            f"dropped: {escape_unprintable(path)}: its local changes are lost"
            for path in result.dropped
        )
        write_lines([*lines, *(f"note: {note}" for note in result.notes)])
    else:
        report = {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "MergeReport",
            "conflicts": [serialize_conflict(conflict) for conflict in result.conflicts],
            "dropped": list(result.dropped),
            "notes": list(result.notes),
        }
        print_value(report, settings.output)
    return ExitCode.SOME_FAILED if result.conflicts else ExitCode.OK


@command.command("render", cls=VerbCommand)
@click.argument("directory", type=DIRECTORY)
@click.option(
    "--to",
    type=NEW_DIRECTORY,
    help="Write the result to this new or empty directory, and do not change the package.",
)
@with_settings(("config", *ERROR_OPTIONS), formats=REPORT_FORMATS)
def render(settings: Settings, directory: Path, to: Path | None) -> ExitCode:
    """Run the functions of a package's Kptfile.

    Functions of subpackages run first. The package is changed in place, completely or not at all.
    If a function reports an error, the package is not changed.
    """
    target = directory if to is None else require_new_directory(to)
    before = read_files(directory)
    try:
        after, results = run_pipeline(before, load_package_functions(settings))
    except InvalidInput as error:
        raise with_directory(error, directory) from None
    failed = bool(find_errors(results))
    # Functions that ran before the failing one may have changed files; none of that is written.
    if not failed:
        write_files(target, before if to is None else {}, after)
    changed = [] if failed else find_changed_paths(before, after)
    if settings.output is OutputFormat.TABLE:
        lines = [f"{result.severity}: {result.sentence}" for result in results]
        for path in changed:
            verb = "changed" if path in before and path in after else "added"
            lines.append(f"{verb if path in after else 'removed'}: {escape_unprintable(path)}")
        write_lines(lines)
    else:
        report = {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "RenderReport",
            "changed": changed,
            "results": [
                {
                    "message": result.message,
                    "severity": result.severity,
                    "function": result.function,
                    **asdict(result.where),
                }
                for result in results
            ],
        }
        print_value(report, settings.output)
    return ExitCode.INVALID if failed else ExitCode.OK


@command.command("diff", cls=VerbCommand)
@click.option("--upstream", required=True, type=DIRECTORY, help="Upstream package.")
@click.option("--local", required=True, type=DIRECTORY, help="Local package with edits.")
@click.option(
    "--origin",
    type=DIRECTORY,
    help="Common origin of both packages. Prints what each package changed since this origin.",
)
@detailed_option
@with_settings(ERROR_OPTIONS)
def diff(
    settings: Settings,  # noqa: ARG001
    upstream: Path,
    local: Path,
    origin: Path | None,
    **how: bool,
) -> int:
    """Compare a local package with the upstream package.

    Prints a patch from the upstream package to the local package. With --origin, prints what each
    package changed since their common origin, and the conflicts. Values of Secrets are masked as
    `***`.
    """
    upstream_files, local_files = read_files(upstream), read_files(local)
    lines = (
        format_masked_patch(upstream_files, local_files, ("upstream", "local"))
        if origin is None
        else format_masked_three_way(read_files(origin), upstream_files, local_files)
    )
    print_patch(lines)
    return detailed_exit_code(ExitCode.OK, changes=bool(lines)) if how["detailed"] else ExitCode.OK


@command.command("validate", cls=VerbCommand)
@click.argument("directory", type=DIRECTORY)
@with_settings(("config", *ERROR_OPTIONS), formats=REPORT_FORMATS)
def validate(settings: Settings, directory: Path) -> ExitCode:
    """Validate a package and report every error.

    Checks Kptfiles, manifests, injection points and functions. Reports duplicate objects, and files
    that are not allowed in a package. Exits with code 2 if there are errors.
    """
    files, scan_errors = scan_directory(directory)
    # Of a package that was read in part, missing files would be reported as errors of the others.
    is_complete = all(fault.reason != Reason.LIMIT_EXCEEDED for fault in scan_errors)
    package_faults = PackageFindings([])
    if is_complete:
        package_faults = validate_package(files, load_package_functions(settings))
    faults = [*scan_errors, *(with_directory(fault, directory) for fault in package_faults.errors)]
    warnings = []
    for result in package_faults.warnings:
        file = str(directory / result.where.file) if result.where.file else ""
        warnings.append(result._replace(where=replace(result.where, file=file)))
    if settings.output is OutputFormat.TABLE:
        lines = [*map(str, faults), *(f"warning: {result.sentence}" for result in warnings)]
        write_lines(lines if faults else [*lines, "the package is valid"])
    else:
        findings = [Finding(it.where, it.problem, it.remedy) for it in faults]
        findings += (
            Finding(it.where, f"{it.message} ({it.function})", "", "warning") for it in warnings
        )
        print_value([serialize_finding(it) for it in findings], settings.output)
    return ExitCode.INVALID if faults else ExitCode.OK

"""`fanout package`: the package engine on plain directories.

It needs no policy, no repository and no cluster, so that people and other programs can
merge, render, compare and validate packages of their own.
"""

from pathlib import Path

import click

from fanout.api.reasons import Reason
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, detailed_option, with_settings
from fanout.cli.input.package_directory import (
    find_changed_paths,
    read_files,
    require_new_directory,
    scan_directory,
    with_directory,
    write_files,
)
from fanout.cli.input.package_validation import (
    PackageFindings,
    load_package_functions,
    run_pipeline,
    validate_package,
)
from fanout.cli.output.merge_view import format_masked_three_way, print_patch, serialize_conflict
from fanout.cli.output.printer import print_value, write_lines
from fanout.cli.process_exit import ExitCode, detailed_exit_code, invalid_setting
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.control_characters import escape_unprintable
from fanout.declared.declared_objects import Finding, serialize_finding
from fanout.errors import InvalidInput
from fanout.package.merge.package_update import KptUpdateStrategy, update_package
from fanout.package.package_patch import format_masked_patch
from fanout.values import asdict, replace
from fanout.variants.package_preparation import find_errors

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

"""`fanout test`: compare scenarios with their expectations, or print their course."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from fanout.api.output_views import TestResult
from fanout.api.scenario import Scenario
from fanout.api.view_base import ViewMeta, dump_views
from fanout.cli.command_errors import invalid_setting, not_found
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.input.scenario_files import DeclaredScenarios, open_scenarios
from fanout.cli.output.printer import build_list, print_value, write_stdout
from fanout.cli.output.scenario_results import (
    build_difference,
    format_junit,
    format_results,
    print_simulations,
)
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.cli.terminal import escape_control, print_message
from fanout.errors import FanoutError
from fanout.scenarios.scenario_expectations import ComparedValue, compare_expectations
from fanout.scenarios.simulation_view import build_simulation

_MAX_PATHS = 3  # of those that messages name


@click.command(cls=VerbCommand)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--show", is_flag=True, help="Print the events of each scenario, and do not compare results."
)
@click.option(
    "--junit",
    "report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the results to this file as JUnit XML.",
)
@with_settings(
    ("files", "namespace", "all_namespaces", "config", *ERROR_OPTIONS), formats=REPORT_FORMATS
)
def command(
    settings: Settings, paths: Sequence[Path], report: Path | None, *, show: bool
) -> ExitCode:
    """Run scenarios and compare the results with the expected ones.

    PATHS are files and directories with scenarios. A Scenario lists variants, records, events and
    points in time; the gates are evaluated at each point in time. Policies are read from PATHS and
    from -f. No repository is read. With --show and -o json, prints an object of kind Simulation.
    For several scenarios, prints a List of Simulation objects.

    If a result differs from the expected one, prints what the gates report, and exits with code 3.
    Exits with code 2 if a scenario has errors.
    """
    if show and report is not None:
        raise invalid_setting("--junit and --show exclude each other", "keep one of them")
    with open_scenarios(settings, paths) as declared:
        for error in declared.errors:
            print_message(str(error), settings.color, fg="red")
        if show:
            return _show_scenarios(declared, paths, settings)
        results = [_run_scenario(declared, scenario, settings) for scenario in declared.scenarios]
    # A mistyped path must not pass in CI as a test without failures.
    if not declared.errors and all(result.result == "Empty" for result in results):
        problem = f"{_format_paths(paths)}: no Scenario with expectations"
        raise not_found(problem, "write the expectations in spec.expect")
    if report is not None:
        report.write_text(format_junit(results), encoding="utf-8")
    if settings.output is OutputFormat.TABLE:
        write_stdout(escape_control("".join(format_results(results, len(declared.errors)))))
    else:
        print_value(build_list(dump_views(results)), settings.output)
    if declared.errors or any(result.result == "Invalid" for result in results):
        return ExitCode.INVALID
    failed = any(result.result == "Failed" for result in results)
    return ExitCode.SOME_FAILED if failed else ExitCode.OK


def _format_paths(paths: Sequence[Path]) -> str:
    """Format the first of the paths, and the number of the others."""
    shown = [str(path) for path in paths[:_MAX_PATHS]]
    rest = len(paths) - len(shown)
    return " and ".join([*shown, f"{rest} more"] if rest else shown)


def _show_scenarios(
    declared: DeclaredScenarios, paths: Sequence[Path], settings: Settings
) -> ExitCode:
    if not declared.scenarios and not declared.errors:
        raise not_found(f"no Scenario is in {_format_paths(paths)}", "check the paths")
    simulations = []
    for scenario in declared.scenarios:
        try:
            simulations.append(build_simulation(scenario, declared.run_scenario(scenario)))
        # One scenario that cannot be run does not keep the others from running.
        except FanoutError as error:
            print_message(str(error), settings.color, fg="red")
    alone = len(declared.scenarios) == 1 and not declared.errors
    print_simulations(simulations, settings.output, alone=alone)
    has_failed = declared.errors or len(simulations) < len(declared.scenarios)
    return ExitCode.INVALID if has_failed else ExitCode.OK


def _run_scenario(
    declared: DeclaredScenarios, scenario: Scenario, settings: Settings
) -> TestResult:
    """Run the scenario and return its result.

    One that cannot be run is reported and invalid.
    """
    compared: tuple[ComparedValue, ...] = ()
    is_invalid = False
    try:
        compared = compare_expectations(scenario, declared.run_scenario(scenario))
    except FanoutError as error:
        print_message(str(error), settings.color, fg="red")
        is_invalid = True
    locate = partial(declared.declared.where, scenario)
    differences = tuple(build_difference(it, locate(it.path)) for it in compared if it.differs)
    where, meta = locate(), scenario.metadata
    return TestResult(
        metadata=ViewMeta(name=meta.name, namespace=meta.namespace),
        policy=scenario.spec.policy or meta.name,
        file=where.file,
        line=where.line,
        result="Invalid"
        if is_invalid
        else "Failed"
        if differences
        else "Passed"
        if compared
        else "Empty",
        expectations=len(compared),
        differences=differences,
    )

"""`fanout test`: compare scenarios with their expectations, or print their course."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import click

from fanout.api.durations import format_instant
from fanout.api.field_errors import format_path
from fanout.api.output_views import (
    DifferenceView,
    HeldView,
    MomentView,
    ReasonView,
    Simulation,
    TestResult,
)
from fanout.api.scenario import Scenario
from fanout.api.text_fields import pluralize
from fanout.api.view_base import ViewMeta, dump_view, dump_views, label_verdict
from fanout.cli.command_errors import invalid_setting, not_found
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.input.scenario_files import DeclaredScenarios, open_scenarios
from fanout.cli.output.printer import build_list, format_table, print_value, write_stdout
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.cli.terminal import escape_control, print_message
from fanout.errors import FanoutError
from fanout.gates.gate_wording import format_names
from fanout.scenarios.scenario_expectations import (
    ComparedValue,
    ExpectedValue,
    compare_expectations,
)
from fanout.scenarios.simulation_view import build_simulation

_MAX_PATHS = 3  # of those that messages name
_MARKS = {"Passed": "ok", "Failed": "FAILED", "Invalid": "INVALID", "Empty": "empty"}


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
        write_stdout(escape_control("".join(_format_results(results, len(declared.errors)))))
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
    differences = tuple(
        _serialize_difference(declared, scenario, it) for it in compared if it.differs
    )
    where, meta = declared.declared.where(scenario), scenario.metadata
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


def _serialize_difference(
    declared: DeclaredScenarios, scenario: Scenario, compared: ComparedValue
) -> DifferenceView:
    where, subject = declared.declared.where(scenario, compared.path), compared.subject
    return DifferenceView(
        at=format_instant(subject.at),
        subject=subject.name,
        field=format_path(compared.path),
        expected=_format_value(compared.expected),
        found=_format_value(compared.actual),
        why=subject.explanation,
        file=where.file,
        line=where.line,
    )


def _format_value(value: ExpectedValue) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "none"
        case tuple():
            return f"[{', '.join(map(str, value))}]"
        case _:
            return str(value) or '""'


def _format_results(results: Sequence[TestResult], faults: int) -> Iterator[str]:
    for result in results:
        number = pluralize(result.expectations, "expectation")
        yield (
            f"{_MARKS[result.result]:8}{result.file}:{result.line}: {result.metadata.name}"
            f" ({number})\n"
        )
        for difference in result.differences:
            field = difference.field.rpartition(".")[2]
            sentence = f"{field} is {difference.found}, expected {difference.expected}"
            yield (
                f"  {difference.file}:{difference.line}: {difference.subject} at"
                f" {difference.at}: {sentence}\n"
            )
            if difference.why:
                yield f"    {difference.why}\n"
    failed = sum(result.result in ("Failed", "Invalid") for result in results)
    broken = f", {pluralize(faults, 'error')} in others" if faults else ""
    yield f"{pluralize(len(results), 'scenario')}, {failed} failed{broken}\n"


_HEADS = ("STAGE", "CANDIDATE", "GATE", "VERDICT", "RELEASED", "PUBLISHED", "HELD", "NEXT")
_NAME_LIMIT = 8  # variants that a cell names


def print_simulations(
    simulations: Sequence[Simulation], output: OutputFormat, *, alone: bool
) -> None:
    """Print the simulations; `alone`: one scenario was requested, so no list is printed."""
    if output is OutputFormat.TABLE:
        write_stdout("\n".join("".join(_format_simulation(it)) for it in simulations))
        return
    plain = [dump_view(it, nulls=True) for it in simulations]
    if plain or not alone:
        print_value(plain[0] if alone else build_list(plain), output)


def _format_simulation(simulation: Simulation) -> Iterator[str]:
    yield f"{simulation.metadata.name} (policy {simulation.policy})\n"
    for moment in simulation.moments:
        further = f", next {format_instant(moment.next)}" if moment.next else ""
        yield f"\n{format_instant(moment.at)}{further}\n"
        yield _format_stages(moment)
        for reason in (*moment.holds, *(it for variant in moment.stages for it in variant.holds)):
            yield f"  {reason.class_}: {reason.message}{_format_actor(reason)}\n"
        for stage in moment.stages:
            for other_revision in stage.others:
                reasons = "; ".join(
                    f"{it.message}{_format_actor(it)}" for it in other_revision.reasons
                )
                yield (
                    f"  revision: stage {stage.stage} does not take {other_revision.revision}:"
                    f" {reasons}\n"
                )
        for variant in moment.in_no_stage:
            yield (
                f"  {variant.variant}:"
                f" {variant.reasons[0].message if variant.reasons else variant.state}\n"
            )


def _format_stages(moment: MomentView) -> str:
    rows = [
        (
            stage.stage,
            stage.candidate or "-",
            label_verdict(stage.gate),
            f"{label_verdict(stage.verdict)}{', halted' if stage.halted else ''}",
            _format_names(stage.released),
            _format_names(stage.published),
            _format_hold_classes(stage.held),
            format_instant(stage.next) if stage.next else "-",
        )
        for stage in moment.stages
    ]
    return format_table(_HEADS, rows)


def _format_names(names: Sequence[str]) -> str:
    """Return the names in order. For more than eight their number, the first two and the last."""
    if len(names) <= _NAME_LIMIT:
        return ",".join(names) or "-"
    return f"{len(names)}: {','.join(names[:2])},…,{names[-1]}"


def _format_hold_classes(held: Iterable[HeldView]) -> str:
    counts: dict[str, int] = {}
    for held_variant in held:
        for name in {reason.class_.value for reason in held_variant.reasons}:
            counts[name] = counts.get(name, 0) + 1
    return ",".join(f"{name}={number}" for name, number in sorted(counts.items())) or "-"


def _format_actor(reason: ReasonView) -> str:
    return f" ({format_names([reason.who])})" if reason.who else ""


_COUNT_ATTRIBUTES = {"Failed": "failures", "Invalid": "errors", "Empty": "skipped"}
_RESULT_ELEMENTS = {
    "Failed": ("failure", "not as expected"),
    "Invalid": ("error", "the scenario cannot run"),
    "Empty": ("skipped", "it has no expectations"),
}


def format_junit(results: Sequence[TestResult]) -> str:
    """Return the results as JUnit XML, one test case per scenario.

    The file of the scenario is the class name.
    """
    return "".join(f"{line}\n" for line in _xml_lines(results))


def _xml_lines(results: Sequence[TestResult]) -> Iterator[str]:
    count = {word: sum(result.result == word for result in results) for word in _COUNT_ATTRIBUTES}
    numbers = " ".join(f'{_COUNT_ATTRIBUTES[word]}="{number}"' for word, number in count.items())
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuite name="fanout" tests="{len(results)}" {numbers}>'
    for result in results:
        yield (
            f"  <testcase classname={_quote_attribute(result.file)}"
            f" name={_quote_attribute(result.metadata.name)}>"
        )
        if result.result in _RESULT_ELEMENTS:
            text = "\n".join(
                f"{it.file}:{it.line}: {it.subject} at {it.at}: {it.field} is {it.found}, expected"
                f" was {it.expected}{it.why and f'; {it.why}'}"
                for it in result.differences
            )
            element, message = _RESULT_ELEMENTS[result.result]
            yield (
                f"    <{element}"
                f" message={_quote_attribute(message)}>{escape(escape_control(text))}</{element}>"
            )
        yield "  </testcase>"
    yield "</testsuite>"


def _quote_attribute(text: str) -> str:
    return quoteattr(escape_control(text))

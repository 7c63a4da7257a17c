"""`fanout test`: compare scenarios with their expectations."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import click

from fanout.api.field_errors import format_path
from fanout.api.output_views import DifferenceView, TestResult, ViewMeta
from fanout.api.scenarios.scenario import Scenario
from fanout.cli.input.options import with_settings
from fanout.cli.input.scenario_files import DeclaredScenarios, open_scenarios
from fanout.cli.output.printer import build_list, print_value, write_stdout
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.terminal import escape_control, print_message
from fanout.errors import FanoutError, InvalidInput
from fanout.gates.gate_wording import format_count
from fanout.plan.records.policy_status import format_instant
from fanout.plan.scenarios.scenario_expectations import (
    ComparedValue,
    ExpectedValue,
    compare_expectations,
)


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


_COUNT_ATTRIBUTES = {"failed": "failures", "invalid": "errors", "empty": "skipped"}
_RESULT_ELEMENTS = {
    "failed": ("failure", "not as expected"),
    "invalid": ("error", "the scenario cannot be played"),
    "empty": ("skipped", "nothing is expected"),
}


def _quote_attribute(text: str) -> str:
    return quoteattr(escape_control(text))


_MARKS = {"passed": "ok", "failed": "FAILED", "invalid": "INVALID", "empty": "empty"}


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--junit",
    "report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the results there as JUnit XML, too.",
)
@with_settings(formats=(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML))
def command(settings: Settings, paths: Sequence[Path], report: Path | None) -> ExitCode:
    """Play scenarios, and compare with what they expect.

    PATHS are files and directories with scenarios.

    Policies are those in the same files, and those of -f. Exits with 3 when something is not as
    it was expected, and says what the engine says about it; with 2 when a scenario has faults.
    """
    with open_scenarios(settings, paths) as scenarios:
        faults = scenarios.find_errors(paths)
        for fault in faults:
            print_message(str(fault), settings.color, fg="red")
        results = [
            _run_scenario(scenarios, scenario, settings) for scenario in scenarios.find_valid(paths)
        ]
    # A mistyped path must not pass in CI as a test without failures.
    if not faults and all(result.result == "empty" for result in results):
        raise InvalidInput(
            f"{' and '.join(map(str, paths))}: no Scenario with expectations",
            reason="NotFound",
            remedy="write what is expected under spec.expect",
        )
    if report is not None:
        report.write_text(format_junit(results), encoding="utf-8")
    _print_results(results, len(faults), settings.output)
    if faults or any(result.result == "invalid" for result in results):
        return ExitCode.INVALID
    failed = any(result.result == "failed" for result in results)
    return ExitCode.SOME_FAILED if failed else ExitCode.OK


def _run_scenario(
    scenarios: DeclaredScenarios, scenario: Scenario, settings: Settings
) -> TestResult:
    """Run the scenario and return its result.

    One that cannot be run is reported and invalid.
    """
    where = scenarios.declared.where(scenario)
    compared: tuple[ComparedValue, ...] = ()
    policy, invalid = scenario.spec.policy or scenario.metadata.name, False
    try:
        _, moments = scenarios.run_scenario(scenario)
        compared = compare_expectations(scenario, moments)
    except FanoutError as error:
        print_message(str(error), settings.color, fg="red")
        invalid = True
    differences = tuple(
        _serialize_difference(scenarios, scenario, it) for it in compared if it.differs
    )
    return TestResult(
        metadata=ViewMeta(name=scenario.metadata.name, namespace=scenario.metadata.namespace),
        policy=policy,
        file=where.file,
        line=where.line,
        result="invalid"
        if invalid
        else "failed"
        if differences
        else "passed"
        if compared
        else "empty",
        expectations=len(compared),
        differences=differences,
    )


def _serialize_difference(
    scenarios: DeclaredScenarios, scenario: Scenario, compared: ComparedValue
) -> DifferenceView:
    where = scenarios.declared.where(scenario, compared.path)
    return DifferenceView(
        at=format_instant(compared.at),
        subject=compared.subject,
        field=format_path(compared.path),
        expected=_format_value(compared.expected),
        found=_format_value(compared.actual),
        why=compared.explanation,
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


def _print_results(results: Sequence[TestResult], faults: int, output: OutputFormat) -> None:
    if output is OutputFormat.TABLE:
        write_stdout("".join(_format_results(results, faults)))
    else:
        print_value(build_list([result.model_dump(mode="json") for result in results]), output)


def _format_results(results: Sequence[TestResult], faults: int) -> Iterator[str]:
    for result in results:
        number = format_count(result.expectations, "expectation")
        yield (
            f"{_MARKS[result.result]:8}{result.file}:{result.line}: {result.metadata.name}"
            f" ({number})\n"
        )
        for difference in result.differences:
            field = difference.field.rpartition(".")[2]
            sentence = f"{field} is {difference.found}, expected was {difference.expected}"
            yield (
                f"  {difference.file}:{difference.line}: {difference.subject} at"
                f" {difference.at}: {sentence}\n"
            )
            if difference.why:
                yield f"    {difference.why}\n"
    failed = sum(result.result in ("failed", "invalid") for result in results)
    broken = f", {format_count(faults, 'fault')} in others" if faults else ""
    yield f"{format_count(len(results), 'scenario')}, {failed} failed{broken}\n"

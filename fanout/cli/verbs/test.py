"""`fanout test`: compare scenarios with their expectations, or print their course."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

import click

from fanout.api.durations import format_instant
from fanout.api.field_errors import format_path
from fanout.api.kind_registry import KINDS
from fanout.api.output_views import DifferenceView, ReasonView, Simulation, TestResult
from fanout.api.scenario import Scenario
from fanout.api.text_fields import pluralize
from fanout.api.view_base import ViewMeta, dump_view, dump_views, label_verdict
from fanout.cli.input.options import ERROR_OPTIONS, VerbCommand, with_settings
from fanout.cli.output.printer import build_list, format_table, print_value, write_stdout
from fanout.cli.process_exit import ExitCode, invalid_setting, not_found
from fanout.cli.settings import REPORT_FORMATS, STANDARD_INPUT, OutputFormat, Settings
from fanout.cli.startup import open_sandbox
from fanout.cli.terminal import escape_control, print_message
from fanout.cluster.file_cluster import FileCluster
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.errors import ErrorLocation, FanoutError, InvalidInput
from fanout.gates.gate_wording import format_names
from fanout.reconcile.selection.propagation_conditions import PropagationConditions
from fanout.reconcile.validation.expression_validation import validate_expressions
from fanout.scenarios.scenario_expectations import (
    ComparedValue,
    ExpectedValue,
    compare_expectations,
)
from fanout.scenarios.scenario_player import PlayedPass, build_simulation, play_scenario
from fanout.scenarios.scenario_world import find_policy
from fanout.values import Value, replace

_MARKS = {"Passed": "ok", "Failed": "FAILED", "Invalid": "INVALID", "Empty": "empty"}


def build_difference(compared: ComparedValue, where: ErrorLocation) -> DifferenceView:
    """Return the view of a result that differs from the expectation at a file and line."""
    subject = compared.subject
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


def format_results(results: Sequence[TestResult], faults: int) -> Iterator[str]:
    """Yield the lines of each scenario, and their numbers; `faults`: errors in other files."""
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
        rows = []
        for stage in moment.stages:
            counts = Counter(
                name for it in stage.held for name in {reason.class_.value for reason in it.reasons}
            )
            row = (
                stage.stage,
                stage.candidate or "-",
                label_verdict(stage.gate),
                f"{label_verdict(stage.verdict)}{', halted' if stage.halted else ''}",
                _format_names(stage.released),
                _format_names(stage.published),
                ",".join(f"{name}={number}" for name, number in sorted(counts.items())) or "-",
                format_instant(stage.next) if stage.next else "-",
            )
            rows.append(row)
        yield format_table(_HEADS, rows)
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


def _format_names(names: Sequence[str]) -> str:
    """Return the names in order. For more than eight their number, the first two and the last."""
    if len(names) <= _NAME_LIMIT:
        return ",".join(names) or "-"
    return f"{len(names)}: {','.join(names[:2])},…,{names[-1]}"


def _format_actor(reason: ReasonView) -> str:
    return f" ({format_names([reason.who])})" if reason.who else ""


_COUNT_ATTRIBUTES = {"Failed": "failures", "Invalid": "errors", "Empty": "skipped"}
_RESULT_ELEMENTS = {
    "Failed": ("failure", "not as expected"),
    "Invalid": ("error", "the scenario cannot run"),
    "Empty": ("skipped", "it has no expectations"),
}


def format_junit(results: Sequence[TestResult]) -> str:
    """Return the results as JUnit XML: a test case per scenario, with its file as class name."""
    counts: Counter[str] = Counter(result.result for result in results)
    numbers = " ".join(f'{name}="{counts[word]}"' for word, name in _COUNT_ATTRIBUTES.items())
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="fanout" tests="{len(results)}" {numbers}>',
    ]
    for result in results:
        file, name = (quoteattr(escape_control(it)) for it in (result.file, result.metadata.name))
        lines.append(f"  <testcase classname={file} name={name}>")
        if result.result in _RESULT_ELEMENTS:
            text = "\n".join(
                f"{it.file}:{it.line}: {it.subject} at {it.at}: {it.field} is {it.found}, expected"
                f" was {it.expected}{it.why and f'; {it.why}'}"
                for it in result.differences
            )
            element, message = _RESULT_ELEMENTS[result.result]
            text = escape(escape_control(text))
            lines.append(f'    <{element} message="{message}">{text}</{element}>')
        lines.append("  </testcase>")
    return "".join(f"{line}\n" for line in (*lines, "</testsuite>"))


_MAX_PATHS = 3  # of those that messages name


class _DeclaredScenarios(Value):
    """Scenarios of files, with the objects declared beside them, and the means to run them.

    `scenarios` are those without errors, by file and line; `errors` are those of all others.
    """

    declared: DeclaredObjects
    conditions: PropagationConditions
    scenarios: tuple[Scenario, ...]
    errors: tuple[Finding, ...]

    def run_scenario(self, scenario: Scenario) -> tuple[PlayedPass, ...]:
        """Run the scenario and return its passes.

        Raises InvalidInput if its policy is invalid, or a PromotionPolicy that may restrict it.
        """
        scenario_policy = find_policy(scenario, self.declared.policies, self.declared.promotions)
        problem, remedy = f"UpstreamPolicy {scenario.spec.policy}", "run `fanout validate`"
        if scenario_policy is not None:
            key = ("PromotionPolicy", scenario_policy.policy.metadata.namespace)
            invalid = [it for it in self.declared.left_out if (it.kind, it.namespace) == key]
            if scenario.spec.stages or not invalid:
                decide, conditions = self.conditions.decide, self.conditions.get_condition
                return play_scenario(scenario, scenario_policy, conditions, decide)
            problem = f"PromotionPolicy {invalid[0].name}"
            remedy += "; it may restrict this policy"
        raise InvalidInput(
            f"{problem} has an error",
            reason="InvalidObject",
            remedy=remedy,
            where=self.declared.where(scenario, "spec.policy"),
        )


@contextmanager
def _open_scenarios(settings: Settings, paths: Sequence[Path]) -> Iterator[_DeclaredScenarios]:
    """Load the objects of `-f` and the scenarios of the paths. Raises InvalidInput."""
    sources = replace(settings, files=(*settings.files, *paths)).require_files()
    if STANDARD_INPUT in sources:
        problem = "scenarios and their policies cannot be read from standard input"
        raise invalid_setting(problem, "pass files or directories")
    # A scenario is a test: an error in one document must not hide what the others come to.
    declared = FileCluster(sources, keep_valid=True).read()

    def is_in_paths(file: str) -> bool:
        # A file that is given under two names is read once only, under one of them.
        real = Path(file).resolve()
        return any(real.is_relative_to(path.resolve()) for path in paths)

    def is_scenario(finding: Finding) -> bool:
        """Return whether it is about a Scenario, or an unknown kind that may mean one."""
        kind = finding.where.object.partition("/")[0]
        return kind == Scenario.__name__ or kind not in KINDS

    with open_sandbox(settings) as sandbox:
        findings = (*declared.faults, *validate_expressions(declared, sandbox))
        errors = tuple(
            it
            for it in findings
            if it.severity == "error" and is_in_paths(it.where.file) and is_scenario(it)
        )
        with_errors = {(it.where.file, it.where.object) for it in errors}
        located = [
            (where.file, where.line, scenario)
            for scenario in declared.scenarios
            if settings.namespace in ("", scenario.metadata.namespace)
            and is_in_paths((where := declared.where(scenario)).file)
            and (where.file, where.object) not in with_errors
        ]
        scenarios = (it for *_, it in sorted(located, key=lambda entry: entry[:2]))
        yield _DeclaredScenarios(declared, PropagationConditions(sandbox), tuple(scenarios), errors)


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
    with _open_scenarios(settings, paths) as declared:
        for error in declared.errors:
            print_message(str(error), settings.color, fg="red")
        if show:
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


def _run_scenario(
    declared: _DeclaredScenarios, scenario: Scenario, settings: Settings
) -> TestResult:
    """Run the scenario and return its result; one that cannot be run is reported and invalid."""
    compared: tuple[ComparedValue, ...] = ()
    result: Literal["Passed", "Failed", "Invalid", "Empty"] = "Empty"
    locate = partial(declared.declared.where, scenario)
    try:
        compared = compare_expectations(scenario, declared.run_scenario(scenario))
    except FanoutError as error:
        print_message(str(error), settings.color, fg="red")
        result = "Invalid"
    differences = tuple(build_difference(it, locate(it.path)) for it in compared if it.differs)
    if compared:
        result = "Failed" if differences else "Passed"
    where, meta = locate(), scenario.metadata
    return TestResult(
        metadata=ViewMeta(name=meta.name, namespace=meta.namespace),
        policy=scenario.spec.policy or meta.name,
        file=where.file,
        line=where.line,
        result=result,
        expectations=len(compared),
        differences=differences,
    )

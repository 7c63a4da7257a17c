"""`fanout test`: scenarios with expectations, so that policies are tested as code is."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from fanout.api.faults import field_name
from fanout.api.scenario import Scenario
from fanout.api.simulation import DifferenceView, TestResult
from fanout.api.views import ViewMeta
from fanout.cli.exit_codes import ExitCode
from fanout.cli.junit import junit
from fanout.cli.options import with_settings
from fanout.cli.output import list_of, show_value, write
from fanout.cli.scenarios import Scenarios, open_scenarios
from fanout.cli.settings import Format, Settings
from fanout.cli.terminal import say
from fanout.errors import FanoutError, InvalidInput
from fanout.gates.wording import counted
from fanout.plan.scenarios.expect import Compared, Value, compare
from fanout.plan.status import written

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
@with_settings(formats=(Format.TABLE, Format.JSON, Format.YAML))
def command(settings: Settings, paths: Sequence[Path], report: Path | None) -> ExitCode:
    """Play scenarios, and compare with what they expect.

    PATHS are files and directories with scenarios.

    Policies are those in the same files, and those of -f. Exits with 3 when something is not as
    it was expected, and says what the engine says about it; with 2 when a scenario has faults.
    """
    with open_scenarios(settings, paths) as world:
        faults = world.faults(paths)
        for fault in faults:
            say(str(fault), settings.color, fg="red")
        results = [_result(world, scenario, settings) for scenario in world.usable(paths)]
    if not faults and all(one.result == "empty" for one in results):
        raise InvalidInput(
            f"{' and '.join(map(str, paths))}: no Scenario with expectations",
            reason="NotFound",
            remedy="write what is expected under spec.expect",
        )
    if report is not None:
        report.write_text(junit(results), encoding="utf-8")
    _show(results, len(faults), settings.output)
    if faults or any(one.result == "invalid" for one in results):
        return ExitCode.INVALID
    failed = any(one.result == "failed" for one in results)
    return ExitCode.SOME_FAILED if failed else ExitCode.OK


def _result(world: Scenarios, scenario: Scenario, settings: Settings) -> TestResult:
    """Play it; what cannot be played is told and invalid."""
    where = world.declared.where(scenario)
    compared: tuple[Compared, ...] = ()
    policy, invalid = scenario.spec.policy or scenario.metadata.name, False
    try:
        _, moments = world.play(scenario)
        compared = compare(scenario, moments)
    except FanoutError as error:
        say(str(error), settings.color, fg="red")
        invalid = True
    differences = tuple(_difference(world, scenario, it) for it in compared if it.differs)
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


def _difference(world: Scenarios, scenario: Scenario, it: Compared) -> DifferenceView:
    where = world.declared.where(scenario, it.path)
    return DifferenceView(
        at=written(it.at),
        subject=it.subject,
        field=field_name(it.path),
        expected=_text(it.expected),
        found=_text(it.found),
        why=it.why,
        file=where.file,
        line=where.line,
    )


def _text(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "none"
        case tuple():
            return f"[{', '.join(map(str, value))}]"
        case _:
            return str(value) or '""'


def _show(results: Sequence[TestResult], faults: int, output: Format) -> None:
    if output is Format.TABLE:
        write("".join(_lines(results, faults)))
    else:
        show_value(list_of([one.model_dump(mode="json") for one in results]), output)


def _lines(results: Sequence[TestResult], faults: int) -> Iterator[str]:
    for one in results:
        number = counted(one.expectations, "expectation")
        yield f"{_MARKS[one.result]:8}{one.file}:{one.line}: {one.metadata.name} ({number})\n"
        for it in one.differences:
            field = it.field.rpartition(".")[2]
            said = f"{field} is {it.found}, expected was {it.expected}"
            yield f"  {it.file}:{it.line}: {it.subject} at {it.at}: {said}\n"
            if it.why:
                yield f"    {it.why}\n"
    failed = sum(one.result in ("failed", "invalid") for one in results)
    broken = f", {counted(faults, 'fault')} in others" if faults else ""
    yield f"{counted(len(results), 'scenario')}, {failed} failed{broken}\n"

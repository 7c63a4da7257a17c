"""`fanout simulate`: print the decisions of the gates for a scenario."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from fanout.api.output_views import HeldView, MomentView, ReasonView, Simulation
from fanout.cli.input.options import with_settings
from fanout.cli.input.scenario_files import open_scenarios
from fanout.cli.output.printer import build_list, format_table, print_value, write_stdout
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.terminal import print_message
from fanout.errors import FanoutError, InvalidInput
from fanout.gates.gate_wording import format_names
from fanout.plan.scenarios.simulation_view import build_simulation

_HEADS = ("STAGE", "CANDIDATE", "GATE", "VERDICT", "RELEASED", "PUBLISHED", "HELD", "NEXT")
_NAME_LIMIT = 8  # variants that a cell names


@click.command()
@click.option(
    "--scenario",
    "paths",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File or directory with scenarios; may be given more than once.",
)
@with_settings(formats=(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML))
def command(settings: Settings, paths: Sequence[Path]) -> ExitCode:
    """Say what the gates let through in a stated world.

    A Scenario states variants, records, events and moments; the same engine as in a sweep answers
    for each moment. It names a policy of -f, or states stages of its own. No repository is looked
    at. With -o json a Simulation, or a List of them where there are several scenarios. One with
    errors does not keep the others from being played; the status is 2 then.
    """
    with open_scenarios(settings, paths) as world:
        faults = world.find_errors(paths)
        for fault in faults:
            print_message(str(fault), settings.color, fg="red")
        scenarios = world.find_valid(paths)
        if not scenarios and not faults:
            raise InvalidInput(
                f"no Scenario is in {' and '.join(map(str, paths))}",
                reason="NotFound",
                remedy="check what is given to --scenario",
            )
        simulations, failed = [], 0
        for scenario in scenarios:
            try:
                cast, moments = world.run_scenario(scenario)
            # One scenario that cannot be run does not keep the others from running.
            except FanoutError as error:
                print_message(str(error), settings.color, fg="red")
                failed += 1
                continue
            simulations.append(build_simulation(scenario, cast.policy.metadata.name, moments))
    _print_simulations(simulations, settings.output, alone=len(scenarios) == 1 and not faults)
    return ExitCode.INVALID if faults or failed else ExitCode.OK


def _print_simulations(
    simulations: Sequence[Simulation], output: OutputFormat, *, alone: bool
) -> None:
    """Print the simulations; `alone`: one scenario was requested, so no list is printed."""
    if output is OutputFormat.TABLE:
        write_stdout(
            "\n".join("".join(_format_simulation(simulation)) for simulation in simulations)
        )
        return
    plain = [simulation.model_dump(mode="json") for simulation in simulations]
    if plain or not alone:
        print_value(plain[0] if alone else build_list(plain), output)


def _format_simulation(simulation_result: Simulation) -> Iterator[str]:
    yield f"{simulation_result.metadata.name} (policy {simulation_result.policy})\n"
    for moment in simulation_result.moments:
        yield f"\n{moment.at}{'' if moment.next is None else f', next {moment.next}'}\n"
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
            stage.gate,
            f"{stage.verdict}{', halted' if stage.halted else ''}",
            _format_names(stage.released),
            _format_names(stage.published),
            _format_hold_classes(stage.held),
            stage.next or "-",
        )
        for stage in moment.stages
    ]
    return format_table(_HEADS, rows)


def _format_names(names: Sequence[str]) -> str:
    """Return the names in order.

    For more than eight their number, the first two and the last.
    """
    if len(names) <= _NAME_LIMIT:
        return ",".join(names) or "-"
    return f"{len(names)}: {','.join(names[:2])},…,{names[-1]}"


def _format_hold_classes(held: Iterable[HeldView]) -> str:
    """Return the number of held variants by class of hold."""
    counts: dict[str, int] = {}
    for held_variant in held:
        for name in {reason.class_.value for reason in held_variant.reasons}:
            counts[name] = counts.get(name, 0) + 1
    return ",".join(f"{name}={number}" for name, number in sorted(counts.items())) or "-"


def _format_actor(reason: ReasonView) -> str:
    return f" ({format_names([reason.who])})" if reason.who else ""

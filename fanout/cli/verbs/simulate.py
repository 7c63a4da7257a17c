"""`fanout simulate`: the gates' answers in a stated world, without any repository."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from fanout.api.simulation import HeldView, MomentView, ReasonView, Simulation
from fanout.cli.exit_codes import ExitCode
from fanout.cli.options import with_settings
from fanout.cli.output import list_of, show_value, table, write
from fanout.cli.scenarios import open_scenarios
from fanout.cli.settings import Format, Settings
from fanout.cli.terminal import say
from fanout.errors import FanoutError, InvalidInput
from fanout.gates.wording import listed
from fanout.plan.scenarios.view import simulation

_HEADS = ("STAGE", "CANDIDATE", "GATE", "VERDICT", "RELEASED", "PUBLISHED", "HELD", "NEXT")
_NAMED = 8  # variants that a cell names


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
@with_settings(formats=(Format.TABLE, Format.JSON, Format.YAML))
def command(settings: Settings, paths: Sequence[Path]) -> ExitCode:
    """Say what the gates let through in a stated world.

    A Scenario states variants, records, events and moments; the same engine as in a sweep answers
    for each moment. It names a policy of -f, or states stages of its own. No repository is looked
    at. With -o json a Simulation, or a List of them where there are several scenarios. One with
    errors does not keep the others from being played; the status is 2 then.
    """
    with open_scenarios(settings, paths) as world:
        faults = world.faults(paths)
        for fault in faults:
            say(str(fault), settings.color, fg="red")
        found = world.usable(paths)
        if not found and not faults:
            raise InvalidInput(
                f"no Scenario is in {' and '.join(map(str, paths))}",
                reason="NotFound",
                remedy="check what is given to --scenario",
            )
        played, unplayed = [], 0
        for scenario in found:
            try:
                about, moments = world.play(scenario)
            except FanoutError as error:
                say(str(error), settings.color, fg="red")
                unplayed += 1
                continue
            played.append(simulation(scenario, about.policy.metadata.name, moments))
    _show(played, settings.output, alone=len(found) == 1 and not faults)
    return ExitCode.INVALID if faults or unplayed else ExitCode.OK


def _show(played: Sequence[Simulation], output: Format, *, alone: bool) -> None:
    """`alone`: one scenario was asked for, and no list."""
    if output is Format.TABLE:
        write("\n".join("".join(_lines(one)) for one in played))
        return
    plain = [one.model_dump(mode="json") for one in played]
    if plain or not alone:
        show_value(plain[0] if alone else list_of(plain), output)


def _lines(played: Simulation) -> Iterator[str]:
    yield f"{played.metadata.name} (policy {played.policy})\n"
    for moment in played.moments:
        yield f"\n{moment.at}{'' if moment.next is None else f', next {moment.next}'}\n"
        yield _stages(moment)
        for reason in (*moment.holds, *(it for one in moment.stages for it in one.holds)):
            yield f"  {reason.class_}: {reason.message}{_who(reason)}\n"
        for stage in moment.stages:
            for other in stage.others:
                why = "; ".join(f"{it.message}{_who(it)}" for it in other.reasons)
                yield f"  revision: stage {stage.stage} does not take {other.revision}: {why}\n"
        for one in moment.in_no_stage:
            yield f"  {one.variant}: {one.reasons[0].message if one.reasons else one.state}\n"


def _stages(moment: MomentView) -> str:
    rows = [
        (
            one.stage,
            one.candidate or "-",
            one.gate,
            f"{one.verdict}{', halted' if one.halted else ''}",
            _names(one.released),
            _names(one.published),
            _classes(one.held),
            one.next or "-",
        )
        for one in moment.stages
    ]
    return table(_HEADS, rows)


def _names(names: Sequence[str]) -> str:
    """In their order, and how many there are where they are many."""
    if len(names) <= _NAMED:
        return ",".join(names) or "-"
    return f"{len(names)}: {','.join(names[:2])},…,{names[-1]}"


def _classes(held: Iterable[HeldView]) -> str:
    """How many variants are held by what."""
    counts: dict[str, int] = {}
    for one in held:
        for name in {reason.class_.value for reason in one.reasons}:
            counts[name] = counts.get(name, 0) + 1
    return ",".join(f"{name}={number}" for name, number in sorted(counts.items())) or "-"


def _who(reason: ReasonView) -> str:
    return f" ({listed([reason.who])})" if reason.who else ""

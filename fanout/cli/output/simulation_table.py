"""Table of played scenarios: for each pass, what the gates decided about every stage."""

from collections.abc import Iterable, Iterator, Sequence

from fanout.api.durations import format_instant
from fanout.api.output_views import HeldView, MomentView, ReasonView, Simulation
from fanout.api.view_base import dump_view, label_verdict
from fanout.cli.output.printer import build_list, format_table, print_value, write_stdout
from fanout.cli.settings import OutputFormat
from fanout.gates.gate_wording import format_names

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
    """Return the number of held variants by class of hold."""
    counts: dict[str, int] = {}
    for held_variant in held:
        for name in {reason.class_.value for reason in held_variant.reasons}:
            counts[name] = counts.get(name, 0) + 1
    return ",".join(f"{name}={number}" for name, number in sorted(counts.items())) or "-"


def _format_actor(reason: ReasonView) -> str:
    return f" ({format_names([reason.who])})" if reason.who else ""

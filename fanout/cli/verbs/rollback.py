"""`fanout rollback`: a stage, or variants in it, go back to what they had published before."""

import click

from fanout.cli.effects import returned
from fanout.cli.exit_codes import ExitCode, exit_code_after
from fanout.cli.naming import judged, meant, refuse_no_stage
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import (
    about,
    about_options,
    by_option,
    carried_out,
    decided,
    identity,
    reason_option,
    recorded_line,
)
from fanout.cli.returning import edits_left, goes_back_to, rollback_in_force
from fanout.cli.settings import Format, Settings
from fanout.cli.start import open_program
from fanout.cli.telling import tell_report
from fanout.cli.terminal import say
from fanout.cli.waiting import unpublished
from fanout.gates.records import Override
from fanout.plan.actions import Kind
from fanout.reconcile.report import Report
from fanout.values import replace


@click.command()
@about_options
@click.option(
    "--revision",
    default="",
    help="What to go back to; by default what was published before the present one.",
)
@click.option(
    "--override",
    "overrides",
    multiple=True,
    type=click.Choice([Override.WINDOW.value]),
    help="Also while the window is closed.",
)
@reason_option
@by_option
@with_settings(formats=(Format.TABLE, Format.JSON, Format.YAML))
def command(
    settings: Settings, policy: str, stage: str, by: str | None, **said: tuple[str, ...] | str
) -> ExitCode:
    """Go back to an earlier revision and stay at it.

    Each variant gets the package that it last had of the revision, with what people had changed in
    it by then, as a new commit. Neither the stages before nor soak, checks before publication and
    budget are asked again; windows and suspension are. Nothing newer is drafted until the decision
    is withdrawn (`fanout withdraw`) or another revision is promoted.
    Where a rollback to the revision is in force, nothing is recorded, and it is carried on.
    """
    who = identity(by)
    with open_program(settings) as program:
        item = judged(program, policy)
        refuse_no_stage(item, stage)
        spec = about(item, stage, tuple(said["variants"]))
        those = meant(item, stage, spec.get("variants", ()))
        revision = goes_back_to(program, item, stage, those, str(said["revision"]))
        overrides = list(said["overrides"])
        earlier = rollback_in_force(item, stage, spec.get("variants", ()), revision, overrides)
        spec |= {
            "action": "Rollback",
            "revision": revision,
            "reason": said["reason"],
            "overrides": overrides,
        }
        name, report = carried_out(program, item, spec, who, earlier)
        if _drafted(report):  # nobody has to look at it first: it was in force before
            report = _together(report, program.sweep(decided(item)))
    if settings.output is Format.TABLE:
        further = "; name an older --revision to go further back" if earlier else ""
        write(recorded_line(name, f": back to {revision}{further}", again=bool(earlier)))
    named = spec.get("variants", ())
    effect = returned(report, stage, named, revision)
    tell_report(report, settings, effect.sentence)
    for sentence in edits_left(those, revision):
        say(sentence, settings.color)
    for sentence in unpublished(report, stage, named, revision):
        say(sentence, settings.color)
    return exit_code_after(
        report.unmended_of({case.spec.name for case in those}), effect=effect.any
    )


def _drafted(report: Report) -> bool:
    return any(it.done and it.action.kind is Kind.WRITE_DRAFT for it in report.outcomes)


def _together(first: Report, second: Report) -> Report:
    return replace(second, outcomes=(*first.outcomes, *second.outcomes))

"""`fanout sweep`: one pass that brings drafts up to date, judges the gates and publishes."""

import json
from pathlib import Path

import click

from fanout.cli.completing import complete_policies
from fanout.cli.exit_codes import ExitCode
from fanout.cli.lookup import check_policies
from fanout.cli.options import with_settings
from fanout.cli.settings import Format, Settings
from fanout.cli.start import Program, open_program, warn_about_records
from fanout.cli.telling import tell_faults, tell_report
from fanout.errors import Conflict, InvalidInput, Where
from fanout.reconcile.execute import execute
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import Report


@click.command()
@click.argument("policies", nargs=-1, shell_complete=complete_policies)
@click.option("--drafts-only", is_flag=True, help="Bring drafts up to date and publish nothing.")
@click.option(
    "--plan",
    "saved",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Do what a saved plan says, and only if the world is still as it saw it.",
)
@with_settings(formats=(Format.TABLE, Format.JSON, Format.YAML))
def command(
    settings: Settings, policies: tuple[str, ...], drafts_only: bool, saved: Path | None
) -> ExitCode:
    """Bring drafts up to date, judge all gates, publish what may go.

    It counts as a scheduled sweep. With POLICIES only these (or variants written by hand). Exits
    with 3 when something failed or is held by what a person must mend; with 4, and nothing is done,
    when a saved plan is outdated.
    """
    mode = Mode(
        publish=not drafts_only, only=frozenset(policies) or None, namespace=settings.namespace
    )
    with open_program(settings, read=False) as program:
        resting = program.at_rest(mode) if saved is None else None
        if resting is not None:
            report = Report(resting)
            tell_report(report, settings)
            return ExitCode.SOME_FAILED if report.unmended else ExitCode.OK
        program.check()
        faults = tell_faults(program.declared())
        check_policies(policies, program.declared(), settings.namespace)
        warn_about_records(program, program.declared())
        report = program.sweep(mode) if saved is None else _as_planned(program, mode, saved)
    tell_report(report, settings, faults=faults)
    return ExitCode.SOME_FAILED if report.unmended or faults else ExitCode.OK


def _as_planned(program: Program, mode: Mode, saved: Path) -> Report:
    """Carry out a saved plan: plan again, and refuse unless it comes out the same."""
    actions = _actions(saved)
    observed = program.observe(mode)
    if observed.plan.plain()["actions"] != actions:
        raise Conflict(
            f"the world is not as {saved} saw it",
            reason="PlanOutdated",
            remedy="plan again, review, and sweep with the new plan",
        )
    return execute(program.world, observed)


def _actions(saved: Path) -> object:
    """What a saved plan is to do. Raises InvalidInput for a file that is none."""
    problem, reason = f"{saved} is no plan", "InvalidPlan"
    try:
        found = json.loads(saved.read_text(encoding="utf-8"))
        if isinstance(found, dict) and "actions" in found:
            return found["actions"]
    except FileNotFoundError:
        problem, reason = f"there is no file {saved}", "NotFound"
    except OSError as error:
        problem = f"{saved} cannot be read: {error.strerror}"
    except ValueError:
        pass  # neither JSON nor text
    raise InvalidInput(
        problem,
        reason=reason,
        remedy="make one with `fanout plan --out FILE`",
        where=Where(field="--plan"),
    )

"""`fanout sweep`: one pass that updates drafts, evaluates the gates and publishes."""

import json
from datetime import timedelta
from pathlib import Path

import click

from fanout.cli.input.completion import complete_policies
from fanout.cli.input.name_lookup import read_input
from fanout.cli.input.options import with_settings
from fanout.cli.notification_delivery import build_notifier, notify_of_pass
from fanout.cli.output.pass_output import print_report, report_input_errors
from fanout.cli.process_exit import ExitCode, exit_code_after
from fanout.cli.recording.rollout_waiting import (
    WaitCommand,
    list_unready,
    refuse_with_wait,
    wait_for_rollout,
    wait_option,
)
from fanout.cli.settings import REPORT_FORMATS, Settings
from fanout.cli.startup import Program, open_program, warn_about_records
from fanout.errors import Conflict, ErrorLocation, InvalidInput
from fanout.reconcile.execution.plan_execution import execute_plan, finish_pass
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassMode


@click.command(cls=WaitCommand)
@click.argument("policies", nargs=-1, shell_complete=complete_policies)
@click.option("--drafts-only", is_flag=True, help="Update drafts and publish nothing.")
@click.option(
    "--plan",
    "saved",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Execute the plan that `fanout plan --out FILE` saved, if the plan is not outdated.",
)
@wait_option(
    "Sweep repeatedly until all variants are ready or skipped, until each "
    "remaining variant needs a person, or until the duration ends. Exits with code "
    "4 if a variant is neither ready nor skipped."
)
@with_settings(records=True, formats=REPORT_FORMATS)
def command(
    settings: Settings,
    policies: tuple[str, ...],
    drafts_only: bool,
    saved: Path | None,
    wait_limit: timedelta | None,
) -> ExitCode:
    """Update drafts, evaluate gates, and publish what is allowed.

    Drafts of policies with a schedule are published too, without waiting for the scheduled time.
    POLICIES are names of policies, or names of PackageVariant objects. Without POLICIES, the sweep
    is for all policies and PackageVariant objects. Exits with code 3 if something failed or needs a
    person. If the plan of --plan is outdated, does nothing and exits with code 4.
    """
    excluded = (("--drafts-only", drafts_only), ("--plan", saved), ("--dry-run", settings.dry_run))
    refuse_with_wait(wait_limit, excluded)
    is_reached = True
    mode = PassMode(
        publish=not drafts_only, only=frozenset(policies) or None, namespace=settings.namespace
    )
    with open_program(settings, check=False) as program:
        # A saved plan is compared with a fresh one, so a no-op result of an earlier pass is no
        # answer to it; and notifications begin with what a pass observes.
        notifier = build_notifier(program)
        noop_result = None
        is_single = saved is None and wait_limit is None and not settings.dry_run
        if is_single and not (notifier and notifier.needs_pass):
            noop_result = program.find_noop_result(mode)
        if noop_result is not None:
            report = PassReport(noop_result)
            print_report(report, settings)
            notify_of_pass(program, notifier, report)
            return ExitCode.SOME_FAILED if report.fix_count else ExitCode.OK
        declared, faults = read_input(program, policies)
        warn_about_records(program, declared)
        report = program.sweep(mode) if saved is None else _execute_saved(program, mode, saved)
        if wait_limit is not None:

            def sweep_again() -> PassReport:
                nonlocal declared, faults
                before, declared = declared, program.check_input()
                if declared.faults != before.faults:
                    faults = report_input_errors(declared, settings.namespace)
                report = program.sweep(mode)
                notify_of_pass(program, notifier, report)
                return report

            report, is_reached = wait_for_rollout(
                report, sweep_again, list_unready, wait_limit, settings
            )
    print_report(report, settings, error_count=faults)
    notify_of_pass(program, notifier, report)
    return exit_code_after(report.fix_count + faults, effect=is_reached)


def _execute_saved(program: Program, mode: PassMode, saved: Path) -> PassReport:
    """Execute a saved plan. Raises Conflict unless planning again gives the same actions."""
    problem, reason, plan = f"{saved} is not a plan", "InvalidPlan", None
    try:
        plan = json.loads(saved.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem, reason = f"there is no file {saved}", "NotFound"
    except OSError as error:
        problem = f"{saved} cannot be read: {error.strerror}"
    except ValueError:
        pass  # neither JSON nor text
    if not isinstance(plan, dict) or "actions" not in plan:
        where, remedy = ErrorLocation(field="--plan"), "run `fanout plan --out FILE`"
        raise InvalidInput(problem, reason=reason, remedy=remedy, where=where)
    observed = program.observe(mode)
    if observed.plan.as_json()["actions"] != plan["actions"]:
        raise Conflict(
            f"the state changed since {saved} was written",
            reason="PlanOutdated",
            remedy="plan again, review, and sweep with the new plan",
        )
    if program.settings.dry_run:
        return PassReport(observed)
    report = execute_plan(program.world, observed)
    return finish_pass(program.world, program.reconciler, program.read_declared(), mode, report)

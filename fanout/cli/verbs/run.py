"""`fanout run`: watch the files, sweep on schedule, and stop at a safe point."""

import click

from fanout.cli.continuous_operation import (
    build_dependencies,
    configure_log,
    hooks_option,
    interval_option,
    listen_option,
    operate,
    parse_operation,
)
from fanout.cli.input.options import PASS_OPTIONS, VerbCommand, with_settings
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import Settings
from fanout.cli.startup import open_program, warn_about_records
from fanout.controller.loop_health import LoopObserver


@click.command(cls=VerbCommand)
@interval_option
@hooks_option
@listen_option
@with_settings([name for name in PASS_OPTIONS if name != "new_records"])
def command(settings: Settings, interval: str, hooks: str | None, listen: str | None) -> ExitCode:
    """Run continuously and sweep on schedule.

    Drafts are always kept up to date. If a PromotionPolicy sets a schedule for a policy, the drafts
    of the policy are published at the scheduled times. Drafts of other policies are published as
    soon as their gates open. If scheduled sweeps were missed while no process ran, one sweep is
    done at the start. SIGTERM and SIGINT stop the process after the current pass. A second signal
    stops the process at once.
    """
    operation = parse_operation(settings, interval, hooks, listen)
    with open_program(settings, long_running=True) as program:
        warn_about_records(program, program.read_declared())
        configure_log(program)
        observers: list[LoopObserver] = []
        operate(program, operation, build_dependencies(program, observers), observers)
    return ExitCode.OK

"""`fanout forecast`: print the earliest time at which each stage can have a revision."""

from collections.abc import Sequence
from datetime import timedelta

import click

from fanout.api.durations import parse_duration
from fanout.api.field_errors import InvalidValue
from fanout.api.output_views import ForecastView, ForecastViewSpec
from fanout.api.table_column import TableColumn
from fanout.api.view_base import ViewMeta, dump_view
from fanout.cli.declarations import build_not_found
from fanout.cli.input.completion import complete_policies, complete_revisions
from fanout.cli.input.name_lookup import read_input
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, with_settings
from fanout.cli.output.printer import print_objects
from fanout.cli.process_exit import ExitCode, invalid_setting, not_found
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.startup import open_program
from fanout.controller.sweep_schedule import build_timetable
from fanout.gates.forecast import forecast_stages
from fanout.reconcile.pass_scope import PassMode, PassSubject
from fanout.values import replace

_COLUMNS = (
    TableColumn("STAGE", "spec.stage"),
    TableColumn("REVISION", "spec.revision"),
    TableColumn("BEGINS", "status.begins"),
    TableColumn("PASSES", "status.passes"),
    TableColumn(
        "WAITS FOR", lambda view: "; ".join(it["message"] for it in view["status"]["holds"])
    ),
    TableColumn("IF", lambda view: "; ".join(view["status"]["assumptions"])),
)
_SECOND = timedelta(seconds=1)


@click.command(cls=VerbCommand)
@click.argument("policy", shell_complete=complete_policies)
@click.option(
    "--revision",
    shell_complete=complete_revisions,
    help="Upstream revision to forecast.  [default: the newest revision that the policy allows]",
)
@click.option(
    "--takes",
    multiple=True,
    metavar="STAGE=DURATION",
    help="Time from publication until a variant of the stage is ready; can be "
    "repeated.  [default: median of the ready variants]",
)
@with_settings(READ_OPTIONS, formats=tuple(OutputFormat))
def command(
    settings: Settings, policy: str, revision: str | None, takes: Sequence[str]
) -> ExitCode:
    """Print the earliest time at which a revision can pass each stage.

    Soak times, windows, sweeps and the limits of `rollout` are taken into account. Steps that need
    a person are listed, and the forecast assumes that they are done immediately. For the time from
    publication until a variant is ready, the forecast uses the median of the ready variants of the
    stage. Exits with code 3 if a stage stays blocked even when all listed steps are done, for
    example because the stage is suspended.
    """
    with open_program(settings, check=False) as program:
        _, faults = read_input(program, [policy])
        mode = PassMode(only=frozenset([policy]), namespace=settings.namespace)
        policies = program.observe(mode).policies
        if len(policies) > 1:
            namespaces = ", ".join(it.resolved_policy.namespace for it in policies)
            raise not_found(
                f"policy {policy} is in several namespaces: {namespaces}",
                "choose one with --namespace",
            )
        item = policies[0]
        if item.error is not None:
            raise item.error
        facts = item.facts
        revisions = facts.revisions if facts is not None else ()
        revision = revision or next(reversed(revisions), "")
        if revision not in revisions:
            raise build_not_found("revision", [revision or "at all"], revisions)
        assert facts is not None, "a policy without a problem was judged"
        subject = PassSubject(item.resolved_policy.namespace, policy)
        stages = [rule.name for rule in facts.stages]
        durations: dict[str, timedelta] = {}
        for text in takes:
            stage, _, duration = text.partition("=")
            if stage not in stages:
                raise build_not_found("stage", [stage], stages)
            try:
                durations[stage] = parse_duration(duration)
            except InvalidValue as error:
                remedy = "write it as STAGE=DURATION, like dev=10m"
                raise invalid_setting(f"{text}: {error.problem}", remedy, "--takes") from None
        # Automation publishes whenever a gate opens, or in scheduled sweeps only. Schedules answer
        # with a time after the given one; a sweep at that very instant counts as well.
        table = build_timetable(program.read_declared())
        schedules = [timed for timed in table.schedules if subject in timed.subjects]
        is_scheduled = bool(schedules) and subject in table.sweep_only
        forecasts = forecast_stages(
            facts,
            revision,
            lambda at: min(it.next_start(at - _SECOND) for it in schedules) if is_scheduled else at,
            durations,
        )
    views = []
    policy_name = policy if item.resolved_policy.upstream_policy is not None else ""
    for stage, forecast in forecasts.items():  # "" is the stage of a variant without a policy
        holds = tuple(replace(hold, since=None, until=None) for hold in forecast.holds)
        view = ForecastView(
            metadata=ViewMeta(f"{policy}/{stage}" if stage else policy, subject.namespace),
            spec=ForecastViewSpec(policy_name, stage, revision),
            status=replace(forecast, holds=holds),
        )
        views.append(dump_view(view))
    print_objects(views, _COLUMNS, settings)
    if faults:
        return ExitCode.SOME_FAILED
    reached = all(it.passes is not None for it in forecasts.values())
    return ExitCode.OK if reached else ExitCode.SOME_FAILED

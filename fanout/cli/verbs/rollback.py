"""`fanout rollback`: return a stage or variants to an earlier revision."""

import click

from fanout.api.gate_vocabulary import OverridableGate
from fanout.cli.input.name_lookup import find_evaluated_policy, refuse_no_stage, select_cases
from fanout.cli.input.options import with_settings
from fanout.cli.output.pass_output import print_report
from fanout.cli.output.printer import write_stdout
from fanout.cli.process_exit import ExitCode, exit_code_after
from fanout.cli.recording.decision_effect import report_unpublished, rollback_effect
from fanout.cli.recording.record_options import (
    build_subject,
    by_option,
    decision_mode,
    format_recorded,
    reason_option,
    record_and_run,
    resolve_author,
    subject_options,
)
from fanout.cli.recording.rollback_target import (
    find_active_rollback,
    find_rollback_revision,
    report_lost_edits,
)
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.startup import open_program
from fanout.cli.terminal import print_message
from fanout.plan.actions import ActionKind
from fanout.reconcile.pass_results import PassReport
from fanout.values import replace


@click.command()
@subject_options
@click.option(
    "--revision",
    default="",
    help="What to go back to; by default what was published before the present one.",
)
@click.option(
    "--override",
    "overrides",
    multiple=True,
    type=click.Choice([OverridableGate.WINDOW.value]),
    help="Also while the window is closed.",
)
@reason_option
@by_option
@with_settings(formats=(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML))
def command(
    settings: Settings, policy: str, stage: str, by: str | None, **options: tuple[str, ...] | str
) -> ExitCode:
    """Go back to an earlier revision and stay at it.

    Each variant gets the package that it last had of the revision, with what people had changed in
    it by then, as a new commit. Neither the stages before nor soak, checks before publication and
    budget are asked again; windows and suspension are. Nothing newer is drafted until the decision
    is withdrawn (`fanout withdraw`) or another revision is promoted.
    Where a rollback to the revision is in force, nothing is recorded, and it is carried on.
    """
    author = resolve_author(by)
    with open_program(settings) as program:
        item = find_evaluated_policy(program, policy)
        refuse_no_stage(item, stage)
        spec = build_subject(item, stage, tuple(options["variants"]))
        cases = select_cases(item, stage, spec.get("variants", ()))
        revision = find_rollback_revision(program, item, stage, cases, str(options["revision"]))
        overrides = list(options["overrides"])
        earlier = find_active_rollback(item, stage, spec.get("variants", ()), revision, overrides)
        spec |= {
            "action": "Rollback",
            "revision": revision,
            "reason": options["reason"],
            "overrides": overrides,
        }
        name, report = record_and_run(program, item, spec, author, earlier)
        # A draft is published in the pass after the one that wrote it. No review is needed in
        # between, because the package was published before.
        if _has_drafted(report):
            report = _join_reports(report, program.sweep(decision_mode(item)))
    if settings.output is OutputFormat.TABLE:
        hint = "; name an older --revision to go further back" if earlier else ""
        write_stdout(
            format_recorded(name, f": back to {revision}{hint}", is_repeated=bool(earlier))
        )
    names = spec.get("variants", ())
    effect = rollback_effect(report, stage, names, revision)
    print_report(report, settings, effect.sentence)
    for sentence in report_lost_edits(cases, revision):
        print_message(sentence, settings.color)
    for sentence in report_unpublished(report, stage, names, revision):
        print_message(sentence, settings.color)
    return exit_code_after(
        report.fix_count_of({case.spec.name for case in cases}), effect=effect.happened
    )


def _has_drafted(report: PassReport) -> bool:
    return any(it.is_done and it.action.kind is ActionKind.WRITE_DRAFT for it in report.outcomes)


def _join_reports(first: PassReport, second: PassReport) -> PassReport:
    return replace(second, outcomes=(*first.outcomes, *second.outcomes))

"""`fanout rollback`: return a stage or variants to an earlier revision."""

import sys

import click

from fanout.api.gate_vocabulary import OverridableGate
from fanout.api.text_fields import pluralize
from fanout.cli.input.name_lookup import select_variants
from fanout.cli.process_exit import ExitCode, exit_code_after, invalid_setting
from fanout.cli.recording.decision_effect import DecisionSubject
from fanout.cli.recording.record_session import (
    RecordRequest,
    open_record_session,
    reason_option,
    revision_option,
    subject_options,
    with_request,
)
from fanout.cli.recording.rollout_waiting import (
    WaitCommand,
    refuse_with_wait,
    wait_option,
    wait_until_published,
)
from fanout.cli.settings import REPORT_FORMATS
from fanout.cli.terminal import escape_control
from fanout.errors import InvalidInput
from fanout.gates.gate_wording import format_names
from fanout.plan.actions import ActionKind
from fanout.reconcile.history.rollback_selection import (
    RollbackSubject,
    find_active_rollback,
    find_rollback_revision,
)
from fanout.values import replace


@click.command(cls=WaitCommand)
@subject_options
@revision_option("Revision to return to.  [default: the revision published before the current one]")
@click.option(
    "--override",
    "overrides",
    multiple=True,
    type=click.Choice([OverridableGate.WINDOW.value]),
    help="Gate to override. With `window`, publishes even if a window is closed.",
)
@click.option(
    "-y", "--yes", is_flag=True, help="Do not ask for confirmation; required without a terminal."
)
@wait_option()
@reason_option
@with_request(*REPORT_FORMATS)
def command(
    request: RecordRequest, revision: str, overrides: tuple[str, ...], yes: bool
) -> ExitCode:
    """Return to an earlier revision and stay at it.

    For each variant, a new commit restores the package as it was last published at the revision.
    The downstream edits of that time are included. Windows and suspensions apply to a rollback. The
    order of the stages (`after`), soak times, checks before publication and `rollout` limits do not
    apply. The rollback is recorded as a decision. While this decision is active, newer revisions
    are not drafted. To end the rollback, withdraw the decision with `fanout withdraw`, or promote
    another revision with `fanout promote --revision`. If a rollback to the revision is already
    active, the command continues this rollback and records nothing.
    """
    settings = request.settings
    refuse_with_wait(request.wait_limit, [("--dry-run", settings.dry_run)])
    is_confirmed = yes or settings.dry_run
    if not is_confirmed and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise invalid_setting(
            "confirmation is required, and there is no terminal",
            "add --yes, or use --dry-run to see the effect",
            "--yes",
        )
    with open_record_session(request) as session:
        item, stage = session.item, request.stage
        spec = session.build_subject(needs_stage=True)
        names = spec.get("variants", ())
        variants = select_variants(item, stage, names)
        subject = RollbackSubject(item.resolved_policy, stage, item.facts, tuple(item.revisions))
        revision = find_rollback_revision(session.program.world.git, subject, variants, revision)
        decision = DecisionSubject(item, stage, revision, variants, names)
        earlier = find_active_rollback(subject, names, revision, overrides)
        edited = [
            f"{it.observed.package_location.repository}:{it.observed.package_location.path}"
            for it in variants
            if it.observed.published is not None
            and it.observed.published.revision != revision
            and it.observed.reverted_publication is None
            and it.observed.package_state.tree not in (None, it.observed.published.tree)
        ]
        subjects = f"{pluralize(len(edited), 'package')} edited since publication"
        remedy = f"{revision} does not have these edits; the branch's history keeps them"
        lost_edits = [f"{subjects} ({format_names(edited)}): {remedy}"] if edited else []
        if not earlier and not is_confirmed:
            preview = [f"{pluralize(len(variants), 'variant')} of {subject.title}:"]
            for variant in variants:
                published = variant.observed.published
                present = published.revision if published is not None else "nothing"
                change = "stays" if present == revision else f"-> {revision}"
                preview.append(f"  {variant.spec.name}: {present} {change}")
            # Shown in spite of --quiet, because a person is to answer.
            for line in (*preview, *lost_edits):
                click.echo(escape_control(line), err=True)
            if not click.confirm(f"Roll back to {revision}?", default=False, err=True):
                raise InvalidInput("not confirmed; nothing was recorded", reason="NothingToDo")
        spec |= {
            "action": "Rollback",
            "revision": revision,
            "reason": request.reason,
            "overrides": list(overrides),
        }
        name, report = session.record_and_run(spec, earlier)
        # A draft is published in the pass after the one that wrote it. No review is needed in
        # between, because the package was published before.
        has_drafted = any(
            it.is_done and it.action.kind is ActionKind.WRITE_DRAFT for it in report.outcomes
        )
        if has_drafted and not settings.plans_only:
            second = session.run_pass()
            report = replace(second, outcomes=(*report.outcomes, *second.outcomes))
        covered = {variant.spec.name for variant in variants}
        report, is_reached = wait_until_published(session, report, covered, revision)
    hint = "; name an older --revision to go further back" if earlier else ""
    message, has_rolled_back = decision.find_rollback_effect(report)
    # A plan ends before the second pass, which publishes the drafts.
    will_publish = settings.plans_only and has_drafted
    unpublished = () if will_publish else decision.report_unpublished(report)
    session.print_decision(
        name,
        f": back to {revision}{hint}",
        report,
        message,
        (*lost_edits, *unpublished),
        is_repeated=bool(earlier),
    )
    has_effect = (has_rolled_back or will_publish) and is_reached
    return exit_code_after(report.fix_count_of(covered), effect=has_effect)

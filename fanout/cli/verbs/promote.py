"""`fanout promote`: publish in a stage by a person's decision, if its gates are open."""

import click

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import OverridableGate
from fanout.api.record_objects import is_expired
from fanout.cli.input.name_lookup import require_candidate, select_variants
from fanout.cli.output.pass_output import print_report
from fanout.cli.process_exit import ExitCode, exit_code_after, invalid_setting, not_found
from fanout.cli.recording.decision_effect import DecisionSubject
from fanout.cli.recording.eligibility import select_decided
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
from fanout.cli.settings import REPORT_FORMATS, parse_instant_option
from fanout.errors import ErrorLocation, InvalidInput
from fanout.reconcile.pass_results import PassPlan, PassReport


@click.command(cls=WaitCommand)
@subject_options
@revision_option("Revision to publish.  [default: the candidate]")
@click.option(
    "--override",
    "overrides",
    multiple=True,
    type=click.Choice([item.value for item in OverridableGate]),
    help="Gate to override; can be repeated.",
)
@click.option(
    "--accept-conflicts",
    is_flag=True,
    help="Publish the variants of --variant even if they have undecided merge "
    "conflicts. The values in their drafts are published.",
)
@wait_option()
@reason_option
@click.option("--expires", default="", metavar="TIME", help="Time at which the decision expires.")
@with_request(*REPORT_FORMATS)
def command(
    request: RecordRequest,
    revision: str,
    overrides: tuple[str, ...],
    accept_conflicts: bool,
    expires: str,
) -> ExitCode:
    """Publish drafts of a stage manually, if their gates are open.

    Records a decision to publish the drafts as if automatic promotion were on for the stage. The
    decision names the drafts that it covers. The decision is active until it is applied or
    withdrawn (`fanout withdraw`), or expires. Drafts whose gates are closed are published by a
    later sweep, when their gates are open. A draft that is rewritten needs a new decision.
    --override opens only the named gates. A decision that overrides `after` covers all drafts of
    the revision, also those written later. If there is nothing to publish, nothing is recorded.

    Variants with undecided merge conflicts are left out. To include such variants, name them with
    --variant, and set --accept-conflicts.
    """
    settings = request.settings
    refuse_with_wait(request.wait_limit, [("--dry-run", settings.dry_run)])
    until = parse_instant_option(expires, "--expires") if expires else None
    if until is not None and is_expired(until, settings.now()):
        raise InvalidInput(
            f"{expires} is in the past",
            reason="InvalidTime",
            remedy="use a future time",
            where=ErrorLocation(field="--expires"),
        )
    with open_record_session(request) as session:
        item, stage = session.item, request.stage
        spec = session.build_subject(needs_stage=True)
        candidate = revision or require_candidate(item, stage)
        # A decision about another revision would wait forever.
        if revision and revision not in item.revisions:
            if revision in item.unusable_tags:
                raise not_found(item.unusable_tags[revision], "choose another revision")
            allowed = ", ".join(item.revisions)
            allowed = f"there are: {allowed}" if allowed else "there is none"
            raise not_found(
                f"{revision} is not a revision of {item.title}; {allowed}",
                "choose an allowed revision",
            )
        # A variant written by hand is named by the command's argument.
        is_named = bool(request.variants) or item.resolved_policy.upstream_policy is None
        if accept_conflicts and not is_named:
            raise invalid_setting(
                "--accept-conflicts requires --variant",
                "use --variant for each variant whose draft you have reviewed",
                "--accept-conflicts",
            )
        names = spec.get("variants", ())
        requested = select_variants(item, stage, names)
        selection = select_decided(item, requested, "published", accept=accept_conflicts)
        subject = DecisionSubject(item, stage, candidate, selection.variants, names)
        trees, covers_others = subject.select_drafts(overrides)
        # An override of verification is also about the published revision, which needs no draft.
        needs_draft, idle = OverridableGate.VERIFICATION not in overrides, ""
        if needs_draft and not trees:
            idle = subject.find_nothing_to_publish(is_about_drafts=not covers_others)
        if idle:
            print_report(PassReport(PassPlan(now=settings.now(), policies=(item,))), settings)
            session.print_notes([idle])
            return exit_code_after(int(bool(selection.note)), effect=bool(selection.variants))
        gates = [OverridableGate(it) for it in overrides]
        session.print_notes([subject.refuse_unreachable(gates, trees)])
        spec |= {
            "action": "Publish",
            "revision": candidate,
            "trees": trees,
            "acceptConflicts": selection.has_conflicts,
            "reason": request.reason,
            "overrides": list(overrides),
            "expires": format_instant(until) if until is not None else "",
        }
        earlier = session.find_equal_decision(spec)
        name, report = session.record_and_run(spec, earlier.name if earlier else "")
        covered = [variant.spec.name for variant in selection.variants]
        report, is_reached = wait_until_published(session, report, covered, candidate)
    covered_trees = () if covers_others else trees
    if trees or needs_draft:
        effect, happened = subject.find_promotion_effect(report, covered_trees, earlier)
    else:
        effect, happened = subject.compare_evaluations(report, covered, earlier)
    undrafted = subject.report_undrafted(covered_trees)
    notes = (*undrafted, *subject.report_unpublished(report), selection.note)
    end, is_repeated = f" for {candidate}", earlier is not None
    session.print_decision(name, end, report, effect, notes, is_repeated=is_repeated)
    # Variants that were left out need a person too, so all that were requested count.
    fix_count = report.fix_count_of([variant.spec.name for variant in requested])
    return exit_code_after(fix_count, effect=happened and is_reached)

"""`fanout promote`: publish in a stage by a person's decision, through the same gates."""

from collections.abc import Iterator, Sequence

import click

from fanout.api.gate_vocabulary import OverridableGate
from fanout.cli.input.name_lookup import (
    find_evaluated_policy,
    refuse_no_stage,
    require_candidate,
    select_variants,
)
from fanout.cli.input.options import with_settings
from fanout.cli.output.pass_output import print_report
from fanout.cli.output.printer import write_stdout
from fanout.cli.process_exit import ExitCode, exit_code_after
from fanout.cli.recording.decision_effect import (
    compare_evaluations,
    find_nothing_to_publish,
    promotion_effect,
    refuse_unreachable,
    report_undrafted,
    report_unpublished,
)
from fanout.cli.recording.record_options import (
    build_subject,
    by_option,
    current_trees,
    evaluate_without,
    find_equal_decision,
    format_recorded,
    reason_option,
    record_and_run,
    resolve_author,
    subject_options,
)
from fanout.cli.recording.undecided_conflicts import refuse_unnamed, select_decided
from fanout.cli.settings import OutputFormat, Settings, parse_instant
from fanout.cli.startup import open_program
from fanout.cli.terminal import print_message
from fanout.errors import ErrorLocation, InvalidInput
from fanout.plan.records.policy_status import format_instant
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PassPlan, PassReport, PolicyResult


@click.command()
@subject_options
@click.option("--revision", default="", help="Only this revision; by default the candidate.")
@click.option(
    "--override",
    "overrides",
    multiple=True,
    type=click.Choice([item.value for item in OverridableGate]),
    help="A gate to lift, and no other.",
)
@click.option(
    "--accept-conflicts",
    is_flag=True,
    help="Publish the drafts of the variants named with --variant as they stand, undecided merge"
    " conflicts included.",
)
@reason_option
@click.option("--expires", default="", metavar="TIME", help="Until when the decision stands.")
@by_option
@with_settings(formats=(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML))
def command(
    settings: Settings,
    policy: str,
    stage: str,
    by: str | None,
    accept_conflicts: bool,
    **options: tuple[str, ...] | str,
) -> ExitCode:
    """Publish in a stage by hand, through the same gates.

    What automation would do there, if it were switched on. The decision is recorded, with the
    drafts that it is about, and stands until it is carried out, withdrawn (`fanout withdraw`) or
    expired; what its gates still hold is published by a later sweep. A draft that is rewritten
    asks anew. Overrides lift only what they name. Where there is nothing to publish, nothing is
    recorded. Variants whose drafts have undecided merge conflicts are left out, unless they are
    named and --accept-conflicts is given.
    """
    author = resolve_author(by)
    expires = _parse_expiry(str(options["expires"]), settings)
    with open_program(settings) as program:
        item = find_evaluated_policy(program, policy)
        refuse_no_stage(item, stage)
        spec = build_subject(item, stage, tuple(options["variants"]))
        candidate = _require_known(item, str(options["revision"])) or require_candidate(item, stage)
        if accept_conflicts:
            refuse_unnamed(item, options["variants"])
        names = spec.get("variants", ())
        selection = select_decided(
            item, select_variants(item, stage, names), "published", accept=accept_conflicts
        )
        variants = selection.variants
        trees = current_trees(variants, candidate)
        overrides_verification = OverridableGate.VERIFICATION.value in options["overrides"]
        # An override of verification is also about the published revision, which needs no draft.
        no_effect_reason = (
            ""
            if trees or overrides_verification
            else find_nothing_to_publish(item, stage, variants, candidate)
        )
        if no_effect_reason:
            print_report(PassReport(PassPlan(now=settings.now(), policies=(item,))), settings)
            print_message(no_effect_reason, settings.color)
            return exit_code_after(int(bool(selection.note)), effect=bool(variants))
        refuse_unreachable(
            item, stage, names, candidate, overrides_verification=overrides_verification
        )
        spec |= {
            "action": "Publish",
            "revision": candidate,
            "trees": trees,
            "acceptConflicts": selection.has_conflicts,
            "reason": options["reason"],
            "overrides": list(options["overrides"]),
            "expires": expires,
        }
        earlier = find_equal_decision(item, spec, author, settings.now())
        earlier_name = earlier.name if earlier else ""
        name, report = record_and_run(program, item, spec, author, earlier_name)
    if settings.output is OutputFormat.TABLE:
        write_stdout(format_recorded(name, f" for {candidate}", is_repeated=bool(earlier_name)))
    # Outside the program: what follows reads only the report of the pass.
    effect = promotion_effect(report, stage, names, candidate, trees, earlier)
    if overrides_verification and not trees:
        effect = compare_evaluations(
            evaluate_without(item, earlier), report, stage, candidate, _names_of(variants)
        )
    print_report(report, settings, effect.sentence)
    for sentence in (
        *_format_remaining(item, report, stage, variants, trees, candidate),
        selection.note,
    ):
        if sentence:
            print_message(sentence, settings.color)
    # Variants that were left out need a person too, so all that were requested count.
    stage_names = _names_of(select_variants(item, stage, names))
    return exit_code_after(report.fix_count_of(stage_names), effect=effect.happened)


def _format_remaining(
    item: PolicyResult,
    report: PassReport,
    stage: str,
    variants: Sequence[RenderedVariant],
    trees: Sequence[str],
    candidate: str,
) -> Iterator[str]:
    """Yield variants that the promotion leaves out, or did not publish, with reasons."""
    if trees:
        yield from report_undrafted(item, variants, trees, candidate)
    yield from report_unpublished(report, stage, _names_of(variants), candidate)


def _names_of(variants: Sequence[RenderedVariant]) -> list[str]:
    return [variant.spec.name for variant in variants]


def _require_known(item: PolicyResult, revision: str) -> str:
    """Return the revision if the policy has it.

    A decision about another would wait forever.
    """
    if revision and revision not in item.revisions:
        allowed = f"there are: {', '.join(item.revisions)}" if item.revisions else "there is none"
        raise InvalidInput(
            f"{revision} is not a revision of {item.title}; {allowed}",
            reason="NotFound",
            remedy="choose one that the policy's rule allows",
        )
    return revision


def _parse_expiry(text: str, settings: Settings) -> str:
    if not text:
        return ""
    until = parse_instant(text, "--expires")
    if until <= settings.now():
        raise InvalidInput(
            f"{text} is over",
            reason="InvalidTime",
            remedy="name a time to come",
            where=ErrorLocation(field="--expires"),
        )
    return format_instant(until)

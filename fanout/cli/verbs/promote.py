"""`fanout promote`: a person says publish, and it goes through the same gates."""

from collections.abc import Iterator, Sequence

import click

from fanout.cli.conflicted import refuse_unnamed, select
from fanout.cli.effects import changed, promoted
from fanout.cli.exit_codes import ExitCode, exit_code_after
from fanout.cli.naming import candidate_of, judged, meant, refuse_no_stage
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import (
    about,
    about_options,
    by_option,
    carried_out,
    identity,
    reason_option,
    recorded_line,
    trees_to_see,
)
from fanout.cli.repeated import before, decided_before
from fanout.cli.settings import Format, Settings, parse_instant
from fanout.cli.start import open_program
from fanout.cli.telling import tell_report
from fanout.cli.terminal import say
from fanout.cli.waiting import nothing_to_publish, refuse_unreachable, unpublished, unseen
from fanout.errors import InvalidInput, Where
from fanout.gates.records import Override
from fanout.plan.cases import Case
from fanout.plan.status import written
from fanout.reconcile.report import Observed, PolicyPass, Report


@click.command()
@about_options
@click.option("--revision", default="", help="Only this revision; by default the candidate.")
@click.option(
    "--override",
    "overrides",
    multiple=True,
    type=click.Choice([item.value for item in Override]),
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
@with_settings(formats=(Format.TABLE, Format.JSON, Format.YAML))
def command(
    settings: Settings,
    policy: str,
    stage: str,
    by: str | None,
    accept_conflicts: bool,
    **said: tuple[str, ...] | str,
) -> ExitCode:
    """Publish in a stage by hand, through the same gates.

    What automation would do there, if it were switched on. The decision is recorded, with the
    drafts that it is about, and stands until it is carried out, withdrawn (`fanout withdraw`) or
    expired; what its gates still hold is published by a later sweep. A draft that is rewritten
    asks anew. Overrides lift only what they name. Where there is nothing to publish, nothing is
    recorded. Variants whose drafts have undecided merge conflicts are left out, unless they are
    named and --accept-conflicts is given.
    """
    who = identity(by)
    expires = _expires(str(said["expires"]), settings)
    with open_program(settings) as program:
        item = judged(program, policy)
        refuse_no_stage(item, stage)
        spec = about(item, stage, tuple(said["variants"]))
        candidate = _known(item, str(said["revision"])) or candidate_of(item, stage)
        if accept_conflicts:
            refuse_unnamed(item, said["variants"])
        named = spec.get("variants", ())
        chosen = select(item, meant(item, stage, named), "published", accept=accept_conflicts)
        those = chosen.cases
        trees = trees_to_see(those, candidate)
        lifts = Override.VERIFICATION.value in said["overrides"]
        idle = "" if trees or lifts else nothing_to_publish(item, stage, those, candidate)
        if idle:
            tell_report(Report(Observed(settings.now(), (item,))), settings)
            say(idle, settings.color)
            return exit_code_after(int(bool(chosen.note)), effect=bool(those))
        refuse_unreachable(item, stage, named, candidate, lifts=lifts)
        spec |= {
            "action": "Publish",
            "revision": candidate,
            "trees": trees,
            "acceptConflicts": chosen.conflicted,
            "reason": said["reason"],
            "overrides": list(said["overrides"]),
            "expires": expires,
        }
        earlier = decided_before(item, spec, who, settings.now())
        again = earlier.name if earlier else ""
        name, report = carried_out(program, item, spec, who, again)
    if settings.output is Format.TABLE:
        write(recorded_line(name, f" for {candidate}", again=bool(again)))
    effect = promoted(report, stage, named, candidate, trees, earlier)
    if lifts and not trees:
        effect = changed(before(item, earlier), report, stage, candidate, _names(those))
    tell_report(report, settings, effect.sentence)
    for sentence in (*_left(item, report, stage, those, trees, candidate), chosen.note):
        if sentence:
            say(sentence, settings.color)
    whom = _names(meant(item, stage, named))  # those that are left out are to be mended
    return exit_code_after(report.unmended_of(whom), effect=effect.any)


def _left(
    item: PolicyPass,
    report: Report,
    stage: str,
    those: Sequence[Case],
    trees: Sequence[str],
    candidate: str,
) -> Iterator[str]:
    """Which variants the promotion is not about, and which are not published yet, and why."""
    if trees:
        yield from unseen(item, those, trees, candidate)
    yield from unpublished(report, stage, _names(those), candidate)


def _names(cases: Sequence[Case]) -> list[str]:
    return [case.spec.name for case in cases]


def _known(item: PolicyPass, revision: str) -> str:
    """The revision, if there is one. A decision about another would wait for ever."""
    if revision and revision not in item.revisions:
        there = f"there are: {', '.join(item.revisions)}" if item.revisions else "there is none"
        raise InvalidInput(
            f"{revision} is not a revision of {item.title}; {there}",
            reason="NotFound",
            remedy="choose one that the policy's rule allows",
        )
    return revision


def _expires(text: str, settings: Settings) -> str:
    if not text:
        return ""
    until = parse_instant(text, "--expires")
    if until <= settings.now():
        raise InvalidInput(
            f"{text} is over",
            reason="InvalidTime",
            remedy="name a time to come",
            where=Where(field="--expires"),
        )
    return written(until)

"""`fanout report`: the answer to a check, as Evidence."""

import click

from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import about, by_option, identity, judged, record
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.errors import InvalidInput
from fanout.reconcile.report import PolicyPass


@click.command()
@click.argument("policy")
@click.option("--stage", default="", help="The stage that was checked.")
@click.option("--variant", "variants", multiple=True, help="Only these variants of the stage.")
@click.option("--check", required=True, help="The check's name.")
@click.option(
    "--status", required=True, type=click.Choice(["passed", "failed", "pending"]), help="Answer."
)
@click.option("--revision", default="", help="The revision that was checked.")
@click.option("--commit", default="", help="The downstream commit that was checked.")
@click.option("--link", default="", help="Where people can read more.")
@by_option
@with_settings()
def command(
    settings: Settings,
    policy: str,
    stage: str,
    variants: tuple[str, ...],
    by: str | None,
    **said: str,
) -> None:
    """Record evidence: the answer to a check.

    Exactly one of --revision and --commit says what the answer is about; it must be published.
    """
    if bool(said["revision"]) == bool(said["commit"]):
        raise InvalidInput(
            "it is not clear what the answer is about",
            reason="InvalidSetting",
            remedy="give exactly one of --revision and --commit",
        )
    who = identity(by)
    with open_program(settings) as program:
        item = judged(program, policy)
        spec = about(item, stage, variants)
        _refuse_unknown(item, stage, said["check"])
        if said["revision"]:
            _refuse_unpublished(item, stage, spec.get("variants", ()), said["revision"])
        spec |= {name: value for name, value in said.items() if value}
        name = record(program, item, "Evidence", spec, who)
    write(f"evidence.fanout.dev/{name} recorded\n")


def _refuse_unknown(item: PolicyPass, stage: str, check: str) -> None:
    rules = item.facts.stages if item.facts else ()
    checks = [name for rule in rules if rule.name == stage for name in rule.verification]
    if check not in checks:
        known = f"it has: {', '.join(checks)}" if checks else "it has none"
        raise InvalidInput(
            f"stage {stage or '(none)'} of {item.title} has no check {check}; {known}",
            reason="NotFound",
            remedy="name a check of the stage's verification",
        )


def _refuse_unpublished(
    item: PolicyPass, stage: str, variants: tuple[str, ...], revision: str
) -> None:
    """Evidence about another revision than the published one would never count. (Design §6.)"""
    those = [
        case
        for case in item.cases
        if case.spec.stage == stage and (not variants or case.spec.name in variants)
    ]
    published = sorted({case.published.revision for case in those if case.published})
    if revision not in published:
        what = f"published there: {', '.join(published)}" if published else "nothing is published"
        raise InvalidInput(
            f"{revision} is not published in stage {stage} of {item.title}; {what}",
            reason="WrongRevision",
            remedy="report on what is published, after it is",
        )

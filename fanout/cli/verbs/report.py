"""`fanout report`: the answer to a check, as Evidence."""

import re
from collections.abc import Sequence

import click

from fanout.api.texts import LINK
from fanout.cli.commits import checked_commit
from fanout.cli.naming import meant, recordable, refuse_no_stage
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import about, about_options, by_option, identity, record
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.errors import InvalidInput, Where
from fanout.plan.cases import Case
from fanout.reconcile.report import PolicyPass


@click.command()
@about_options
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

    Exactly one of --revision and --commit says what the answer is about; it must be published. Of
    a commit that a publication made the first seven digits are enough.
    """
    if bool(said["revision"]) == bool(said["commit"]):
        raise InvalidInput(
            "it is not clear what the answer is about",
            reason="InvalidSetting",
            remedy="give exactly one of --revision and --commit",
        )
    _refuse_no_link(said["link"])
    who = identity(by)
    with open_program(settings) as program:
        item = recordable(program, policy)
        refuse_no_stage(item, stage)
        spec = about(item, stage, variants)
        _refuse_unknown(item, stage, said["check"])
        those = meant(item, stage, spec.get("variants", ()))
        if said["revision"]:
            _refuse_unpublished(item, stage, those, said["revision"])
        else:
            said["commit"] = checked_commit(said["commit"], stage, those, program.world.git)
        spec |= {name: value for name, value in said.items() if value}
        name = record(program, item, "Evidence", spec, who)
    write(f"evidence.fanout.dev/{name} recorded\n")


def _refuse_no_link(link: str) -> None:
    if not re.fullmatch(LINK, link):
        raise InvalidInput(
            f"{link} is no web address",
            reason="InvalidSetting",
            remedy="write one that begins with https:// or http://",
            where=Where(field="--link"),
        )


def _refuse_unknown(item: PolicyPass, stage: str, check: str) -> None:
    checks = [it.name for rule in item.rules if rule.name == stage for it in rule.verification]
    if check not in checks:
        known = f"it has: {', '.join(checks)}" if checks else "it has none"
        raise InvalidInput(
            f"stage {stage or '(none)'} of {item.title} has no check {check}; {known}",
            reason="NotFound",
            remedy="name a check of the stage's verification",
        )


def _refuse_unpublished(item: PolicyPass, stage: str, those: Sequence[Case], revision: str) -> None:
    """Evidence about another revision than the published one would never count. (Design §6.)"""
    there = (case.published for case in those if case.undone is None)
    published = sorted({item.revision for item in there if item})
    if revision not in published:
        what = f"published there: {', '.join(published)}" if published else "nothing is published"
        raise InvalidInput(
            f"{revision} is not published in stage {stage} of {item.title}; {what}",
            reason="WrongRevision",
            remedy="report on what is published, after it is",
        )

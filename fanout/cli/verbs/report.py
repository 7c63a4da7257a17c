"""`fanout report`: the answer to a check, as Evidence."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from fanout.api.texts import LINK
from fanout.cli.commits import checked_commit
from fanout.cli.naming import meant, recordable, refuse_no_stage
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import about, about_options, by_option, identity, record
from fanout.cli.repeated import recorded_before
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.errors import InvalidInput, Where
from fanout.gates.rules import CheckRule, Way
from fanout.plan.cases import Case
from fanout.plan.repository import Identity
from fanout.reconcile.report import PolicyPass

_AGAIN = timedelta(minutes=10)  # within it an equal report is the earlier one, run again


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

    Exactly one of --revision and --commit says what the answer is about; it must be published, or
    drafted where the stage requires the check. Of a commit that a publication or a draft made the
    first seven digits are enough. An equal report of the last ten minutes is not recorded again.
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
        drafted = _is_of_drafts(item, stage, said["check"])
        those = meant(item, stage, spec.get("variants", ()))
        if said["commit"]:
            git = program.world.git
            said["commit"] = checked_commit(said["commit"], stage, those, git, drafted=drafted)
        elif drafted:
            _refuse_undrafted(item, stage, those, said["revision"])
        else:
            _refuse_unpublished(item, stage, those, said["revision"])
        spec |= {name: value for name, value in said.items() if value}
        earlier = _reported_before(item, spec, who, those, settings.now(), drafted=drafted)
        name = earlier or record(program, item, "Evidence", spec, who)
    write(f"evidence.fanout.dev/{name} {'already recorded' if earlier else 'recorded'}\n")


def _reported_before(
    item: PolicyPass,
    spec: Mapping[str, Any],
    who: Identity,
    those: Sequence[Case],
    now: datetime,
    *,
    drafted: bool,
) -> str:
    """Return the name of an equal report of the last minutes that counts as a new one would.

    Later ones are recorded: `freshFor` and `minReady` go by when somebody reported last. So are
    those that follow on what was published or drafted since.
    """
    found = recorded_before(item, "Evidence", spec, who)
    if found is None or not timedelta() <= now - found.at <= _AGAIN:
        return ""
    names = [it.name for it in item.about]
    for case in those:
        draft, published = case.draft, case.published
        if drafted:
            line = item.status.drafts.get(case.spec.name)
            if line is None or draft is None or line.digest != draft.trailers.digest:
                return ""
            since, heard = line.at, ""
        elif published is not None:
            since, heard = published.at, published.heard
        else:
            continue
        after = heard in names and names.index(heard) >= names.index(found.name)
        if since >= found.at or after:
            return ""
    return found.name


def _refuse_no_link(link: str) -> None:
    if not re.fullmatch(LINK, link):
        raise InvalidInput(
            f"{link} is no web address",
            reason="InvalidSetting",
            remedy="write one that begins with https:// or http://",
            where=Where(field="--link"),
        )


def _is_of_drafts(item: PolicyPass, stage: str, check: str) -> bool:
    """Is the check asked before publication? Raises InvalidInput for one that nobody reports."""
    asked = {
        it.name: (it.way, group == "requires")
        for rule in item.rules
        for group in ("verification", "requires")
        for it in getattr(rule, group)
        if rule.name == stage and isinstance(it, CheckRule)
    }
    reported = [name for name, (way, _) in asked.items() if way is Way.REPORT]
    if check in reported:
        return asked[check][1]
    known = f"it has: {', '.join(reported)}" if reported else "it has none"
    if check in asked:
        problem = f"check {check} is answered by a machine ({asked[check][0]})"
        remedy = f"name a check that is reported; {known}"
    else:
        problem = f"stage {stage or '(none)'} of {item.title} has no check {check}; {known}"
        remedy = "name a check of the stage that is reported"
    raise InvalidInput(problem, reason="NotFound", remedy=remedy)


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


def _refuse_undrafted(item: PolicyPass, stage: str, those: Sequence[Case], revision: str) -> None:
    """Evidence about no draft would never count."""
    drafted = sorted({it.draft.trailers.revision for it in those if it.draft is not None})
    if revision not in drafted:
        what = f"drafted there: {', '.join(drafted)}" if drafted else "nothing is drafted"
        raise InvalidInput(
            f"{revision} is not drafted in stage {stage} of {item.title}; {what}",
            reason="WrongRevision",
            remedy="report on what is drafted, before it is published",
        )

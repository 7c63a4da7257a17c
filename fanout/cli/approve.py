"""`fanout approve`: a person's yes to the drafts of a stage, tree by tree."""

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
@click.option("--stage", required=True, help="The stage whose drafts are approved.")
@click.option("--revision", required=True, help="The revision that they were rendered for.")
@click.option("--variant", "variants", multiple=True, help="Only these variants of the stage.")
@click.option("--check", default="", help="The approval check; needed where there are several.")
@by_option
@with_settings()
def command(
    settings: Settings,
    policy: str,
    stage: str,
    revision: str,
    variants: tuple[str, ...],
    check: str,
    by: str | None,
) -> None:
    """Record an approval of drafts.

    Of those of a stage as they are now. It counts for exactly these trees: a draft that is
    rewritten asks again, for itself only.
    """
    who = identity(by)
    with open_program(settings) as program:
        item = judged(program, policy)
        spec = about(item, stage, variants)
        spec |= {"revision": revision, "check": approval_check(item, stage, check)}
        trees = spec["trees"] = _trees(item, stage, revision, spec.get("variants", ()))
        name = record(program, item, "Approval", spec, who)
    write(f"approval.fanout.dev/{name} recorded for {len(trees)} drafts\n")


def approval_check(item: PolicyPass, stage: str, check: str) -> str:
    """The approval check that is meant. Raises InvalidInput where that is not clear."""
    rules = item.facts.stages if item.facts else ()
    checks = [rule.name for it in rules if it.name == stage for rule in it.requires]
    if check in checks:
        return check
    if not check and len(checks) == 1:
        return checks[0]
    known = f"it asks for: {', '.join(checks)}" if checks else "it asks for none"
    raise InvalidInput(
        f"stage {stage} of {item.title}: {known}",
        reason="NotFound",
        remedy="name one with --check" if checks else "there is nothing to approve",
    )


def _trees(item: PolicyPass, stage: str, revision: str, variants: list[str]) -> list[str]:
    trees = {
        case.draft.tree
        for case in item.cases
        if case.spec.stage == stage
        and case.draft is not None
        and case.draft.tree
        and case.standing
        and case.draft.trailers.revision == revision
        and (not variants or case.spec.name in variants)
    }
    if not trees:
        raise InvalidInput(
            f"stage {stage} of {item.title} has no draft that is up to date at {revision}",
            reason="NoDraft",
            remedy="see `fanout get drafts`; `fanout sweep --drafts-only` brings drafts up to date",
        )
    return sorted(trees)

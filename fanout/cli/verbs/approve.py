"""`fanout approve`: a person's yes to the drafts of a stage, tree by tree."""

from collections.abc import Sequence

import click

from fanout.cli.approving import approved_before, may_approve, no_draft, own_work, seen, uncounted
from fanout.cli.conflicted import select
from fanout.cli.exit_codes import ExitCode, exit_code_after
from fanout.cli.naming import judged, meant
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import about, about_options, by_option, identity, record, trees_to_see
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.cli.terminal import say
from fanout.errors import InvalidInput
from fanout.gates.rules import ApprovalRule, StageRule, Verdict
from fanout.gates.wording import counted, lasting, listed
from fanout.plan.repository import Identity
from fanout.reconcile.report import PolicyPass


@click.command()
@about_options
@click.option("--revision", default="", help="The revision that they were rendered for; needed.")
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
) -> ExitCode:
    """Record an approval of drafts.

    Of those of a stage as they are now; --stage and --revision say which. It counts for exactly
    these trees: a draft that is rewritten asks again, for itself only. A stage has drafts of its
    candidate; a newer revision is drafted, and can be approved, once it passes `after`. Drafts
    with undecided merge conflicts are left out, unless their variants are named. Exits with 4 when
    it counts for none of the drafts.
    """
    who = identity(by)
    with open_program(settings) as program:
        item = judged(program, policy)
        spec = about(item, stage, variants)
        _refuse_unnamed(item, stage, revision)
        rule = approval_rule(item, stage, check)
        spec |= {"revision": revision, "check": rule.name}
        named = spec.get("variants", ())
        # Whoever names a variant has looked at its draft; the conflicts hold it all the same.
        chosen = select(item, meant(item, stage, named), "approved", accept=bool(named))
        those = chosen.cases
        trees = spec["trees"] = trees_to_see(those, revision)
        if not trees:
            raise no_draft(item, stage, revision, those)
        drafted = seen(item, those, trees)
        before = approved_before(item, rule, who, drafted)
        again = bool(drafted) and len(before) == len(drafted)
        if not again or rule.expires is not None:
            name = record(program, item, "Approval", spec, who)
            write(f"approval.fanout.dev/{name} recorded for {counted(len(trees), 'draft')}\n")
    notes = (
        uncounted(rule, who, drafted),
        _said_before(rule, who, before, all_=again),
        chosen.note,
    )
    for note in notes:
        if note:
            say(note, settings.color)
    counts = may_approve(rule, who) and len(own_work(rule, who, drafted)) < len(drafted)
    return exit_code_after(int(bool(chosen.note)), effect=counts)


def _said_before(rule: ApprovalRule, who: Identity, before: Sequence[str], *, all_: bool) -> str:
    """That a person has approved drafts before. Again changes something where approvals expire."""
    if not before:
        return ""
    those = "these drafts" if all_ else f"{len(before)} of them ({listed(before)})"
    said = f"{who.email.lower()} has approved {those} already"
    if rule.expires is not None:
        return f"{said}; that counts anew from now, for {lasting(rule.expires)}"
    return f"nothing to do: {said}" if all_ else said


def approval_rule(item: PolicyPass, stage: str, check: str) -> ApprovalRule:
    """The approval check that is meant. Raises InvalidInput where that is not clear."""
    rules = item.facts.stages if item.facts else ()
    found = {rule.name: rule for it in rules if it.name == stage for rule in it.approvals}
    if check in found:
        return found[check]
    if not check and len(found) == 1:
        return next(iter(found.values()))
    checks = list(found)
    known = f"it asks for: {', '.join(checks)}" if checks else "it asks for none"
    raise InvalidInput(
        f"stage {stage} of {item.title}: {known}",
        reason="NotFound",
        remedy="name one with --check" if checks else "there is nothing to approve",
    )


def _refuse_unnamed(item: PolicyPass, stage: str, revision: str) -> None:
    """Raises InvalidInput without a stage or a revision; the remedy is what may be approved now."""
    missing = [name for name, said in (("stage", stage), ("revision", revision)) if not said]
    if not missing:
        return
    asking = [rule for rule in item.rules if rule.approvals and stage in ("", rule.name)]
    lines = [
        f"--stage {rule.name} --revision {waiting}"
        for rule in asking
        for waiting in sorted(_waiting(item, rule))
    ]
    if lines:
        remedy = f"write {' or '.join(lines)}: that waits for an approval"
    elif asking:
        names = ", ".join(rule.name for rule in asking)
        remedy = f"no draft waits for one now; who asks for approvals: stage {names}"
    else:
        remedy = "no stage asks for approvals" if not stage else f"stage {stage} asks for none"
    raise InvalidInput(
        f"it is not said which {' and '.join(missing)} of {item.title} is approved",
        reason="NotFound",
        remedy=remedy,
    )


def _waiting(item: PolicyPass, rule: StageRule) -> set[str]:
    """The revisions of the stage's drafts that stand and lack an approval."""
    decided = item.decision.variants if item.decision else {}
    asked = {check.name for check in rule.approvals}
    return {
        case.draft.trailers.revision
        for case in meant(item, rule.name)
        if case.draft is not None
        and case.standing
        and any(
            check.name in asked and check.verdict is not Verdict.PASSED
            for check in decided[case.spec.name].checks
        )
    }

"""What a rollback goes back to, and what it leaves behind."""

from collections.abc import Iterable, Iterator, Sequence

from fanout.cli.start import Program
from fanout.errors import InvalidInput
from fanout.gates.decisions import Standing
from fanout.gates.order import Ages
from fanout.gates.pins import Pin
from fanout.gates.wording import counted, listed, stage_named
from fanout.plan.cases import Case
from fanout.reconcile.report import PolicyPass
from fanout.reconcile.rollback import published_before


def goes_back_to(
    program: Program, item: PolicyPass, stage: str, those: Sequence[Case], said: str
) -> str:
    """The revision that a rollback is about. Raises InvalidInput where nobody ever had it.

    Where none is named: the one that a rollback in force names, else the newest that was published
    there before the present one, which is the newest that is published there.
    """
    where = _where(item, stage)
    if not those:
        raise InvalidInput(
            f"no variant is in {where}", reason="NothingToDo", remedy="see `fanout get variants`"
        )
    standing = _standing(item, stage, [case.spec.name for case in those])
    if not said and standing:
        return standing[0].revision
    had = published_before(program.world.git, those)
    known = {revision for revisions in had.values() for revision in revisions}
    ages = Ages(tuple(item.revisions))
    if said in known:
        return said
    if said:
        raise InvalidInput(
            f"{said} was never published in {where}",
            reason="NeverPublished",
            remedy=f"choose one of: {', '.join(sorted(known))}" if known else "nothing was",
        )
    present = _newest({it.published.revision for it in those if it.published}, ages)
    before = {found for revisions in had.values() if (found := _before(revisions, present, ages))}
    if not before:
        raise InvalidInput(
            f"nothing was published in {where} before {present or 'now'}",
            reason="NeverPublished",
            remedy="there is nothing to go back to; `fanout suspend` stops what is to come",
        )
    return _newest(before, ages)


def rollback_in_force(
    item: PolicyPass, stage: str, variants: Sequence[str], revision: str, overrides: Sequence[str]
) -> str:
    """Return the name of the decision by which all of it goes back to the revision; "" if none.

    Whoever made it: a second one would change nothing.
    """
    about = variants or [""]
    again = [
        pin.decision
        for pin in _standing(item, stage, about)
        if pin.decision is not None
        and pin.revision == revision
        and pin.decision.overrides.issuperset(overrides)
    ]
    return again[0].name if len(again) == len(about) else ""


def edits_left(those: Iterable[Case], revision: str) -> Iterator[str]:
    """That what people changed since in published packages is not in what is gone back to."""
    changed = [
        f"{case.home.repository}:{case.home.path}"
        for case in those
        if case.published is not None
        and case.published.revision != revision
        and case.reverted is None
        and case.own.tree not in (None, case.published.tree)
    ]
    if changed:
        yield (
            f"in {counted(len(changed), 'package')} people have changed something since it was"
            f" published ({listed(changed)}): that is not in {revision}; the branch's history has"
            " it"
        )


def _standing(item: PolicyPass, stage: str, variants: Iterable[str]) -> list[Pin]:
    """The rollbacks in force for the stage ("") or for variants in it."""
    if item.facts is None:
        return []
    rollbacks = Standing(
        item.facts.records.decisions, item.facts.now, item.facts.variants
    ).rollbacks
    found = (rollbacks.of(stage, variant) for variant in variants)
    return [pin for pin in found if pin is not None]


def _before(revisions: Sequence[str], present: str, ages: Ages) -> str:
    """The last of them before the present one; where ages cannot be compared, the last other."""
    for revision in revisions:
        if ages.older(revision, present):
            return revision
        if revision != present and not ages.comparable(revision, present):
            return revision
    return ""


def _newest(revisions: Iterable[str], ages: Ages) -> str:
    newest = ""
    for revision in sorted(revisions):
        if not newest or ages.older(newest, revision):
            newest = revision
    return newest


def _where(item: PolicyPass, stage: str) -> str:
    return f"{stage_named(stage)} of {item.title}" if stage else item.title

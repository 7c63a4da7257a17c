"""Variants that a promotion or an approval leaves out, because of undecided merge conflicts."""

from collections.abc import Sequence

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Stopped, Where
from fanout.gates.wording import counted, listed
from fanout.plan.cases import Case
from fanout.reconcile.report import PolicyPass
from fanout.values import frozen


@frozen
class Selection:
    """The variants that a promotion or an approval is about, of those that were asked for."""

    cases: tuple[Case, ...]
    conflicted: bool = False  # drafts with undecided merge conflicts are among them
    note: str = ""  # which variants are left out, why, and what decides their conflicts


def select(item: PolicyPass, cases: Sequence[Case], verb: str, *, accept: bool) -> Selection:
    """Return the variants without those whose drafts have undecided merge conflicts.

    With `accept` these are among them. `verb` says what does not happen to those left out:
    "approved" or "published". Raises Stopped where all are left out.
    """
    undecided = item.disputed
    held = [case for case in cases if undecided.get(case.spec.name, 0)]
    if accept or not held:
        return Selection(tuple(cases), bool(held))
    names = [case.spec.name for case in held]
    have, are = ("has", "is") if len(held) == 1 else ("have", "are")
    if len(held) == len(cases):
        raise Stopped(
            f"nothing is {verb}: {counted(len(held), 'variant')} {have} undecided merge conflicts:"
            f" {listed(names)}",
            reason=Reason.MERGE_CONFLICT,
            remedy=_remedy(item, names[0]),
        )
    note = (
        f"{len(held)} of {counted(len(cases), 'variant')} {have} undecided merge conflicts and"
        f" {are} not {verb}: {listed(names)}. {_remedy(item, names[0])}"
    )
    rest = tuple(case for case in cases if case.spec.name not in names)
    return Selection(rest, note=note)


def refuse_unnamed(item: PolicyPass, variants: Sequence[str]) -> None:
    """Raise InvalidInput where conflicts are to be accepted and no variant is named.

    A variant written by hand is named by the command's argument.
    """
    if variants or item.named.policy is None:
        return
    raise InvalidInput(
        "--accept-conflicts is given and no variant is named",
        reason="InvalidSetting",
        remedy="name each variant whose draft you have looked at with --variant",
        where=Where(field="--accept-conflicts"),
    )


def _remedy(item: PolicyPass, name: str) -> str:
    written_by_hand = item.named.policy is None
    about = item.named.name if written_by_hand else f"{item.named.name} --variant {name}"
    return (
        f"Look with `fanout diff {name}`; then commit to the draft, run `fanout resolve {about}"
        f" --reason WHY`, or add{'' if written_by_hand else f' --variant {name}'}"
        " --accept-conflicts to a promotion"
    )

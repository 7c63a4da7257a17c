"""`fanout remove`: a person lets a variant go, or what one left behind."""

from collections.abc import Sequence
from datetime import datetime

import click

from fanout.api.meta import DEFAULT_NAMESPACE
from fanout.api.nearest import suggestion
from fanout.cli.called import called, gone_called
from fanout.cli.exit_codes import ExitCode
from fanout.cli.leaving import places
from fanout.cli.naming import found
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import (
    by_option,
    identity,
    policy_argument,
    reason_option,
    record,
    recorded_line,
)
from fanout.cli.repeated import decided_before
from fanout.cli.settings import Settings
from fanout.cli.start import Program, open_program
from fanout.cli.terminal import say
from fanout.cluster.declared import Declared
from fanout.errors import InvalidInput
from fanout.gates.facts import Hold
from fanout.gates.fates import Fate
from fanout.gates.removal import closed
from fanout.gates.wording import listed
from fanout.plan.book import Recorded
from fanout.plan.facts import CONFIRM_REMOVAL
from fanout.plan.removal import Removal
from fanout.plan.repository import Identity
from fanout.plan.rules import calendars
from fanout.reconcile.absence import doubt
from fanout.reconcile.promotions import all_promotions_read, promotions_of
from fanout.reconcile.remove import (
    Said,
    find_removals,
    lost_variant,
    remove_by_level,
)
from fanout.reconcile.report import PolicyPass
from fanout.reconcile.undeclared import refuse_undeclared


@click.command()
@policy_argument
@click.argument("variant", required=False)
@click.option("--all-gone", is_flag=True, help="All variants whose targets are gone by now.")
@click.option("--edited", is_flag=True, help="Remove also what people have changed in it.")
@reason_option
@by_option
@with_settings()
def command(
    settings: Settings, policy: str, variant: str | None, by: str | None, **said: bool | str
) -> ExitCode:
    """Remove a variant whose target is gone, or what one left.

    Sweeps remove it where automation is switched on; this is a person's word, which asks neither
    automation nor removalLimit. One that moved leaves its package where it was until it is ready.

    VARIANT is its name, as `fanout get targets` shows those with TargetGone, its path, its
    repository:path, or what its target was called; one that was written by hand is named alone. Its
    package leaves the branch in one commit, unless the deletionPolicy is Orphan; its draft goes,
    with Orphan only where nobody has committed to it; its tags stay. With --all-gone all go, level
    by level, those of the last stages first. While a window is closed the decision is recorded, a
    sweep carries it out, and this exits with 4. Interrupted, it is run again.
    """
    who = identity(by)
    everything = bool(said["all_gone"])
    with open_program(settings) as program:
        item = _meant(program, policy, alone=variant is None and not everything)
        declared = program.declared()
        try:
            names = _chosen(item, variant, declared, everything=everything)
        except InvalidInput:
            carried_out = _removed(item, variant, str(said["reason"]), who, settings.now())
            if carried_out is None:
                raise
            write(recorded_line(carried_out.name, "; it is carried out", again=True))
            return ExitCode.OK
        removals = find_removals(program.world, item, declared, names)
        work = {it: tree for removal in removals for it, tree in removal.edited.items()}
        if work and not said["edited"]:
            raise InvalidInput(
                f"people have changed {' and '.join(work)}",
                reason="EditedDownstream",
                remedy="look at it, and say --edited to remove it all the same",
            )
        shut = _shut(item, declared, names, settings.now())
        spec = {"variants": names, "action": CONFIRM_REMOVAL, "reason": said["reason"]}
        spec |= {"trees": sorted(set(work.values()))} if work else {}
        if item.named.policy is not None:
            spec["policy"] = item.named.name
        earlier = decided_before(item, spec, who, settings.now())
        name = earlier.name if earlier else record(program, item, "Decision", spec, who)
        write(recorded_line(name, "", again=earlier is not None))
        if shut is not None:
            say(f"a sweep carries it out: {shut.sentence}", settings.color)
            return ExitCode.NO_EFFECT
        about = Said(str(said["reason"]), settings.now())
        for done in remove_by_level(program.world, item, declared, removals, about):
            for removal in done:
                write(_told(removal))
    return ExitCode.OK


def _removed(
    item: PolicyPass, variant: str | None, reason: str, who: Identity, now: datetime
) -> Recorded | None:
    """Return the decision by which an earlier run has removed what is meant to the end."""
    for it in reversed(item.about):
        names = it.spec.get("variants", ())
        if it.spec.get("action") == CONFIRM_REMOVAL and (variant is None or [variant] == [*names]):
            same = {**it.spec, "reason": reason}
            return decided_before(item, same, who, now, (Fate.SPENT,))
    return None


def _chosen(
    item: PolicyPass, variant: str | None, declared: Declared, *, everything: bool
) -> list[str]:
    """The names of the variants that are to go. Raises InvalidInput when there is none."""
    if everything:
        return _all_gone(item, variant, declared)
    by_hand = item.named.policy is None and variant is None
    return [item.named.name if by_hand else _named(item, variant or "", declared)]


def _all_gone(item: PolicyPass, variant: str | None, declared: Declared) -> list[str]:
    """All that is gone, if that is sure: who says all has looked at a list and not at each."""
    if variant is not None:
        raise InvalidInput(
            f"{variant} is named beside --all-gone",
            reason="InvalidSetting",
            remedy="say one of them",
        )
    unsure = doubt(declared)
    if unsure:
        raise InvalidInput(
            f"nobody can be sure which targets of {item.title} are gone: {unsure}",
            reason="InvalidObject",
            remedy="correct that first, see `fanout validate`; or name a variant",
        )
    if not item.gone:
        raise InvalidInput(
            f"{item.title} has no variant without a target",
            reason="NothingToDo",
            remedy="see `fanout get targets`",
        )
    return [one.name for one in item.gone]


def _shut(item: PolicyPass, declared: Declared, names: Sequence[str], now: datetime) -> Hold | None:
    """The window that does not let it be done now.

    Raises InvalidInput where no sweep would do it later: of what was written by hand, and of what
    one that moved has left.
    """
    found = calendars(promotions_of(item.named, declared.promotions))
    unread = not all_promotions_read(declared, item.named.namespace)
    shut = closed(found, now, unread=unread)
    swept = item.named.policy is not None and set(names) <= {one.name for one in item.gone}
    if shut is not None and not swept:
        raise InvalidInput(shut.sentence, reason=shut.reason, remedy="run it again then")
    return shut


def _meant(program: Program, policy: str, *, alone: bool) -> PolicyPass:
    """The policy, or the variant written by hand that is named alone; its object may be gone."""
    try:
        return found(program, policy)
    except InvalidInput:
        namespace = program.settings.namespace or DEFAULT_NAMESPACE
        declared = program.declared()
        lost = lost_variant(program.world, declared, namespace, policy) if alone else None
        if lost is None:
            refuse_undeclared(program.world, declared, namespace, policy)
            raise
        return lost


def _named(item: PolicyPass, name: str, declared: Declared) -> str:
    """The name of the variant that is meant; one that nothing has is answered by what removes."""
    gone = {one.name for one in item.gone}
    names = sorted(gone)
    otherwise = f"without a target there are: {listed(names)}" if names else ""
    if not name:
        raise InvalidInput(
            f"no variant of {item.title} is named",
            reason="NotFound",
            remedy=otherwise or "name the one that is to go",
        )
    if name in gone or name in item.status.variants:
        return name
    those = gone | item.status.variants.keys() - {case.spec.name for case in item.cases}
    lost = gone_called(item.named, those, places(item, declared), name)
    found = sorted({*lost, *(case.spec.name for case in called(item.cases, name))})
    if len(found) > 1:
        raise InvalidInput(
            f"{name} is several variants of {item.title}",
            reason="NotFound",
            remedy=f"name one of them: {listed(found)}",
        )
    if not found:
        raise InvalidInput(
            f"{item.title} has no variant {name} without a target",
            reason="NotFound",
            remedy=suggestion(name, names, otherwise or "see `fanout get targets`"),
        )
    return found[0]


def _told(removal: Removal) -> str:
    at = f"{removal.path} in {removal.view.key}" if removal.view else removal.path
    if removal.deletes:
        return f"{removal.variant} removed: {at} left the branch\n"
    if removal.view is None:
        return f"{removal.variant} forgotten: nobody declares its repository any more\n"
    if removal.state.tree is None:
        return f"{removal.variant} removed: nothing of it was on the branch\n"
    return f"{removal.variant} removed: {at} stays on the branch\n"

"""`fanout remove`: a person lets a variant go, or what one left behind."""

import click

from fanout.api.meta import DEFAULT_NAMESPACE
from fanout.api.nearest import suggestion
from fanout.cli.called import called, gone_called
from fanout.cli.naming import found
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import by_option, identity, policy_argument, reason_option, record
from fanout.cli.settings import Settings
from fanout.cli.start import Program, open_program
from fanout.cluster.declared import Declared
from fanout.errors import InvalidInput
from fanout.gates.wording import listed
from fanout.plan.facts import CONFIRM_REMOVAL
from fanout.plan.removal import Removal
from fanout.reconcile.places import place_of
from fanout.reconcile.remove import carry_out, find_removals, lost_variant, places_of
from fanout.reconcile.report import PolicyPass
from fanout.reconcile.undeclared import refuse_undeclared
from fanout.selection.targets import usable_by


@click.command()
@policy_argument
@click.argument("variant", required=False)
@click.option("--edited", is_flag=True, help="Remove also what people have changed in it.")
@reason_option
@by_option
@with_settings()
def command(
    settings: Settings, policy: str, variant: str | None, edited: bool, reason: str, by: str | None
) -> None:
    """Remove a variant whose target is gone, or what one left.

    One that moved leaves its package where it was until it is ready.

    VARIANT is its name, as `fanout get targets` shows those with TargetGone, its path, its
    repository:path, or what its target was called; one that was written by hand is named alone. Its
    package leaves the branch in one commit, unless the deletionPolicy is Orphan; its draft goes,
    its tags stay. Interrupted, it is run again.
    """
    who = identity(by)
    with open_program(settings) as program:
        item = _meant(program, policy, alone=variant is None)
        declared = program.declared()
        by_hand = item.named.policy is None and variant is None
        name = policy if by_hand else _named(item, variant or "", declared)
        removals = find_removals(program.world, item, declared, name)
        changed = [it for removal in removals for it in removal.edited]
        if changed and not edited:
            raise InvalidInput(
                f"people have changed {' and '.join(dict.fromkeys(changed))}",
                reason="EditedDownstream",
                remedy="look at it, and say --edited to remove it all the same",
            )
        spec = {"variants": [name], "action": CONFIRM_REMOVAL, "reason": reason}
        if item.named.policy is not None:
            spec["policy"] = item.named.name
        recorded = record(program, item, "Decision", spec, who)
        write(f"decision.fanout.dev/{recorded} recorded\n")
        carry_out(program.world, item, removals, reason, settings.now())
        for removal in removals:
            write(_told(removal))


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
    gone = {failure.target for failure in item.gone}
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
    lost = gone_called(item.named, those, _places(item, declared), name)
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


def _places(item: PolicyPass, declared: Declared) -> dict[str, set[str]]:
    """Path and `repository:path` of what is on record or drafted, by variant."""
    usable = usable_by(item.named.namespace, declared.repositories)
    aliases: dict[str, list[str]] = {}
    for name, repository in usable.items():
        aliases.setdefault(place_of(repository), []).append(name)
    found: dict[str, set[str]] = {}
    for variant, (place, path) in places_of(item):
        names = (f"{name}:{path}" for name in aliases.get(place, ()))
        found.setdefault(variant, set()).update((path, *names))
    return found


def _told(removal: Removal) -> str:
    at = f"{removal.path} in {removal.view.key}" if removal.view else removal.path
    if removal.deletes:
        return f"{removal.variant} removed: {at} left the branch\n"
    if removal.view is None:
        return f"{removal.variant} forgotten: nobody declares its repository any more\n"
    if removal.state.tree is None:
        return f"{removal.variant} removed: nothing of it was on the branch\n"
    return f"{removal.variant} removed: {at} stays on the branch\n"

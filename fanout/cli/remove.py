"""`fanout remove`: a person lets a variant go whose target is gone."""

import click

from fanout.cli.completing import complete_policies
from fanout.cli.naming import found
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import by_option, identity, record
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.errors import InvalidInput
from fanout.plan.facts import CONFIRM_REMOVAL
from fanout.plan.removal import Removal
from fanout.reconcile.remove import carry_out, find_removal


@click.command()
@click.argument("policy", shell_complete=complete_policies)
@click.argument("variant")
@click.option("--edited", is_flag=True, help="Remove also what people have changed in it.")
@click.option("--reason", required=True, help="Why; it is recorded.")
@by_option
@with_settings()
def command(
    settings: Settings, policy: str, variant: str, edited: bool, reason: str, by: str | None
) -> None:
    """Remove a variant whose target is gone.

    VARIANT is its name, as `fanout get targets` shows those with TargetGone. Its package leaves
    the branch in one commit, unless the policy's deletionPolicy is Orphan; its draft goes, its
    tags stay. Interrupted, it is run again.
    """
    who = identity(by)
    with open_program(settings) as program:
        item = found(program, policy)
        removal = find_removal(program.world, item, program.declared(), variant)
        if removal.edited and not edited:
            raise InvalidInput(
                f"people have changed {' and '.join(removal.edited)}",
                reason="EditedDownstream",
                remedy="look at it, and say --edited to remove it all the same",
            )
        spec = {
            "policy": item.named.name,
            "variants": [variant],
            "action": CONFIRM_REMOVAL,
            "reason": reason,
        }
        name = record(program, item, "Decision", spec, who)
        write(f"decision.fanout.dev/{name} recorded\n")
        carry_out(program.world, item, removal, reason, settings.now())
        write(_told(removal))


def _told(removal: Removal) -> str:
    at = f"{removal.path} in {removal.view.key}" if removal.view else removal.path
    if removal.deletes:
        return f"{removal.variant} removed: {at} left the branch\n"
    if removal.view is None:
        return f"{removal.variant} forgotten: nobody declares its repository any more\n"
    if removal.state.tree is None:
        return f"{removal.variant} removed: nothing of it was on the branch\n"
    return f"{removal.variant} removed: {at} stays on the branch\n"

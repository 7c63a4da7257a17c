"""`fanout withdraw`: a decision that still stands is taken back."""

import click

from fanout.cli.naming import judged
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import (
    about_of,
    by_option,
    identity,
    policy_argument,
    reason_option,
    record,
)
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.cli.terminal import say
from fanout.errors import InvalidInput
from fanout.gates.fates import Fate
from fanout.plan.book import WITHDRAW, Recorded
from fanout.reconcile.report import PolicyPass

# what stays in force until something comes of it, or for as long as nobody takes it back
_ARMED = ("Publish", "Resolve", "Rollback", "Skip", "Retry", "ConfirmRemoval")
_IDLE = {
    Fate.SPENT: "has been carried out, or overtaken; what has been published stays",
    Fate.WITHDRAWN: "has been withdrawn already",
    Fate.EXPIRED: "has expired",
}


@click.command()
@policy_argument
@click.argument("decision")
@reason_option
@by_option
@with_settings()
def command(settings: Settings, policy: str, decision: str, reason: str, by: str | None) -> None:
    """Take back a decision that still stands.

    DECISION is the name that `fanout promote`, `rollback`, `skip`, `retry`, `resolve` or `remove`
    printed; `fanout get decisions` lists them and says which still stand. What has been published
    stays: after a rollback the next sweep goes on to the newer revision.
    """
    who = identity(by)
    name = decision.removeprefix("decision.fanout.dev/")
    with open_program(settings) as program:
        item = judged(program, policy)
        taken = _armed(item, name)
        idle = _IDLE.get(item.fates(settings.now())[name])
        if idle:
            say(f"nothing to do: {name} {idle}", settings.color)
            return
        spec = {**about_of(taken), "action": WITHDRAW, "withdraws": name, "reason": reason}
        withdrawal = record(program, item, "Decision", spec, who)
    write(f"decision.fanout.dev/{withdrawal} withdraws {name}\n")


def _armed(item: PolicyPass, name: str) -> Recorded:
    """The decision of this name. Raises InvalidInput when it is nothing to withdraw."""
    known = {it.name: it for it in item.about if it.kind == "Decision"}
    if name not in known:
        raise InvalidInput(
            f"{item.title} has no decision {name}",
            reason="NotFound",
            remedy=f"see `fanout get decisions {item.named.name}`",
        )
    action = known[name].spec["action"]
    if action not in _ARMED:
        undo = {"Suspend": "fanout resume", "Resume": "fanout suspend"}.get(action)
        raise InvalidInput(
            f"{name} is a {action}, which is not withdrawn",
            reason="NotFound",
            remedy=f"use `{undo}`" if undo else "it was carried out when it was made",
        )
    return known[name]

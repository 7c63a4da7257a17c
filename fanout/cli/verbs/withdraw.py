"""`fanout withdraw`: a decision that still stands, or evidence, is taken back."""

from datetime import datetime

import click

from fanout.cli.exit_codes import ExitCode, exit_code_after
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
from fanout.plan.book import WITHDRAW, Recorded, standing
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
@click.argument("record_name", metavar="RECORD")
@reason_option
@by_option
@with_settings()
def command(
    settings: Settings, policy: str, record_name: str, reason: str, by: str | None
) -> ExitCode:
    """Withdraw a decision that still stands, or evidence.

    RECORD is the name that `fanout promote`, `rollback`, `skip`, `retry`, `resolve`, `remove` or
    `report` printed; `fanout get records` lists them and says which still stand. What has been
    published stays: after a rollback the next sweep goes on to the newer revision. Without its
    evidence a check is pending again; a verdict that the stage has reached stays, report `failed`
    to withdraw that. An approval is taken back by `fanout revoke`. Exits with 4 when the decision
    has been carried out or has expired.
    """
    who = identity(by)
    name = record_name.removeprefix("decision.fanout.dev/").removeprefix("evidence.fanout.dev/")
    with open_program(settings) as program:
        item = judged(program, policy)
        taken = _withdrawable(item, name, settings.now())
        fate = _state(item, name, settings.now())
        if idle := _IDLE.get(fate):
            say(f"nothing to do: {name} {idle}", settings.color)
            return exit_code_after(0, effect=fate is Fate.WITHDRAWN)
        spec = {**about_of(taken), "action": WITHDRAW, "withdraws": name, "reason": reason}
        withdrawal = record(program, item, "Decision", spec, who)
    write(f"decision.fanout.dev/{withdrawal} withdraws {name}\n")
    return ExitCode.OK


def _state(item: PolicyPass, name: str, now: datetime) -> Fate:
    """Return how the decision or the evidence stands."""
    if any(it.withdrawn for it in standing(item.about) if it.name == name):
        return Fate.WITHDRAWN
    return item.fates(now).get(name, Fate.STANDING)


def _withdrawable(item: PolicyPass, name: str, now: datetime) -> Recorded:
    """The record of this name. Raises InvalidInput when it is nothing to withdraw."""
    known = {it.name: it for it in item.about if it.kind != "Approval"}
    if name not in known:
        raise InvalidInput(
            f"{item.title} has no decision or evidence {name}",
            reason="NotFound",
            remedy=f"see `fanout get records {item.named.name}`",
        )
    if known[name].kind == "Evidence" or _state(item, name, now) is Fate.AHEAD:
        return known[name]
    action = known[name].spec["action"]
    if action not in _ARMED:
        undo = {"Suspend": "fanout resume", "Resume": "fanout suspend"}.get(action)
        raise InvalidInput(
            f"{name} is a {action}, which is not withdrawn",
            reason="NotFound",
            remedy=f"use `{undo}`" if undo else "it was carried out when it was made",
        )
    return known[name]

"""`fanout revoke`: an approval is taken back."""

import click

from fanout.api.people import person
from fanout.cli.approving import may_approve, stranger
from fanout.cli.exit_codes import ExitCode
from fanout.cli.naming import judged
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import by_option, identity, policy_argument, record
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.cli.terminal import say
from fanout.errors import InvalidInput
from fanout.gates.approvals import taken_back
from fanout.gates.rules import ApprovalRule
from fanout.plan.book import Recorded
from fanout.reconcile.report import PolicyPass


@click.command()
@policy_argument
@click.argument("approval")
@by_option
@with_settings()
def command(settings: Settings, policy: str, approval: str, by: str | None) -> ExitCode:
    """Take an approval back.

    APPROVAL is the name that `fanout approve` printed. Exits with 4 when it does not count.
    """
    who = identity(by)
    name = approval.removeprefix("approval.fanout.dev/")
    with open_program(settings) as program:
        item = judged(program, policy)
        taken = [
            record
            for record in item.book.records
            if record.kind == "Approval" and record.name == name and not record.spec.get("revokes")
        ]
        if not taken:
            raise InvalidInput(
                f"{item.title} has no approval {name}",
                reason="NotFound",
                remedy=f"see `fanout get approvals {item.named.name}`",
            )
        earlier = taken[0]
        facts = item.facts
        if facts and name in taken_back(facts.records.approvals, facts.stages):
            say(f"nothing to do: {name} has been revoked already", settings.color)
            return ExitCode.OK
        spec = {**earlier.spec, "revokes": name}
        revoked = record(program, item, "Approval", spec, who)
    write(f"approval.fanout.dev/{revoked} revokes {name}\n")
    rule = _rule(item, earlier)
    own = person(f"{who.name} <{who.email}>") == person(earlier.by)
    if rule is not None and not own and not may_approve(rule, who):
        say(
            f"it is recorded and does not count: {who.email} did not give it, and"
            f" {stranger(rule, who)}",
            settings.color,
        )
        return ExitCode.NO_EFFECT
    return ExitCode.OK


def _rule(item: PolicyPass, approval: Recorded) -> ApprovalRule | None:
    """What the approval was for; None when nobody asks for it any more."""
    about = (approval.spec.get("stage", ""), approval.spec["check"])
    rules = item.facts.stages if item.facts else ()
    asked = {(stage.name, rule.name): rule for stage in rules for rule in stage.approvals}
    return asked.get(about)

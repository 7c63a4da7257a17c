"""`fanout revoke`: an approval is taken back."""

import click

from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import by_option, identity, judged, record
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.errors import InvalidInput


@click.command()
@click.argument("policy")
@click.argument("approval")
@by_option
@with_settings()
def command(settings: Settings, policy: str, approval: str, by: str | None) -> None:
    """Take an approval back.

    APPROVAL is the name that `fanout approve` printed.
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
                remedy="see the records branch, or what `fanout approve` printed",
            )
        spec = {**taken[0].spec, "revokes": name}
        revoked = record(program, item, "Approval", spec, who)
    write(f"approval.fanout.dev/{revoked} revokes {name}\n")

"""Makes the two verbs that record whether something is suspended; no file is edited."""

import click

from fanout.cli.completing import complete_policies, complete_stages
from fanout.cli.naming import recordable
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import about, by_option, identity, record
from fanout.cli.settings import Settings
from fanout.cli.start import open_program


def verb(action: str, words: str) -> click.Command:
    """The verb that records a Decision of this action; `words` are its help."""

    @click.command(help=words)
    @click.argument("policy", shell_complete=complete_policies)
    @click.option("--stage", shell_complete=complete_stages, default="", help="Only this stage.")
    @click.option("--variant", "variants", multiple=True, help="Only these variants.")
    @click.option("--reason", required=True, help="Why; it is recorded.")
    @by_option
    @with_settings()
    def command(
        settings: Settings,
        policy: str,
        stage: str,
        variants: tuple[str, ...],
        reason: str,
        by: str | None,
    ) -> None:
        who = identity(by)
        with open_program(settings) as program:
            item = recordable(program, policy)
            spec = about(item, stage, variants) | {"action": action, "reason": reason}
            name = record(program, item, "Decision", spec, who)
        write(f"decision.fanout.dev/{name} recorded\n")

    return command

"""`fanout suspend`: a policy, a stage or a variant stops, by a recorded Decision."""

import click

from fanout.cli.options import with_settings
from fanout.cli.recording import by_option
from fanout.cli.settings import Settings
from fanout.cli.suspension import decide


@click.command()
@click.argument("policy")
@click.option("--stage", default="", help="Only this stage.")
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
    """Suspend a policy, a stage or a variant. No file is edited; `fanout resume` ends it."""
    decide(settings, "Suspend", policy, {"stage": stage, "reason": reason}, variants, by)

"""`fanout resolve`: the conflicts of drafts are decided as they stand."""

import click

from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import about, by_option, identity, judged, record
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.errors import InvalidInput


@click.command()
@click.argument("policy")
@click.option("--stage", default="", help="Only drafts of this stage.")
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
    """Decide the conflicts of drafts as they stand.

    Upstream's values stand in them, see `fanout diff`. A commit on a draft decides its conflicts
    too, and otherwise if need be.
    """
    who = identity(by)
    with open_program(settings) as program:
        item = judged(program, policy)
        spec = about(item, stage, variants)
        chosen = spec.get("variants", ())
        found: dict[str, list[str]] = {}
        for variant in item.facts.variants if item.facts else ():
            asked = stage in ("", variant.stage) and (not chosen or variant.name in chosen)
            if asked and variant.draft is not None and variant.draft.disputed:
                found.setdefault(variant.draft.revision, []).append(variant.name)
        if not found:
            raise InvalidInput(
                f"no draft of {item.title} that is meant has an undecided conflict",
                reason="NotFound",
                remedy="see `fanout get drafts`",
            )
        for revision, names in sorted(found.items()):
            decision = {"action": "Resolve", "revision": revision, "reason": reason}
            name = record(program, item, "Decision", spec | decision | {"variants": names}, who)
            write(f"decision.fanout.dev/{name} recorded for {len(names)} drafts at {revision}\n")

"""`fanout diff`: a variant beside what is published, its draft or its upstream."""

import sys
from itertools import pairwise

import click

from fanout.cli.exit_codes import ExitCode, detailed
from fanout.cli.options import detailed_option, with_settings
from fanout.cli.output import write
from fanout.cli.patches import patch
from fanout.cli.settings import Settings
from fanout.cli.sides import Sides, open_sides
from fanout.cli.start import open_program
from fanout.cli.terminal import printable
from fanout.cli.threeway import three_way


@click.command()
@click.argument("variant")
@click.option(
    "--against",
    type=click.Choice(["published", "draft", "upstream"]),
    default="published",
    show_default=True,
    help="What the variant is compared with.",
)
@click.option(
    "--three-way",
    "each_side",
    is_flag=True,
    help="Show what each side did since both were one, and disputes.",
)
@detailed_option
@with_settings()
def command(settings: Settings, variant: str, against: str, each_side: bool, **how: bool) -> int:
    """Compare a variant with what is published.

    Prints a patch that makes what is published (or upstream's package) what the variant's next
    draft holds, people's changes included; --against draft prints what people did to the draft
    that fanout wrote, and then what the next one changes in it. With --three-way, prints what
    fanout and people did since: to what was published, to the draft, or to upstream's package at
    the revision that is published. Exits with 3 when the variant is held and no draft
    is to be written. VARIANT is a name, a target, or repository:path.
    """
    with open_program(settings) as program:
        sides = open_sides(program, variant)
        sides.refuse_without_draft()
        lines = _since(sides, against) if each_side else _patch(sides, against)
    text = "".join(f"{line}\n" for line in lines)
    write(printable(text) if sys.stdout.isatty() else text)
    return detailed(ExitCode.OK, changes=bool(lines)) if how["detailed"] else ExitCode.OK


def _patch(sides: Sides, against: str) -> list[str]:
    match against:
        case "published":
            steps = [("published", sides.published())]
        case "draft":
            written, draft = sides.drafted()
            steps = [("written", written), ("draft", draft)]
        case _:
            steps = [("upstream", sides.upstream())]
    steps.append(("rendered", sides.rendered()))
    disputed = [f"# conflict: {conflict} [{conflict.key}]" for conflict in sides.undecided]
    lines = [
        line
        for (old, before), (new, after) in pairwise(steps)
        for line in patch(before, after, (old, new))
    ]
    notes = [f"# note: {note}" for note in sides.notes] if lines else []
    return [*disputed, *notes, *lines]


def _since(sides: Sides, against: str) -> list[str]:
    match against:
        case "published":
            before, after = sides.since_published()
            three = before, sides.rendering(), after
        case "draft":
            written, draft = sides.drafted()
            three = written, sides.rendering(), draft
        case _:
            three = sides.upstream_before(), sides.upstream(), sides.published()
    return list(three_way(*three))

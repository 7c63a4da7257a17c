"""`fanout diff`: compare a variant with its published package, draft or upstream."""

from itertools import pairwise

import click

from fanout.cli.input.options import detailed_option, with_settings
from fanout.cli.input.variant_files import VariantFiles, open_variant_files
from fanout.cli.output.merge_view import format_masked_three_way, print_patch
from fanout.cli.process_exit import ExitCode, detailed_exit_code
from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.package.package_patch import format_masked_patch


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
    the revision that is published. Values of Secrets are masked as `***`. Exits with 3 when the
    variant is held and no draft is to be written. VARIANT is a name, a target, or repository:path.
    """
    with open_program(settings) as program:
        files = open_variant_files(program, variant)
        files.refuse_without_draft()
        lines = _format_three_way(files, against) if each_side else _format_patch(files, against)
    print_patch(lines)
    return detailed_exit_code(ExitCode.OK, changes=bool(lines)) if how["detailed"] else ExitCode.OK


def _format_patch(files: VariantFiles, against: str) -> list[str]:
    match against:
        case "published":
            steps = [("published", files.read_published())]
        case "draft":
            written, draft = files.read_draft_change()
            steps = [("written", written), ("draft", draft)]
        case _:
            steps = [("upstream", files.read_upstream())]
    steps.append(("rendered", files.read_merged()))
    disputed = [f"# conflict: {conflict} [{conflict.key}]" for conflict in files.undecided]
    lines: list[str] = []
    for (old, before), (new, after) in pairwise(steps):
        lines += format_masked_patch(before, after, (old, new))
    notes = [f"# note: {note}" for note in files.notes] if lines else []
    return [*disputed, *notes, *lines]


def _format_three_way(files: VariantFiles, against: str) -> list[str]:
    match against:
        case "published":
            before, after = files.read_published_change()
            three = before, files.read_rendering(), after
        case "draft":
            written, draft = files.read_draft_change()
            three = written, files.read_rendering(), draft
        case _:
            three = files.read_published_upstream(), files.read_upstream(), files.read_published()
    return format_masked_three_way(*three)

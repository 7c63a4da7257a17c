"""`fanout diff`: compare a variant with its published package, draft or upstream."""

from itertools import pairwise

import click

from fanout.cli.input.completion import complete_variants
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, detailed_option, with_settings
from fanout.cli.input.variant_files import open_variant_files
from fanout.cli.output.merge_view import format_masked_three_way, print_patch
from fanout.cli.process_exit import ExitCode, detailed_exit_code
from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.package.package_patch import format_masked_patch


@click.command(cls=VerbCommand)
@click.argument("variant", shell_complete=complete_variants)
@click.option(
    "--against",
    type=click.Choice(["published", "draft", "upstream"]),
    default="published",
    show_default=True,
    help="What to compare the next draft with.",
)
@click.option(
    "--three-way",
    "each_side",
    is_flag=True,
    help="Print what upstream and downstream changed since their common base, and the conflicts.",
)
@detailed_option
@with_settings(READ_OPTIONS)
def command(settings: Settings, variant: str, against: str, each_side: bool, **how: bool) -> int:
    """Compare the next draft of a variant with the published package.

    Prints a patch from the published package to the draft that the next sweep would write. The next
    draft includes downstream edits. With --against upstream, the patch starts from the upstream
    package. With --against draft, prints two patches: the edits that people committed to the
    current draft, and the changes from the current draft to the next draft.

    With --three-way, prints what upstream and downstream changed since their common base. By
    default, the base is the package as fanout published it. The upstream side is the package as it
    would be rendered now, without downstream edits. The downstream side is the package on the
    branch. With --against draft, the base is the draft as fanout wrote it, and the downstream side
    is the draft on its branch. With --against upstream, the base is the upstream package at the
    published revision, and the upstream side is the upstream package at the candidate.

    VARIANT is the name of a variant, its target, or its repository:path. Values of Secrets are
    masked as `***`. If the variant is held, it has no next draft, and the command exits with code
    3.
    """
    with open_program(settings) as program:
        files = open_variant_files(program, variant)
        files.refuse_without_draft()
        written, draft = files.read_draft_change() if against == "draft" else ({}, {})
        lines: list[str] = []
        if each_side:
            match against:
                case "published":
                    before, after = files.read_published_change()
                    sides = before, files.read_rendering(), after
                case "draft":
                    sides = written, files.read_rendering(), draft
                case _:
                    sides = (
                        files.read_published_upstream(),
                        files.read_upstream(),
                        files.read_published(),
                    )
            lines = format_masked_three_way(*sides)
        else:
            match against:
                case "published":
                    steps = [("published", files.read_published())]
                case "draft":
                    steps = [("written", written), ("draft", draft)]
                case _:
                    steps = [("upstream", files.read_upstream())]
            steps.append(("rendered", files.read_merged()))
            for (old, old_files), (new, new_files) in pairwise(steps):
                lines += format_masked_patch(old_files, new_files, (old, new))
            notes = [f"# note: {note}" for note in files.notes] if lines else []
            disputed = [f"# conflict: {it} [{it.key}]" for it in files.undecided]
            lines = [*disputed, *notes, *lines]
    print_patch(lines)
    return detailed_exit_code(ExitCode.OK, changes=bool(lines)) if how["detailed"] else ExitCode.OK

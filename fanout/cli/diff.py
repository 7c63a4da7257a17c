"""`fanout diff`: a variant against its upstream, or against what is published."""

import difflib
from collections.abc import Iterator, Mapping

import click

from fanout.cli.exit_codes import ExitCode
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.cli.variant import Sides, find_case, sides


@click.command()
@click.argument("variant")
@click.option(
    "--against",
    type=click.Choice(["published", "upstream", "draft"]),
    default="published",
    show_default=True,
    help="What the rendering is compared with.",
)
@with_settings()
def command(settings: Settings, variant: str, against: str) -> ExitCode:
    """Compare a variant with what is published.

    Or with its draft, or its upstream. Leaves with 1 when they differ. VARIANT is a name, a
    target, or repository:path.
    """
    with open_program(settings) as program:
        both = sides(program, find_case(program, variant))
    write("".join(f"# conflict: {conflict} [{conflict.key}]\n" for conflict in both.conflicts))
    text = "".join(_differences(_side(both, against), both.rendered, against))
    write(text)
    return ExitCode.DIFFERENCES if text else ExitCode.OK


def _side(both: Sides, name: str) -> Mapping[str, bytes]:
    return {"published": both.published, "upstream": both.upstream, "draft": both.draft}[name]


def _differences(old: Mapping[str, bytes], new: Mapping[str, bytes], name: str) -> Iterator[str]:
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path, b""), new.get(path, b"")
        if before == after:
            continue
        lines = difflib.unified_diff(
            before.decode(errors="replace").splitlines(),
            after.decode(errors="replace").splitlines(),
            f"{name}/{path}" if path in old else "/dev/null",
            f"rendered/{path}" if path in new else "/dev/null",
            lineterm="",
        )
        yield from (f"{line}\n" for line in lines)

"""`fanout render`: the files of a variant as fanout renders them now."""

from pathlib import Path

import click

from fanout.cli.applying import for_cluster
from fanout.cli.directories import new_directory, write_files
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.settings import Settings
from fanout.cli.sides import open_sides
from fanout.cli.start import open_program
from fanout.cli.terminal import say
from fanout.gates.wording import listed


@click.command()
@click.argument("variant")
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the files into this directory, which must be new or empty.",
)
@with_settings()
def command(settings: Settings, variant: str, to: Path | None) -> None:
    """Print the files of a variant.

    As they are rendered for its candidate, each behind `---` and a comment with its path: what a
    cluster takes, so that `kubectl apply -f -` can read it. The Kptfile, local configuration and
    files that are no manifests stay out; with --to, all are written, as kpt takes them. VARIANT is
    a name, a target, or repository:path.
    """
    with open_program(settings) as program:
        files = open_sides(program, variant).rendered()
    if to is not None:
        write_files(new_directory(to), {}, files)
        return
    printed = {path: for_cluster(path, files[path][1]) for path in sorted(files)}
    for path, text in printed.items():
        write(f"---\n# {path}\n{text}" if text else "")
    left = listed(path for path, text in printed.items() if not text)
    if left:
        say(f"left out, not for a cluster: {left}; --to DIR writes all", settings.color)

"""`fanout render`: the files of a variant as fanout renders them now."""

from pathlib import Path

import click

from fanout.cli.directories import new_directory, write_files
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.settings import Settings
from fanout.cli.sides import open_sides
from fanout.cli.start import open_program


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

    As they are rendered for its candidate. VARIANT is a name, a target, or repository:path.
    """
    with open_program(settings) as program:
        files = open_sides(program, variant).rendered()
    if to is not None:
        write_files(new_directory(to), {}, files)
        return
    for path in sorted(files):
        write(f"# {path}\n{files[path][1].decode(errors='replace')}")

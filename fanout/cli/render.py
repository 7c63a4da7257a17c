"""`fanout render`: the files of a variant as fanout renders them now."""

from pathlib import Path

import click

from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.cli.variant import find_case, sides
from fanout.errors import InvalidInput


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
        files = sides(program, find_case(program, variant)).rendered
    if to is not None:
        _write_to(to, dict(files))
        return
    for path in sorted(files):
        write(f"# {path}\n{files[path].decode(errors='replace')}")


def _write_to(directory: Path, files: dict[str, bytes]) -> None:
    if directory.exists() and any(directory.iterdir()):
        raise InvalidInput(
            f"{directory} is not empty", reason="InvalidSetting", remedy="name a new directory"
        )
    for path, data in sorted(files.items()):
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

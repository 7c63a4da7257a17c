"""Creation of files that do not exist yet: nothing is ever overwritten."""

from collections.abc import Mapping
from pathlib import Path

from fanout.cli.command_errors import invalid_setting
from fanout.errors import InvalidInput


def create_files(texts: Mapping[Path, str]) -> None:
    """Create files, with their directories. Raises InvalidInput if one cannot be written."""
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Exclusive creation: a file that somebody wrote in between is not replaced either.
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise build_exists_error([path]) from None
        except OSError as error:
            raise invalid_setting(
                f"{path} cannot be written: {error.strerror}", "choose another directory"
            ) from error


def build_exists_error(paths: list[Path]) -> InvalidInput:
    """Build the error for files that exist already."""
    verb = "exists" if len(paths) == 1 else "exist"
    return invalid_setting(
        f"{', '.join(map(str, paths))} {verb} already; nothing is overwritten",
        "choose another directory or name, or move the file away",
    )

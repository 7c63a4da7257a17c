"""`fanout version`: print the versions that a bug report needs."""

import os
import platform
import re
import subprocess
from importlib import resources
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import click

from fanout.cli.input.options import VerbCommand, with_settings
from fanout.cli.output.printer import format_table, print_value, write_stdout
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.message_commands import DISTRIBUTION


@click.command(cls=VerbCommand)
@with_settings((), formats=REPORT_FORMATS)
def command(settings: Settings) -> None:
    """Print the versions of fanout and its dependencies."""
    versions = _read_versions()
    if settings.output is not OutputFormat.TABLE:
        print_value(versions, settings.output)
        return
    libraries = versions.pop("libraries")
    write_stdout(format_table(["NAME", "VERSION"], [*versions.items(), *libraries.items()]))


def _read_versions() -> dict[str, Any]:
    names = [
        re.split(r"[^\w.-]", requirement)[0]
        for requirement in requires(DISTRIBUTION) or ()
        if "extra ==" not in requirement
    ]
    fanout_version = _read_version(DISTRIBUTION)
    # Of the build of an installed package. An editable install notes it in its version.
    build = resources.files("fanout").joinpath("commit.txt")
    commit = build.read_text(encoding="utf-8").strip() if build.is_file() else ""
    noted = re.search(r"\+g([0-9a-f]{7,40})", fanout_version)
    return {
        "fanout": fanout_version,
        "commit": commit or (noted[1] if noted else "unknown"),
        "python": platform.python_version(),
        "git": _read_git_version(),
        "libraries": {name: _read_version(name) for name in sorted(names)},
    }


def _read_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _read_git_version() -> str:
    try:
        # Variables such as GIT_DIR or GIT_TRACE would change what Git does or prints.
        environment = {"PATH": os.environ.get("PATH", os.defpath)}
        completed = subprocess.run(
            ["git", "--version"], env=environment, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "not installed"
    return completed.stdout.removeprefix("git version").strip()

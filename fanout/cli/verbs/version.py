"""`fanout version`: print the versions that a bug report needs."""

import os
import platform
import re
import subprocess
from importlib import resources
from importlib.metadata import PackageNotFoundError, requires, version

import click

from fanout.cli.input.options import VerbCommand, with_settings
from fanout.cli.output.printer import format_table, print_value, write_stdout
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.message_commands import DISTRIBUTION

_NOT_INSTALLED = "not installed"


@click.command(cls=VerbCommand)
@with_settings((), formats=REPORT_FORMATS)
def command(settings: Settings) -> None:
    """Print the versions of fanout and its dependencies."""
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
    try:
        # Variables such as GIT_DIR or GIT_TRACE would change what Git does or prints.
        environment = {"PATH": os.environ.get("PATH", os.defpath)}
        completed = subprocess.run(
            ["git", "--version"], env=environment, capture_output=True, text=True, check=True
        )
        git_version = completed.stdout.removeprefix("git version").strip()
    except (OSError, subprocess.CalledProcessError):
        git_version = _NOT_INSTALLED
    versions = {
        "fanout": fanout_version,
        "commit": commit or (noted[1] if noted else "unknown"),
        "python": platform.python_version(),
        "git": git_version,
    }
    libraries = {name: _read_version(name) for name in sorted(names)}
    if settings.output is OutputFormat.TABLE:
        write_stdout(format_table(["NAME", "VERSION"], [*versions.items(), *libraries.items()]))
    else:
        print_value({**versions, "libraries": libraries}, settings.output)


def _read_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return _NOT_INSTALLED

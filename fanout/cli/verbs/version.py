"""`fanout version`: what a bug report needs to say."""

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import click

from fanout.cli.options import with_settings
from fanout.cli.output import show_value, table, write
from fanout.cli.settings import Format, Settings


@click.command()
@with_settings(sources=False, formats=(Format.TABLE, Format.JSON, Format.YAML))
def command(settings: Settings) -> None:
    """Print versions of fanout and of what it stands on."""
    found = _versions()
    if settings.output is not Format.TABLE:
        show_value(found, settings.output)
        return
    libraries = found.pop("libraries")
    write(table(["NAME", "VERSION"], [*found.items(), *libraries.items()]))


def _versions() -> dict[str, Any]:
    names = [
        re.split(r"[^\w.-]", requirement)[0]
        for requirement in requires("fanout") or ()
        if "extra ==" not in requirement
    ]
    return {
        "fanout": _version("fanout"),
        "python": platform.python_version(),
        "git": _git(),
        "libraries": {name: _version(name) for name in sorted(names)},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _git() -> str:
    try:
        environment = {"PATH": os.environ.get("PATH", os.defpath)}
        answer = subprocess.run(
            ["git", "--version"], env=environment, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "not installed"
    return answer.stdout.removeprefix("git version").strip()

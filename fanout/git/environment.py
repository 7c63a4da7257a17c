"""The environment of every git process: the caller's own Git settings must change nothing."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

# For measuring; and what GitPython reads, which is nothing to git.
KEPT = ("GIT_TRACE2_EVENT", "GIT_PYTHON_")


# What git is told about memory has to reach the processes that serve a repository on our own disks
# too. Those read neither the configuration of the mirror nor settings in variables.
_SETTINGS: Final = Path(__file__).with_name("global.gitconfig")


def scrubbed(allowed: Collection[str], home: Path) -> dict[str, str]:
    """Variables that are set for every git process (design §9).

    `home` is an empty directory of ours, so that no ``.netrc`` answers for a secret.
    """
    return {
        "GIT_ALLOW_PROTOCOL": ":".join(allowed),
        "GIT_ASKPASS": "",
        "GIT_CONFIG_GLOBAL": str(_SETTINGS),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PROTOCOL_FROM_USER": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": str(home),
        "LANGUAGE": "C",
        "LC_ALL": "C",
        "TZ": "UTC",
    }


def strays(ambient: Mapping[str, str], given: Mapping[str, str]) -> tuple[str, ...]:
    """Variables of Git in the surroundings that no process of ours may see."""
    return tuple(
        sorted(
            name
            for name in ambient
            if name.startswith("GIT_") and name not in given and not name.startswith(KEPT)
        )
    )

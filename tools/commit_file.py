"""Build hook that adds the built commit to the package as the file `fanout/commit.txt`."""

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "fanout/commit.txt"


class CommitFile(BuildHookInterface[Any]):
    """Hook that adds the file, unless the source has it already, as an sdist does.

    An editable install has no such file, as its source changes and Git has the commit.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file below the build directory, and include it in the package."""
        source = Path(self.root) / NAME
        if version == "editable" or source.exists():
            return
        commit = os.environ.get("FANOUT_COMMIT") or _read_commit(self.root)
        if commit:
            path = Path(self.directory) / "commit.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{commit}\n", encoding="utf-8")
            build_data["force_include"][str(path)] = NAME


def _read_commit(root: str) -> str:
    """Return the commit of the work tree at `root`, or "" without a repository or Git."""
    if not (Path(root) / ".git").exists():  # else Git would find a repository further up
        return ""
    try:
        completed = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return completed.stdout.strip()

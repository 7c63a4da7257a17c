"""Makes the bare repositories that files of objects name."""

import subprocess
from pathlib import Path

from fleet import Repo


def bare(path: Path) -> Repo:
    """An empty bare repository."""
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(path)], check=True)
    return Repo(path)


def below(folder: Path) -> dict[str, str]:
    """The files below a folder, by path, as text."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}

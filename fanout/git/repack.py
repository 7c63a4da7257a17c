"""Keeps a mirror quick: every change leaves a pack, and each look-up asks them all."""

from pathlib import Path

from fanout.git.command import GitProgram

MOST_PACKS = 100


def repack_if_due(git: GitProgram, mirror: Path, most: int = MOST_PACKS) -> None:
    """Join small packs when there are too many; nothing is thrown away but duplicates."""
    if sum(1 for _ in (mirror / "objects" / "pack").glob("*.idx")) > most:
        git.run(mirror, ["repack", "-d", "-q", "--geometric=2"])

"""Keeps a mirror quick and small: every change leaves a pack, and each look-up asks them all.

Drafts that were superseded stay behind in those packs. They go when half as many objects have come
as the largest pack has: so a mirror has at most one and a half times what the remote has, and one
round of packs more; and the largest pack is written anew only after it has grown by half.
"""

from pathlib import Path

from fanout.git.command import GitProgram

MOST_PACKS = 100
_FIXED, _EACH = 1072, 28  # bytes of an index: of itself and for each object


def repack_if_due(git: GitProgram, mirror: Path, most: int = MOST_PACKS) -> None:
    """Join packs when there are more than `most`; the caller holds the mirror's lock.

    What no ref leads to any more is left out when all are joined; it is in no remote either.
    """
    indexes = (mirror / "objects" / "pack").glob("*.idx")
    counts = [(index.stat().st_size - _FIXED) // _EACH for index in indexes]
    if len(counts) <= most:
        return
    largest = max(counts)
    if (sum(counts) - largest) * 2 < largest:  # as git counts, so the largest stays as it is
        git.run(mirror, ["repack", "-d", "-q", "--geometric=2"])
    else:
        git.run(mirror, ["repack", "-a", "-d", "-q"])

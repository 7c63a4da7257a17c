"""Repacking of mirrors.

Every change adds a pack, and each object lookup searches all packs. Drafts that were superseded
stay in old packs. They are removed when the other packs have half as many objects as the largest
one: so a mirror has at most one and a half times the remote's objects and one round of packs more,
and the largest pack is written again only after it has grown by half.
"""

from pathlib import Path

from fanout.git.git_command import GitProgram

MAX_PACKS = 100
_INDEX_SIZE, _INDEX_ENTRY_SIZE = 1072, 28  # bytes of an index: of itself and for each object


def repack_if_due(git: GitProgram, mirror: Path, max_packs: int = MAX_PACKS) -> None:
    """Join packs if there are more than `max_packs`; the caller holds the mirror's lock."""
    indexes = (mirror / "objects" / "pack").glob("*.idx")
    # The number of objects follows from the size of the index: no index is opened.
    counts = [(index.stat().st_size - _INDEX_SIZE) // _INDEX_ENTRY_SIZE for index in indexes]
    if len(counts) <= max_packs:
        return
    largest = max(counts)
    # Git's own rule for --geometric=2: while the others have less than half the objects of the
    # largest pack, that pack stays. Otherwise a geometric repack would join it too and keep
    # unreachable objects; a full repack costs as much and drops them.
    if (sum(counts) - largest) * 2 < largest:
        git.run(mirror, ["repack", "-d", "-q", "--geometric=2"])
    else:
        git.run(mirror, ["repack", "-a", "-d", "-q"])

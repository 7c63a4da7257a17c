"""File contents by blob id, joined only when they are read.

Files of the variants of one package share most of their text. The shared pieces are
stored once, and for each file only its own texts. So ten thousand variants that wait to
be written take no more memory than their differences.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class FilledText(NamedTuple):
    """Text made of shared pieces with gaps between them, and the texts that fill the gaps."""

    pieces: list[str]  # every second one is empty
    texts: Sequence[str]  # for each of these

    @property
    def data(self) -> bytes:
        """Complete content, in UTF-8."""
        pieces = self.pieces.copy()
        pieces[1::2] = self.texts
        return "".join(pieces).encode()


class LazyBlobs(Mapping[str, bytes]):
    """Contents by blob id, some stored complete and some as filled texts."""

    __slots__ = ("_complete", "_filled")

    def __init__(self, complete: Mapping[str, bytes], filled: Mapping[str, FilledText]) -> None:
        """Take both mappings, by blob id; no id may be in both."""
        self._complete = complete
        self._filled = filled

    def __getitem__(self, oid: str) -> bytes:
        filled = self._filled.get(oid)
        return self._complete[oid] if filled is None else filled.data

    def __contains__(self, oid: object) -> bool:
        return oid in self._filled or oid in self._complete

    def __iter__(self) -> Iterator[str]:
        yield from self._complete
        yield from self._filled

    def __len__(self) -> int:
        return len(self._complete) + len(self._filled)


class BlobUnion(Mapping[str, bytes]):
    """Union of several mappings of contents.

    Each is read only for the ids that are asked for.
    """

    __slots__ = ("_sources",)

    def __init__(self) -> None:
        self._sources: dict[str, Mapping[str, bytes]] = {}

    def add(self, blobs: Mapping[str, bytes]) -> None:
        """Add all contents of a mapping, which must not be changed afterwards."""
        # Stores the mapping and not its values: reading them here would join all lazy texts
        # at once.
        self._sources.update(dict.fromkeys(blobs, blobs))

    def __getitem__(self, oid: str) -> bytes:
        return self._sources[oid][oid]

    def __contains__(self, oid: object) -> bool:
        return oid in self._sources

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

"""Content of files by blob id, put together when it is asked for.

Files of the variants of one package are much alike. What they share is there once; of each stays
what is its own. So ten thousand variants that wait to be written take no more room than their
differences.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class Filled(NamedTuple):
    """A text as pieces that many share, with room between them, and what is put there in one."""

    pieces: list[str]  # every second one is empty
    texts: Sequence[str]  # for each of these

    @property
    def data(self) -> bytes:
        """The whole content, in UTF-8."""
        whole = self.pieces.copy()
        whole[1::2] = self.texts
        return "".join(whole).encode()


class Blobs(Mapping[str, bytes]):
    """Whole contents, and some that are filled in."""

    __slots__ = ("_filled", "_whole")

    def __init__(self, whole: Mapping[str, bytes], filled: Mapping[str, Filled]) -> None:
        """Both by blob id; no id is in both."""
        self._whole = whole
        self._filled = filled

    def __getitem__(self, oid: str) -> bytes:
        found = self._filled.get(oid)
        return self._whole[oid] if found is None else found.data

    def __contains__(self, oid: object) -> bool:
        return oid in self._filled or oid in self._whole

    def __iter__(self) -> Iterator[str]:
        yield from self._whole
        yield from self._filled

    def __len__(self) -> int:
        return len(self._whole) + len(self._filled)


class Gathered(Mapping[str, bytes]):
    """All that is in some mappings, each asked only for what is wanted of it."""

    __slots__ = ("_homes",)

    def __init__(self) -> None:
        self._homes: dict[str, Mapping[str, bytes]] = {}

    def add(self, blobs: Mapping[str, bytes]) -> None:
        """Take in what the mapping has; it must not be changed afterwards."""
        self._homes.update(dict.fromkeys(blobs, blobs))

    def __getitem__(self, oid: str) -> bytes:
        return self._homes[oid][oid]

    def __contains__(self, oid: object) -> bool:
        return oid in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

"""Objects made of several of Kargo's: each piece carries the place of the one it is from."""

from collections.abc import Iterable, Iterator

from fanout.api.faults import Path
from fanout.api.foreign.assembly import Judge, Units, assemble
from fanout.api.foreign.pieces import Imported, Put, Remark
from fanout.api.kargo.objects import REQUESTS, Item
from fanout.api.kinds import KINDS
from fanout.values import replace

Piece = Put | Remark


def pieces_of(item: Item, pieces: Iterable[Piece], request: int = 0) -> Iterator[Piece]:
    """The pieces with the place of their object in front, and their request at its own."""
    for piece in pieces:
        if isinstance(piece, Put):
            yield replace(piece, source=(item.index, *_restored(piece.source, request)))
        else:
            yield replace(piece, path=(item.index, *_restored(piece.path, request)))


def _restored(path: Path, request: int) -> Path:
    return (*path[:2], request, *path[3:]) if path[1:3] == (REQUESTS, 0) else path


def assembled(
    kind: str, pieces: Iterable[Piece], judge: Judge, units: Units, home: int
) -> Imported:
    """The object, if there is one; its remarks go to the objects that they are about.

    `home`: the place of the one that what is nobody's field is said about.
    """
    result = assemble(KINDS[kind], pieces, judge, units)
    remarks = []
    for remark in result.remarks:
        index, path = home, remark.path
        if path and isinstance(path[0], int):
            index, path = path[0], path[1:]
        remarks.append((index, replace(remark, path=path)))
    return Imported((result.data,) if result.data is not None else (), tuple(remarks))


def joined(parts: Iterable[Imported]) -> Imported:
    """All objects and all remarks, in their order."""
    listed = list(parts)
    objects = (item for part in listed for item in part.objects)
    return Imported(tuple(objects), tuple(said for part in listed for said in part.remarks))

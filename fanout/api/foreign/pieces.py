"""What a translation is made of: fields that were put, remarks about those that were not."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fanout.api.faults import Path
from fanout.values import frozen


@frozen
class Found:
    """A field of the other program's that was found, and where its counterpart is."""

    path: Path
    value: Any
    to: Path
    object: Mapping[str, Any]  # all of it


@frozen
class Put:
    """A value for a field of fanout's, and the field that it comes from."""

    path: Path
    value: Any
    source: Path


@frozen
class Remark:
    """Something to say about a field of the other program's.

    `lost`: it asks for something that the translation does not do. `spoils`: the field of fanout's
    that cannot be used without it; whatever makes no sense without that field goes with it.
    """

    path: Path
    problem: str
    remedy: str = ""
    lost: bool = True
    spoils: Path | None = None


Convert = Callable[[Found], Iterator[Put | Remark]]
Said = tuple[int, Remark]
"""A remark, with the place in the input of the object that it is about."""


@frozen
class Imported:
    """fanout's objects, and what is to be said about each of those they were made of."""

    objects: tuple[Mapping[str, Any], ...]
    remarks: tuple[Said, ...]

    @property
    def complete(self) -> bool:
        """Was everything translated that the objects ask for?"""
        return not any(remark.lost for _, remark in self.remarks)

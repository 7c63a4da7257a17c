"""Two orders: stages by their `after`, so that each is judged later than those before it; and
revisions by age, as the policy's rule yields them.
"""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from fanout.errors import Bug
from fanout.gates.model import StageRule


def topological(stages: Sequence[StageRule]) -> tuple[StageRule, ...]:
    """Stages so that every one comes after those it waits for.

    Raises Bug for cycles, stages that are not there and names used twice: validation refuses them.
    """
    by_name = {stage.name: stage for stage in stages}
    if len(by_name) != len(stages):
        raise Bug("two stages of one policy have the same name")
    waits = {stage.name: stage.after.stages if stage.after else () for stage in stages}
    unknown = {name for names in waits.values() for name in names} - by_name.keys()
    if unknown:
        raise Bug(f"stages {sorted(unknown)} are waited for and do not exist")
    try:
        return tuple(by_name[name] for name in TopologicalSorter(waits).static_order())
    except CycleError as error:
        raise Bug(f"stages wait for each other: {error.args[1]}") from error


class Ages:
    """The revisions that the policy's rule allows, oldest first."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self.allowed = tuple(allowed)
        self._rank: Mapping[str, int] = {name: rank for rank, name in enumerate(self.allowed)}

    def rank(self, revision: str) -> int | None:
        """Its place among those allowed; None when the rule does not allow it (any more)."""
        return self._rank.get(revision)

    def newest(self, revisions: Iterable[str]) -> str:
        """The newest of these that is allowed; "" when none is."""
        known = [name for name in revisions if name in self._rank]
        return max(known, key=self._rank.__getitem__, default="")

    def older(self, one: str, other: str) -> bool:
        """Is the one known to be older than the other?"""
        first, second = self._rank.get(one), self._rank.get(other)
        return first is not None and second is not None and first < second

    def newer_than(self, revision: str) -> tuple[str, ...]:
        """All that are newer; for one that is not allowed, none is known to be."""
        rank = self._rank.get(revision)
        return () if rank is None else self.allowed[rank + 1 :]

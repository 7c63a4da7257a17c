"""Two orders: stages by their `after`, so that each is judged later than those before it; and
revisions by age, as the policy's rule yields them.
"""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from fanout.errors import Bug
from fanout.gates.rules import StageRule
from fanout.package.revision import Version, parse_tag


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
    """Which revision is older: by the policy's rule, else by the versions that they are named for.

    A rule such as `latest` allows one revision at a time, so what is published is often one that is
    not allowed any more. Commits have no order of their own.
    """

    def __init__(self, allowed: Sequence[str]) -> None:
        self.allowed = tuple(allowed)
        self._rank: Mapping[str, int] = {name: rank for rank, name in enumerate(self.allowed)}
        self._versions: dict[str, Version | None] = {}

    def comparable(self, one: str, other: str) -> bool:
        """Is it known which of the two is older?"""
        return (one in self._rank and other in self._rank) or (
            self._version(one) is not None and self._version(other) is not None
        )

    def older(self, one: str, other: str) -> bool:
        """Is the one known to be older than the other?"""
        if one in self._rank and other in self._rank:
            return self._rank[one] < self._rank[other]
        first, second = self._version(one), self._version(other)
        return first is not None and second is not None and first < second

    def newest(self, revisions: Iterable[str]) -> str:
        """The newest of these that is allowed; "" when none is."""
        known = [name for name in revisions if name in self._rank]
        return max(known, key=self._rank.__getitem__, default="")

    def newer_than(self, revision: str) -> tuple[str, ...]:
        """All that are allowed and newer than one that is allowed; of another nobody knows it."""
        if revision not in self._rank:
            return ()
        return self.allowed[self._rank[revision] + 1 :]

    def allows(self, revision: str) -> bool:
        """Does the policy's rule allow it (still)?"""
        return revision in self._rank

    def _version(self, name: str) -> Version | None:
        if name not in self._versions:
            self._versions[name] = parse_tag(name, "")
        return self._versions[name]

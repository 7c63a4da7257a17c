"""Promotion order: stages sorted by `after`, and revisions compared by age."""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from fanout.errors import Bug
from fanout.gates.gate_rules import StageRule
from fanout.package.revision import Version, parse_tag


def sort_stages(stage_rules: Sequence[StageRule]) -> tuple[StageRule, ...]:
    """Sort stages so that each comes after those it waits for.

    Raises Bug for cycles, missing stages and duplicate names, all of which validation refuses.
    """
    by_name = {stage_rule.name: stage_rule for stage_rule in stage_rules}
    if len(by_name) != len(stage_rules):
        raise Bug("two stages of one policy have the same name")
    upstream_names = {
        stage_rule.name: stage_rule.after.stages if stage_rule.after else ()
        for stage_rule in stage_rules
    }
    unknown = {name for names in upstream_names.values() for name in names} - by_name.keys()
    if unknown:
        raise Bug(f"stages of `after` do not exist: {sorted(unknown)}")
    try:
        return tuple(by_name[name] for name in TopologicalSorter(upstream_names).static_order())
    except CycleError as error:
        raise Bug(f"stages form a cycle: {error.args[1]}") from error


class RevisionAges:
    """Ages of revisions: by the policy's rule, else by the versions in their names.

    A rule such as `latest` allows one revision at a time, so published revisions are often
    no longer allowed. Commits have no order of their own.
    """

    def __init__(self, revisions: Sequence[str]) -> None:
        self.allowed = tuple(revisions)
        self._rank: Mapping[str, int] = {name: rank for rank, name in enumerate(self.allowed)}
        self._versions: dict[str, Version | None] = {}

    def are_comparable(self, revision: str, other: str) -> bool:
        """Return whether the order of the two revisions is known."""
        return (revision in self._rank and other in self._rank) or (
            self._version(revision) is not None and self._version(other) is not None
        )

    def is_older(self, revision: str, other: str) -> bool:
        """Return whether the first revision is known to be older than the second."""
        if revision in self._rank and other in self._rank:
            return self._rank[revision] < self._rank[other]
        # By name only where the rule does not order them, as for a tag that was deleted since.
        first, second = self._version(revision), self._version(other)
        return first is not None and second is not None and first < second

    def newest(self, revisions: Iterable[str]) -> str:
        """Return the newest of these revisions that is allowed, "" if none is."""
        allowed = [name for name in revisions if name in self._rank]
        return max(allowed, key=self._rank.__getitem__, default="")

    def newer_than(self, revision: str) -> tuple[str, ...]:
        """List the newer allowed revisions, none if the given one is not allowed itself."""
        if revision not in self._rank:
            return ()
        return self.allowed[self._rank[revision] + 1 :]

    def is_allowed(self, revision: str) -> bool:
        """Return whether the policy's rule allows the revision."""
        return revision in self._rank

    def _version(self, revision: str) -> Version | None:
        if revision not in self._versions:
            self._versions[revision] = parse_tag(revision, "")
        return self._versions[revision]

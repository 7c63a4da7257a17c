"""Matching of evidence at commits to published and drafted packages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fanout.errors import FanoutError
from fanout.gates.gate_facts import CheckReading
from fanout.plan.gates.variant_facts import NO_EVIDENCE, ObservedEvidence
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.ports import GitStore, ObjectReader

_COMMIT_ID_LENGTH = 40  # digits of a commit's id


class _PackageLocation(NamedTuple):
    """Location and tree of a package that evidence may refer to."""

    variant: str
    path: str
    tree: str
    drafted: bool


def match_evidence(
    commits: Iterable[str],
    variants: Sequence[ObservedVariant],
    git: GitStore,
    readings: Mapping[str, Sequence[CheckReading]],
) -> dict[str, ObservedEvidence]:
    """Return by variant the commits that have its published or drafted package.

    Evidence at a commit on the branch counts for every variant whose package tree at that
    commit equals its published tree; before publication, the tree of its draft. So squash
    and rebase lose no evidence (design §5). Commits reported by machines are matched with
    their own variant only, and `readings` (by variant) are part of the result.
    """
    evidence_commits = frozenset(commits)
    claimed_commits = {
        name: {reading.observed_revision for reading in variant_readings}
        for name, variant_readings in readings.items()
    }
    evidence_by_variant = {
        name: ObservedEvidence(readings=tuple(variant_readings))
        for name, variant_readings in readings.items()
    }
    if not evidence_commits and not claimed_commits:
        return evidence_by_variant
    for repository_state, locations in _group_by_repository(variants):
        claimed_here = {
            commit
            for location in locations
            for commit in claimed_commits.get(location.variant, ())
            if len(commit) == _COMMIT_ID_LENGTH
        }
        if not evidence_commits and not claimed_here:
            continue
        with git.reader(repository_state.remote) as reader:
            for commit in sorted(evidence_commits | claimed_here):
                relevant_locations = [
                    it
                    for it in locations
                    if commit in evidence_commits or commit in claimed_commits.get(it.variant, ())
                ]
                for location in _match_locations(
                    commit, relevant_locations, repository_state.head, reader
                ):
                    evidence = evidence_by_variant.get(location.variant, NO_EVIDENCE)
                    evidence_by_variant[location.variant] = evidence.with_commit(
                        commit, drafted=location.drafted
                    )
    return evidence_by_variant


def _match_locations(
    commit: str, locations: Sequence[_PackageLocation], head: str, reader: ObjectReader
) -> Iterator[_PackageLocation]:
    """Yield the locations whose tree at the commit matches; none if it is no commit."""
    try:
        states = reader.paths(commit, {location.path for location in locations})
        on_branch = bool(head) and reader.contains(head, commit)
    # No error of the policy: records are written by anybody who may report evidence.
    except FanoutError:  # it is in no mirror, or no commit: whoever named it may have made it up
        return
    for location in locations:
        # Anybody can push a commit with the right tree to some other branch, so for a published
        # package only commits of the published branch count.
        if states[location.path].tree == location.tree and (location.drafted or on_branch):
            yield location


def _group_by_repository(
    variants: Sequence[ObservedVariant],
) -> list[tuple[RepositoryState, list[_PackageLocation]]]:
    locations_by_repository: dict[str, tuple[RepositoryState, list[_PackageLocation]]] = {}
    for variant in variants:
        spec, home, draft = variant.spec, variant.package_location, variant.draft
        located: list[tuple[RepositoryState, str, str, bool]] = []
        if variant.published is not None:
            located.append((home.repository_state, home.path, variant.published.tree, False))
        if draft is not None and draft.tree is not None:
            located.append((variant.repository_state, spec.path, draft.tree, True))
        for state, path, tree, is_drafted in located:
            if state.failure is None:
                group = locations_by_repository.setdefault(state.identity, (state, []))[1]
                group.append(_PackageLocation(spec.name, path, tree, is_drafted))
    return [locations_by_repository[key] for key in sorted(locations_by_repository)]

"""Matching of evidence at commits to published and drafted packages."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fanout.errors import FanoutError
from fanout.gates.gate_facts import CheckReading
from fanout.plan.gates.variant_facts import NO_EVIDENCE, ObservedEvidence
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.ports import GitStore

_COMMIT_ID_LENGTH = 40  # digits of a commit's id


class _PackageLocation(NamedTuple):
    """Location and tree of a package that evidence may refer to."""

    variant: str
    path: str
    tree: str
    drafted: bool


def match_evidence(
    commits: frozenset[str],
    variants: Sequence[ObservedVariant],
    git: GitStore,
    readings: Mapping[str, Sequence[CheckReading]],
) -> dict[str, ObservedEvidence]:
    """Return by variant the commits that have its published or drafted package.

    Evidence at a commit on the branch counts for every variant whose package tree at that
    commit equals its published tree; before publication, the tree of its draft. So squash
    and rebase lose no evidence. Commits reported by machines are matched with
    their own variant only, and `readings` (by variant) are part of the result.
    """
    evidence = {name: ObservedEvidence(readings=tuple(readings[name])) for name in readings}
    if not commits and not readings:
        return evidence
    claims = {
        name: {
            it.observed_revision
            for it in readings[name]
            if len(it.observed_revision) == _COMMIT_ID_LENGTH
        }
        for name in readings
    }
    groups: dict[str, tuple[RepositoryState, list[_PackageLocation]]] = {}
    for variant in variants:
        spec, home, draft = variant.spec, variant.package_location, variant.draft
        located: list[tuple[RepositoryState, _PackageLocation]] = []
        if variant.published is not None:
            package = _PackageLocation(spec.name, home.path, variant.published.tree, False)
            located.append((home.repository_state, package))
        if draft is not None and draft.tree is not None:
            package = _PackageLocation(spec.name, spec.path, draft.tree, True)
            located.append((variant.repository_state, package))
        for state, package in located:
            if state.failure is None:
                groups.setdefault(state.identity, (state, []))[1].append(package)
    for _, (repository_state, locations) in sorted(groups.items()):
        if not commits and not any(claims.get(it.variant) for it in locations):
            continue
        head = repository_state.head
        with git.reader(repository_state.remote) as reader:
            for commit in sorted(commits.union(*(claims.get(it.variant, ()) for it in locations))):
                candidates = locations
                if commit not in commits:
                    candidates = [it for it in locations if commit in claims.get(it.variant, ())]
                try:
                    states = reader.paths(commit, {it.path for it in candidates})
                    on_branch = bool(head) and reader.contains(head, commit)
                except FanoutError:
                    # It is in no mirror, or no commit: whoever named it may have made it up. No
                    # error of the policy: anybody who may report evidence writes records.
                    continue
                for name, path, tree, drafted in candidates:
                    # Anybody can push a commit with the right tree to some other branch, so for a
                    # published package only commits of the published branch count.
                    if states[path].tree == tree and (drafted or on_branch):
                        known = evidence.get(name, NO_EVIDENCE)
                        evidence[name] = known.with_commit(commit, drafted=drafted)
    return evidence

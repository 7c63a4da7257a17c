"""History of one policy, read from its records branch and its downstream repositories.

Everything is read from mirrors, in process, after a pass has listed the repositories; no program is
started for a policy, a variant or a publication.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from fanout.plan.history.admission import find_admission
from fanout.plan.history.history_entry import HistoryEntry, merge_publications
from fanout.plan.history.publication_commit import PublicationCommit, parse_publication_commit
from fanout.plan.history.publication_evidence import (
    RecordIndex,
    index_records,
    list_approvals,
    list_evidence,
)
from fanout.plan.history.recorded_publications import (
    RecordedHistory,
    RecordedPublication,
    VerdictChange,
    derive_history,
)
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.records.policy_records import RecordsKey
from fanout.plan.rendered_variant import RenderedVariant
from fanout.ports import ObjectReader
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.rollback.publication_history import (
    PublicationHistory,
    PublicationMemo,
    parse_publication_number,
)
from fanout.reconcile.world import World
from fanout.values import frozen, replace


@frozen
class PolicyHistory:
    """Publications of a policy and verdicts of its stages, oldest first."""

    entries: tuple[HistoryEntry, ...]
    verdicts: tuple[VerdictChange, ...]


def read_policy_history(world: World, item: PolicyResult) -> PolicyHistory:
    """Read the history of a policy, or of a variant written by hand. Raises Unavailable."""
    resolved = item.resolved_policy
    is_policy = resolved.upstream_policy is not None
    key = RecordsKey(resolved.namespace, resolved.name if is_policy else "")
    history = derive_history(world.records.read_status_revisions(key))
    if not is_policy:
        publications = tuple(it for it in history.publications if it.variant == resolved.name)
        history = RecordedHistory(publications, ())
    with ExitStack() as stack:
        repositories = _Repositories(world, _find_states(item), stack)
        unrecorded = _find_unrecorded(item.variants, history.publications, repositories)
        merged = merge_publications(
            [repositories.date_recovered(it) for it in history.publications], unrecorded
        )
        index = index_records(item.records)
        entries = tuple(_build_entry(it, item, index, repositories) for it in merged)
    return PolicyHistory(entries, history.verdicts)


def _find_states(item: PolicyResult) -> dict[str, RepositoryState]:
    """Return the downstream repositories that could be read, by identity."""
    states = (
        *item.repository_states,
        *(variant.observed.repository_state for variant in item.variants),
    )
    return {state.identity: state for state in states if state.failure is None}


@dataclass(slots=True)
class _Repositories:
    """Readers of the downstream repositories of a policy, opened on demand, one each."""

    world: World
    states: dict[str, RepositoryState]
    stack: ExitStack
    memo: PublicationMemo = field(default_factory=PublicationMemo)
    _readers: dict[str, ObjectReader] = field(default_factory=dict)
    _commits: dict[tuple[str, str], PublicationCommit | None] = field(default_factory=dict)

    def reader(self, state: RepositoryState) -> ObjectReader:
        if state.remote.url not in self._readers:
            reader = self.stack.enter_context(self.world.git.reader(state.remote))
            self._readers[state.remote.url] = reader
        return self._readers[state.remote.url]

    def commit(self, publication: RecordedPublication) -> PublicationCommit | None:
        """Return the commit of a publication; None if it cannot be read."""
        key = (publication.repository, publication.line.merge)
        if key not in self._commits:
            self._commits[key] = self._read_commit(*key)
        return self._commits[key]

    def _read_commit(self, repository: str, oid: str) -> PublicationCommit | None:
        state = self.states.get(repository)
        if state is None or not oid or not self.reader(state).has(oid):
            return None
        identity = self.world.setup.identity
        own_identity = f"{identity.name} <{identity.email}>"
        return parse_publication_commit(self.reader(state).commit(oid), own_identity)

    def has_package(self, publication: RecordedPublication, commit: str) -> bool:
        """Return whether the package at a commit is the published one."""
        state = self.states.get(publication.repository)
        if state is None or not self.reader(state).has(commit):
            return False
        paths = self.reader(state).paths(commit, [publication.path])
        return paths[publication.path].tree == publication.line.tree

    def date_recovered(self, publication: RecordedPublication) -> RecordedPublication:
        """Return a publication that was recorded late with the time of its commit."""
        commit = self.commit(publication) if publication.is_recovered else None
        if commit is None:
            return publication
        line = publication.line
        return replace(publication, line=replace(line, at=min(line.at, commit.at)))


def _find_unrecorded(
    variants: Sequence[RenderedVariant],
    recorded: Sequence[RecordedPublication],
    repositories: _Repositories,
) -> Iterator[RecordedPublication]:
    """Yield publications that repositories show and the records do not have."""
    numbers: dict[tuple[str, str], set[int]] = {}
    commits: dict[tuple[str, str], set[str]] = {}
    for publication in recorded:
        place = (publication.repository, publication.path)
        number = parse_publication_number(publication.line.tag, publication.path)
        numbers.setdefault(place, set()).add(number)
        commits.setdefault(place, set()).add(publication.line.merge)
    for variant in variants:
        state, spec = variant.observed.repository_state, variant.spec
        place = (state.identity, spec.path)
        newest = state.publication_numbers.get(spec.path, 0)
        missing = set(range(1, newest + 1)) - numbers.get(place, set())
        if not missing or place[0] not in repositories.states:
            continue
        reader = repositories.reader(state)
        publications = PublicationHistory(reader, state, spec, repositories.memo)
        for number in sorted(missing):
            line = publications.describe_numbered(number)
            if line is not None and line.merge not in commits.get(place, ()):
                yield RecordedPublication(
                    variant=spec.name,
                    stage=spec.stage,
                    repository=state.identity,
                    path=spec.path,
                    line=line,
                    is_recovered=True,
                )


def _build_entry(
    publication: RecordedPublication,
    item: PolicyResult,
    index: RecordIndex,
    repositories: _Repositories,
) -> HistoryEntry:
    commit = repositories.commit(publication)
    reported = index.evidence.get((publication.stage, ""), ())
    commits = {it.spec["commit"] for it in reported}
    same_commits = [it for it in commits if repositories.has_package(publication, it)]
    return HistoryEntry(
        publication,
        find_admission(publication, commit, item.records),
        commit,
        list_approvals(publication, commit, index),
        list_evidence(publication, index, same_commits),
    )

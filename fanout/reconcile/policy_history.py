"""History of one policy, read from its records branch and its downstream repositories.

Everything is read from mirrors, in process, after a pass has listed the repositories; no program is
started for a policy, a variant or a publication. Without a repository that cannot be read, its
publications are those on record, and what only its commits show is missing.
"""

from collections.abc import Iterable, Mapping, Sequence

from fanout.errors import FanoutError
from fanout.groups import group_pairs
from fanout.plan.history.admission import (
    find_admission,
    index_records,
    list_approvals,
    list_evidence,
)
from fanout.plan.history.recorded_publications import (
    HistoryEntry,
    PublicationCommit,
    RecordedHistory,
    RecordedPublication,
    VerdictChange,
    derive_history,
    merge_publications,
    parse_publication_commit,
)
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.rendered_variant import RenderedVariant
from fanout.ports import ObjectReader
from fanout.reconcile.history.publication_history import PublicationHistory, PublicationMemo
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.world import World
from fanout.selection.ref_names import parse_publication_number
from fanout.values import Value, field, replace


class RepositoryHistory(Value):
    """Commits of publications, publications that are not on record, and packages of reports."""

    commits: Mapping[str, PublicationCommit] = field(default_factory=dict)  # by commit id
    unrecorded: tuple[RecordedPublication, ...] = ()
    # Commits that reports name, by stage, path and tree of the package there.
    reported: Mapping[tuple[str, str, str], Sequence[str]] = field(default_factory=dict)


def read_repository_history(
    reader: ObjectReader,
    state: RepositoryState,
    variants: Iterable[RenderedVariant],
    recorded: Sequence[RecordedPublication],
    reported_commits: Mapping[str, Iterable[str]],
    own_identity: str,
) -> RepositoryHistory:
    """Read what the mirror of one repository shows.

    `recorded`: its publications on record; `reported_commits`: commits that evidence names, by
    stage; `own_identity`: "name <email>" of fanout's commits. Raises Unavailable, InvalidInput.
    """
    numbers = group_pairs(
        (it.path, parse_publication_number(it.line.tag, it.path)) for it in recorded
    )
    merges_by_path = group_pairs((it.path, it.line.merge) for it in recorded)
    memo = PublicationMemo()
    unrecorded: list[RecordedPublication] = []
    for spec in (variant.spec for variant in variants):
        newest = state.publication_numbers.get(spec.path, 0)
        missing = set(range(1, newest + 1)).difference(numbers.get(spec.path, ()))
        history = PublicationHistory(reader, state, spec, memo)
        unrecorded += [
            RecordedPublication(
                variant=spec.name,
                stage=spec.stage,
                repository=state.identity,
                path=spec.path,
                line=line,
                is_recovered=True,
            )
            for line in map(history.describe_numbered, sorted(missing))
            if line is not None and line.merge not in merges_by_path.get(spec.path, ())
        ]
    publications = (*recorded, *unrecorded)
    commits = {
        oid: parse_publication_commit(reader.commit(oid), own_identity)
        for oid in sorted({it.line.merge for it in publications if it.line.merge})
        if reader.has(oid)
    }
    paths = group_pairs((it.stage, it.path) for it in publications)
    reported: dict[tuple[str, str, str], list[str]] = {}
    for stage in paths.keys() & reported_commits.keys():
        for oid in sorted(it for it in reported_commits[stage] if reader.has(it)):
            for path, package in reader.paths(oid, sorted(set(paths[stage]))).items():
                if package.tree is not None:
                    reported.setdefault((stage, path, package.tree), []).append(oid)
    return RepositoryHistory(commits, tuple(unrecorded), reported)


_UNREAD = RepositoryHistory()


class PolicyHistory(Value):
    """Publications of a policy and verdicts of its stages, oldest first."""

    entries: tuple[HistoryEntry, ...]
    verdicts: tuple[VerdictChange, ...]
    failures: Mapping[str, FanoutError] = field(default_factory=dict)  # by URL of a repository


def read_policy_history(world: World, item: PolicyResult) -> PolicyHistory:
    """Read the history of a policy, or of a variant written by hand.

    Raises Unavailable if the records cannot be read.
    """
    resolved = item.resolved_policy
    history = derive_history(world.records.read_status_revisions(resolved.records_key))
    if resolved.upstream_policy is None:
        publications = tuple(it for it in history.publications if it.variant == resolved.name)
        history = RecordedHistory(publications, ())
    index = index_records(item.records)
    variants_by_place = group_pairs(
        (it.observed.repository_state.identity, it) for it in item.variants
    )
    recorded_by_place = group_pairs((it.repository, it) for it in history.publications)
    identity = world.setup.identity
    repositories: dict[str, RepositoryHistory] = {}
    failures: dict[str, FanoutError] = {}
    states = (*item.repository_states, *(it.observed.repository_state for it in item.variants))
    for place, state in {it.identity: it for it in states}.items():
        try:
            if state.failure is not None:
                raise state.failure
            # One reader after the other: an error is then about the repository that is open.
            with world.git.reader(state.remote) as reader:
                repositories[place] = read_repository_history(
                    reader,
                    state,
                    variants_by_place.get(place, ()),
                    recorded_by_place.get(place, ()),
                    index.reported_commits,
                    f"{identity.name} <{identity.email}>",
                )
        except FanoutError as error:
            failures[state.remote.url] = error
    recorded: list[RecordedPublication] = []
    for publication in history.publications:
        repository = repositories.get(publication.repository, _UNREAD)
        line = publication.line
        commit = repository.commits.get(line.merge) if publication.is_recovered else None
        if commit is not None:  # it was recorded late, and has the time of its commit
            line = replace(line, at=min(line.at, commit.at))
        recorded.append(replace(publication, line=line))
    merged = merge_publications(
        recorded, [it for repository in repositories.values() for it in repository.unrecorded]
    )
    entries = []
    for publication in merged:
        repository = repositories.get(publication.repository, _UNREAD)
        commit = repository.commits.get(publication.line.merge)
        package = publication.stage, publication.path, publication.line.tree
        entries.append(
            HistoryEntry(
                publication,
                find_admission(publication, commit, item.records),
                list_approvals(publication, commit, index),
                list_evidence(publication, index, repository.reported.get(package, ())),
            )
        )
    return PolicyHistory(tuple(entries), history.verdicts, failures)

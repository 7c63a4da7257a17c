"""History of one policy, read from its records branch and its downstream repositories.

Everything is read from mirrors, in process, after a pass has listed the repositories; no program is
started for a policy, a variant or a publication. Without a repository that cannot be read, its
publications are those on record, and what only its commits show is missing.
"""

from collections.abc import Mapping, Sequence

from fanout.errors import FanoutError
from fanout.plan.history.admission import find_admission
from fanout.plan.history.history_entry import HistoryEntry, merge_publications
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
from fanout.plan.records.policy_records import RecordsKey
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.history.repository_history import RepositoryHistory, read_repository_history
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.world import World
from fanout.values import Value, field, replace

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
    is_policy = resolved.upstream_policy is not None
    key = RecordsKey(resolved.namespace, resolved.name if is_policy else "")
    history = derive_history(world.records.read_status_revisions(key))
    if not is_policy:
        publications = tuple(it for it in history.publications if it.variant == resolved.name)
        history = RecordedHistory(publications, ())
    index = index_records(item.records)
    repositories, failures = _read_repositories(world, item, history.publications, index)
    merged = merge_publications(
        [_date_recovered(it, repositories) for it in history.publications],
        [it for repository in repositories.values() for it in repository.unrecorded],
    )
    entries = tuple(_build_entry(it, item, index, repositories) for it in merged)
    return PolicyHistory(entries, history.verdicts, failures)


def _read_repositories(
    world: World,
    item: PolicyResult,
    publications: Sequence[RecordedPublication],
    index: RecordIndex,
) -> tuple[Mapping[str, RepositoryHistory], Mapping[str, FanoutError]]:
    """Return what each downstream repository shows, by identity, and the failures by URL."""
    variants: dict[str, list[RenderedVariant]] = {}
    recorded: dict[str, list[RecordedPublication]] = {}
    for variant in item.variants:
        variants.setdefault(variant.observed.repository_state.identity, []).append(variant)
    for publication in publications:
        recorded.setdefault(publication.repository, []).append(publication)
    identity = world.setup.identity
    own_identity = f"{identity.name} <{identity.email}>"
    histories: dict[str, RepositoryHistory] = {}
    failures: dict[str, FanoutError] = {}
    states = (*item.repository_states, *(it.observed.repository_state for it in item.variants))
    for name, state in {it.identity: it for it in states}.items():
        try:
            if state.failure is not None:
                raise state.failure
            # One reader after the other: an error is then about the repository that is open.
            with world.git.reader(state.remote) as reader:
                histories[name] = read_repository_history(
                    reader,
                    state,
                    variants.get(name, ()),
                    recorded.get(name, ()),
                    index.reported_commits,
                    own_identity,
                )
        except FanoutError as error:
            failures[state.remote.url] = error
    return histories, failures


def _date_recovered(
    publication: RecordedPublication, repositories: Mapping[str, RepositoryHistory]
) -> RecordedPublication:
    """Return a publication that was recorded late with the time of its commit."""
    repository = repositories.get(publication.repository, _UNREAD)
    commit = repository.find_commit(publication) if publication.is_recovered else None
    if commit is None:
        return publication
    line = publication.line
    return replace(publication, line=replace(line, at=min(line.at, commit.at)))


def _build_entry(
    publication: RecordedPublication,
    item: PolicyResult,
    index: RecordIndex,
    repositories: Mapping[str, RepositoryHistory],
) -> HistoryEntry:
    repository = repositories.get(publication.repository, _UNREAD)
    commit = repository.find_commit(publication)
    return HistoryEntry(
        publication,
        find_admission(publication, commit, item.records),
        commit,
        list_approvals(publication, commit, index),
        list_evidence(publication, index, repository.find_reported(publication)),
    )

"""Observer of forges: the pull requests of fanout in repositories that have a forge.

Which requests there are to ask about, Git and the records say: branches of drafts, and requests
that are on record and not over. Hosts are asked at the same time: one search each says what
changed, and the repositories with changes are read in bounded threads. What fails stays with its
repository.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from fanout.api.git_repository import ForgeType, Repository
from fanout.api.upstream_policy import DraftPer
from fanout.errors import ErrorLocation, FanoutError, InvalidInput
from fanout.plan.drafts.draft_location import draft_branch
from fanout.plan.evidence.due_checks import StatusSubject, has_status_checks
from fanout.plan.observation.forge_state import ForgeState
from fanout.plan.observation.observed_request import RepositoryName
from fanout.plan.observation.repository_state import RepositoryAccess, RepositoryState
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.plan.records.policy_status import RequestLine
from fanout.ports import Forge, ForgeDirectory, GitStore, RequestSearch
from fanout.reconcile.observation.repository_access import build_remote
from fanout.reconcile.ownership.path_ownership import RecordedPaths
from fanout.reconcile.pass_scope import PassScope
from fanout.reconcile.pull_requests.forge_reading import ForgeReader, HostedRepository
from fanout.reconcile.pull_requests.other_request_reader import (
    OtherRequestReader,
    has_same_requests,
)
from fanout.reconcile.pull_requests.request_memo import (
    LONG_AGO,
    RACY_PERIOD,
    HostMemo,
    RequestMemos,
)
from fanout.reconcile.selection.policy_settings import get_draft_per
from fanout.telemetry.error_isolation import BARRIER, run_isolated
from fanout.values import replace

_CALLS_AT_ONCE = 8  # to one host; its governor may let fewer through
# Where nothing is known yet, only the time of the host matters, which any search answers.
_NOTHING_SINCE = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class RequestObserver:
    """Reads the states of forges; one per process."""

    git: GitStore
    forges: ForgeDirectory
    install: str
    memos: RequestMemos = field(default_factory=RequestMemos)
    hosted_urls: frozenset[str] = frozenset()  # of repositories with a forge in the last pass
    # By key: the state in Git and the same state with that of its forge.
    _attached: dict[str, tuple[RepositoryState, RepositoryState]] = field(default_factory=dict)

    def attach_forges(
        self,
        repositories: Mapping[str, Repository],
        states: Mapping[str, RepositoryState],
        scope: PassScope,
    ) -> dict[str, RepositoryState]:
        """Return the states, those of repositories with a forge together with its state.

        `repositories` and `states` are by identity of the Repository. Equal observations give
        the same object, because memos compare by identity.
        """
        names = {
            build_remote(it).access: it.identity
            for it in repositories.values()
            if it.spec.forge.type is not ForgeType.NONE
        }
        self.hosted_urls = frozenset()
        if not names:
            return dict(states)
        # Several Repository objects may share one state; it is asked about once.
        hosted_states = {id(it): it for it in states.values() if it.remote.access in names}
        self.hosted_urls = frozenset(it.remote.url for it in hosted_states.values())
        forge_states = self._read_forges(hosted_states.values(), scope, names)
        attached = {key: self._attach(it, forge_states[key]) for key, it in hosted_states.items()}
        return {key: attached.get(id(state), state) for key, state in states.items()}

    def digest_known(self, urls: Iterable[str]) -> str:
        """Return a digest of what is known of the requests on the hosts of these repositories.

        Raises FanoutError.
        """
        digests = {it.account_digest for it, _ in map(self.forges.forge_of, urls)}
        return " ".join(self.memos.host(it).digest_requests() for it in sorted(digests))

    def digest_unchanged(self, urls: Sequence[str]) -> str:
        """Search the hosts; return the digest of what is known, or "" if it is to be read again.

        Raises FanoutError.
        """
        located = [self.forges.forge_of(url) for url in urls]
        instants: dict[str, datetime] = {}
        for account_digest, forge in {it.account_digest: it for it, _ in located}.items():
            memo = self.memos.host(account_digest)
            if memo.searched is None:
                return ""
            instants[account_digest] = _search(forge, memo)
            if not memo.is_settled():
                return ""

        def is_same(forge: Forge, name: RepositoryName) -> bool:
            memo = self.memos.host(forge.account_digest).repository(name)
            return has_same_requests(forge, name, memo, instants[forge.account_digest])

        with ThreadPoolExecutor(_CALLS_AT_ONCE) as threads:
            if not all(threads.map(is_same, *zip(*located, strict=True))):
                return ""
        return self.digest_known(urls)

    def _attach(self, state: RepositoryState, forge_state: ForgeState) -> RepositoryState:
        former_state, former = self._attached.get(state.key, (None, None))
        if former is not None and former_state is state and former.forge == forge_state:
            return former
        attached = replace(state, forge=forge_state)
        # What is declared is wrong. As with a repository that cannot be listed, nothing is written
        # there until it is corrected.
        if isinstance(forge_state.failure, InvalidInput) and state.failure is None:
            attached = RepositoryState(
                remote=state.remote,
                branch=state.branch,
                refs=state.refs,
                forge=forge_state,
                failure=forge_state.failure,
            )
        self._attached[state.key] = state, attached
        return attached

    def _read_forges(
        self,
        states: Iterable[RepositoryState],
        scope: PassScope,
        names: Mapping[RepositoryAccess, str],
    ) -> Mapping[int, ForgeState]:
        """Return the states of the forges, by the id of the repository's state.

        `names` are the identities of the Repositories, by access.
        """
        # Of all policies, by repository and full ref of the head.
        recorded: dict[str, dict[str, RequestLine]] = {}
        for policy_state in scope.policy_states.values():
            for (place, head_ref), line in policy_state.status.requests.items():
                recorded.setdefault(place, {})[head_ref] = line
        subjects = _find_status_subjects(scope)
        granted_heads = _find_granted_heads(scope, self.install)
        owned_paths = find_owned_paths(scope.path_ownership.recorded_paths, scope.policy_states)
        forge_states: dict[int, ForgeState] = {}
        by_account: dict[str, list[HostedRepository]] = {}
        for state in states:
            located = run_isolated(partial(self.forges.forge_of, state.remote.url))
            if isinstance(located, FanoutError):
                name_of_object = names[state.remote.access]
                located.where = ErrorLocation(name_of_object, "spec.url")
                forge_states[id(state)] = ForgeState(host="", failure=located)
                continue
            forge, name = located
            if state.failure is not None:
                forge_states[id(state)] = ForgeState(host=forge.host, failure=state.failure)
                continue
            repository = HostedRepository(
                state=state,
                recorded=recorded.get(state.identity, {}),
                granted_heads=frozenset(granted_heads.get(state.identity, ())),
                status_subjects=subjects.get(state.identity, ()),
                owned_paths=with_observed_paths(owned_paths, state),
                forge=forge,
                name=name,
            )
            by_account.setdefault(forge.account_digest, []).append(repository)
        if by_account:
            with ThreadPoolExecutor(len(by_account)) as threads:
                for host_states in threads.map(self._read_host, by_account.values()):
                    forge_states |= host_states
        return forge_states

    def _read_host(self, repositories: Sequence[HostedRepository]) -> Mapping[int, ForgeState]:
        """Return the states of all repositories of one host."""
        forge = repositories[0].forge
        memo = self.memos.host(forge.account_digest)
        instant = run_isolated(partial(_search, forge, memo))
        if isinstance(instant, FanoutError):
            failed = ForgeState(host=forge.host, login=memo.login, failure=instant)
            return {id(it.state): failed for it in repositories}
        reader = ForgeReader(git=self.git, install=self.install, memo=memo, instant=instant)
        with ThreadPoolExecutor(min(_CALLS_AT_ONCE, len(repositories))) as threads:
            outcomes = threads.map(partial(_read_contained, reader), repositories)
            host_states = {
                id(it.state): outcome for it, outcome in zip(repositories, outcomes, strict=True)
            }
        self.memos.store(forge.account_digest)
        return host_states


def _search(forge: Forge, memo: HostMemo) -> datetime:
    """Mark what changed on the host in its memo; return the host's time before all readings.

    Of a host that cannot be searched, or does not say its time, all is read in each pass.
    """
    if not memo.login:
        memo.login = forge.login()
        memo.has_changed = True
    instant: datetime | None = None
    if isinstance(forge, RequestSearch):
        since = _NOTHING_SINCE if memo.searched is None else memo.searched - RACY_PERIOD
        searched = forge.search_requests(since)
        memo.mark_changed(searched.matches)
        instant = memo.searched = searched.instant
    if instant is None:
        memo.repositories.clear()
    return instant or LONG_AGO


def _read_contained(reader: ForgeReader, repository: HostedRepository) -> ForgeState:
    """Return the forge state of a repository; a failure becomes part of it."""
    try:
        with BARRIER:
            # First the own requests: reading them may tell the rules of the branch.
            state = reader.read_state(repository)
            others = OtherRequestReader(reader=reader, repository=repository)
            return replace(state, other_requests=others.read_requests())
    except FanoutError as error:
        return ForgeState(host=repository.forge.host, login=reader.memo.login, failure=error)


def _find_granted_heads(scope: PassScope, install: str) -> Mapping[str, Set[str]]:
    """Return the full refs of the drafts of released variants, by repository."""
    heads: dict[str, set[str]] = {}
    for resolved_policy in scope.evaluated:
        lines = scope.policy_states[resolved_policy.records_key].status.variants
        is_shared = get_draft_per(resolved_policy) is not DraftPer.VARIANT
        for spec in resolved_policy.variants:
            if spec.name in lines and lines[spec.name].grant is not None:
                place = resolved_policy.place_by_variant[spec.name]
                ref = draft_branch(spec, install, is_shared=is_shared)
                heads.setdefault(place, set()).add(ref)
    return heads


def _find_status_subjects(scope: PassScope) -> Mapping[str, Sequence[StatusSubject]]:
    """Return the variants whose stages have checks of commit statuses, by repository."""
    subjects: dict[str, list[StatusSubject]] = {}
    for resolved_policy in scope.evaluated:
        policy = resolved_policy.upstream_policy
        stages = (it for it in policy.spec.stages if has_status_checks(it)) if policy else ()
        stage_by_name = {stage.name: stage for stage in stages}
        lines = scope.policy_states[resolved_policy.records_key].status.variants
        for spec in resolved_policy.variants:
            if spec.stage not in stage_by_name:
                continue
            subject = StatusSubject(
                spec=spec, stage=stage_by_name[spec.stage], status_line=lines.get(spec.name)
            )
            place = resolved_policy.place_by_variant[spec.name]
            subjects.setdefault(place, []).append(subject)
    return subjects


OwnedPaths = Mapping[str, frozenset[str]]
"""Paths on record, by identity of the repository."""


def find_owned_paths(
    recorded_paths: RecordedPaths, policy_states: Mapping[RecordsKey, PolicyRecords]
) -> OwnedPaths | None:
    """Return the paths that the records of all policies name, or None if some cannot be read.

    These are the paths of what was published or released, and of what was left behind there.
    """
    if any(it.failure is not None or it.rewound is not None for it in policy_states.values()):
        return None
    paths: dict[str, set[str]] = {}
    for places in recorded_paths.all_paths_by_owner.values():
        for repository, path in places:
            paths.setdefault(repository, set()).add(path)
    return {repository: frozenset(it) for repository, it in paths.items()}


def with_observed_paths(
    recorded_paths: OwnedPaths | None, state: RepositoryState
) -> frozenset[str] | None:
    """Return the paths on record in a repository, with those of its drafts and publications.

    The records do not name drafts, nor publications that a crash kept from them.
    """
    if recorded_paths is None:
        return None
    drafted = {draft.path for draft in state.drafts}
    recorded = recorded_paths.get(state.identity, frozenset())
    return recorded | drafted | state.published_renderings.keys()

"""Observer of forges: the pull requests of fanout in repositories that have a forge.

Which requests there are to ask about, Git and the records say: branches of drafts, and requests
that are on record and not over. Hosts are asked at the same time, repositories of a host in
bounded threads; what fails stays with its repository.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from fanout.api.git_repository import ForgeType, Repository
from fanout.api.urls import canonicalize_url
from fanout.errors import FanoutError
from fanout.plan.observation.forge_state import ForgeState, RequestFacts
from fanout.plan.observation.observed_request import (
    ObservedRequest,
    RepositoryName,
    RequestState,
)
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.plan.records.policy_status import RequestKey, RequestLine, parse_status
from fanout.ports import (
    BranchReader,
    ClosingReader,
    Forge,
    ForgeDirectory,
    GitStore,
    ReviewReader,
)
from fanout.selection.variant_naming import drafts_prefix
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import frozen, replace

_CALLS_AT_ONCE = 8  # to one host; its governor may let fewer through
_BRANCH = "refs/heads/"


@frozen
class _HostedRepository:
    """A repository with a forge: its state in Git, and the requests on record for it."""

    state: RepositoryState
    recorded: Mapping[str, RequestLine]  # by full ref of the head
    forge: Forge
    name: RepositoryName


@dataclass(slots=True)
class RequestObserver:
    """Reads the states of forges; one per process."""

    git: GitStore
    forges: ForgeDirectory
    install: str
    # By identity: the state in Git and the same state with that of its forge.
    _attached: dict[str, tuple[RepositoryState, RepositoryState]] = field(default_factory=dict)
    _logins: dict[str, str] = field(default_factory=dict)  # by host

    def attach_forges(
        self,
        repositories: Mapping[str, Repository],
        states: Mapping[str, RepositoryState],
        policy_states: Mapping[RecordsKey, PolicyRecords],
    ) -> dict[str, RepositoryState]:
        """Return the states, those of repositories with a forge together with its state.

        `repositories` and `states` are by identity of the Repository. Equal observations give
        the same object, because memos compare by identity.
        """
        urls = {canonicalize_url(it.spec.url) for it in repositories.values() if _has_forge(it)}
        if not urls:
            return dict(states)
        # Several Repository objects may share one state; it is asked about once.
        hosted_states = {
            id(it): it for it in states.values() if canonicalize_url(it.remote.url) in urls
        }
        forge_states = self._read_forges(hosted_states.values(), _read_recorded(policy_states))
        attached = {key: self._attach(it, forge_states[key]) for key, it in hosted_states.items()}
        return {key: attached.get(id(state), state) for key, state in states.items()}

    def _attach(self, state: RepositoryState, forge_state: ForgeState) -> RepositoryState:
        former_state, former = self._attached.get(state.identity, (None, None))
        if former is not None and former_state is state and former.forge == forge_state:
            return former
        attached = replace(state, forge=forge_state)
        self._attached[state.identity] = state, attached
        return attached

    def _read_forges(
        self,
        states: Iterable[RepositoryState],
        recorded: Mapping[str, Mapping[str, RequestLine]],
    ) -> Mapping[int, ForgeState]:
        """Return the states of the forges, by the id of the repository's state."""
        forge_states: dict[int, ForgeState] = {}
        by_host: dict[str, list[_HostedRepository]] = {}
        for state in states:
            located = run_isolated(partial(self.forges.forge_of, state.remote.url))
            if isinstance(located, FanoutError):
                forge_states[id(state)] = ForgeState(host="", failure=located)
                continue
            forge, name = located
            if state.failure is not None:
                forge_states[id(state)] = ForgeState(host=forge.host, failure=state.failure)
                continue
            repository = _HostedRepository(state, recorded.get(state.identity, {}), forge, name)
            by_host.setdefault(forge.host, []).append(repository)
        if by_host:
            with ThreadPoolExecutor(len(by_host)) as threads:
                for host_states in threads.map(self._read_host, by_host.values()):
                    forge_states |= host_states
        return forge_states

    def _read_host(self, repositories: Sequence[_HostedRepository]) -> Mapping[int, ForgeState]:
        """Return the states of all repositories of one host."""
        forge = repositories[0].forge
        login = run_isolated(partial(self._find_login, forge))
        if isinstance(login, FanoutError):
            failed = ForgeState(host=forge.host, failure=login)
            return {id(it.state): failed for it in repositories}
        with ThreadPoolExecutor(min(_CALLS_AT_ONCE, len(repositories))) as threads:
            outcomes = threads.map(partial(self._read_contained, login), repositories)
            return {
                id(it.state): outcome for it, outcome in zip(repositories, outcomes, strict=True)
            }

    def _find_login(self, forge: Forge) -> str:
        if forge.host not in self._logins:
            self._logins[forge.host] = forge.login()
        return self._logins[forge.host]

    def _read_contained(self, login: str, repository: _HostedRepository) -> ForgeState:
        """Return the forge state of a repository; a failure becomes part of it."""
        outcome = run_isolated(partial(self._read_state, repository))
        if isinstance(outcome, FanoutError):
            return ForgeState(host=repository.forge.host, login=login, failure=outcome)
        return replace(outcome, login=login)

    def _read_state(self, repository: _HostedRepository) -> ForgeState:
        forge, name, state = repository.forge, repository.name, repository.state
        requests: dict[str, RequestFacts] = {}
        foreign_requests: dict[str, tuple[ObservedRequest, ...]] = {}
        for head_ref in sorted(self._find_heads(repository)):
            own, others = _find_requests(repository, head_ref)
            if own is not None:
                requests[head_ref] = self._read_facts(repository, head_ref, own)
            if others:
                foreign_requests[head_ref] = others
        has_open = any(it.request.state is RequestState.OPEN for it in requests.values())
        branch = None
        if has_open and isinstance(forge, BranchReader):
            branch = forge.branch(name, state.branch.removeprefix(_BRANCH))
        return ForgeState(
            host=forge.host,
            repository=forge.repository(name) if has_open else None,
            branch=branch,
            requests=requests,
            foreign_requests=foreign_requests,
        )

    def _find_heads(self, repository: _HostedRepository) -> set[str]:
        """Return the heads to ask about: branches of drafts, and those of requests not over."""
        prefix = drafts_prefix(self.install)
        listed = {ref for ref in repository.state.refs if ref.startswith(prefix)}
        over = (RequestState.CLOSED, RequestState.MERGED)
        return listed | {ref for ref, it in repository.recorded.items() if it.state not in over}

    def _read_facts(
        self, repository: _HostedRepository, head_ref: str, request: ObservedRequest
    ) -> RequestFacts:
        forge, name = repository.forge, repository.name
        if request.state is RequestState.CLOSED:
            closed_by = forge.closed_by(name, request) if isinstance(forge, ClosingReader) else ""
            return RequestFacts(request=request, closed_by=closed_by)
        reviews = forge.reviews(name, request.number) if isinstance(forge, ReviewReader) else ()
        commits = {it.commit for it in reviews} - {""}
        return RequestFacts(
            request=request,
            reviews=tuple(reviews),
            reviewed_trees=self._read_trees(repository.state, head_ref, commits),
        )

    def _read_trees(
        self, state: RepositoryState, head_ref: str, commits: Iterable[str]
    ) -> Mapping[str, Mapping[str, str]]:
        """Return the package trees of commits at the paths of a draft, by commit and path."""
        # The branch of a merged request may be gone; then all paths of the repository are read.
        paths = {it.path for it in state.drafts.values() if it.ref == head_ref}
        trees: dict[str, Mapping[str, str]] = {}
        if not commits:
            return trees
        with self.git.reader(state.remote) as reader:
            for commit in sorted(commits):
                if reader.has(commit):
                    path_states = reader.paths(commit, sorted(paths or state.path_states))
                    trees[commit] = {
                        path: it.tree for path, it in path_states.items() if it.tree is not None
                    }
        return trees


def _has_forge(repository: Repository) -> bool:
    return repository.spec.forge.type is not ForgeType.NONE


def _read_recorded(
    policy_states: Mapping[RecordsKey, PolicyRecords],
) -> Mapping[str, Mapping[str, RequestLine]]:
    """Return the requests on record of all policies, by repository and full ref of the head.

    Lines that are not understood are refused later, by the evaluation of their policy.
    """
    recorded: dict[str, dict[str, RequestLine]] = {}
    for policy_state in policy_states.values():
        lines = {key: it for key, it in policy_state.status.items() if key.startswith("request/")}
        try:
            requests: Mapping[RequestKey, RequestLine] = parse_status(lines).requests
        except ValueError:
            continue
        for (repository, head_ref), line in requests.items():
            recorded.setdefault(repository, {})[head_ref] = line
    return recorded


def _find_requests(
    repository: _HostedRepository, head_ref: str
) -> tuple[ObservedRequest | None, tuple[ObservedRequest, ...]]:
    """Return fanout's request from a head, and the other open ones.

    Of all from one head the open one to the Repository's branch is fanout's; else it is the one
    on record.
    """
    forge, name = repository.forge, repository.name
    base = repository.state.branch.removeprefix(_BRANCH)
    own: ObservedRequest | None = None
    others = []
    if head_ref in repository.state.refs:
        for request in forge.requests_of_head(name, head_ref.removeprefix(_BRANCH)):
            if request.base_branch == base:
                own = request
            else:
                others.append(request)
    line = repository.recorded.get(head_ref)
    if own is None and line is not None:
        on_record = forge.request(name, line.number)
        if on_record is not None and on_record.base_branch == base:
            own = on_record
    return own, tuple(others)

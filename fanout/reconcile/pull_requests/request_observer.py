"""Observer of forges: the pull requests of fanout in repositories that have a forge.

Which requests there are to ask about, Git and the records say: branches of drafts, and requests
that are on record and not over. Hosts are asked at the same time: one search each says what
changed, and the repositories with changes are read in bounded threads. What fails stays with its
repository.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from fanout.api.git_repository import ForgeType, Repository
from fanout.errors import ErrorLocation, FanoutError, InvalidInput
from fanout.plan.changes.next_drafts import draft_branch
from fanout.plan.evidence.due_checks import StatusSubject, has_status_checks
from fanout.plan.observation.branch_rules import BranchFacts
from fanout.plan.observation.observed_request import (
    ForgeState,
    ObservedRequest,
    OtherRequest,
    RepositoryName,
)
from fanout.plan.observation.repository_state import (
    Remote,
    RepositoryAccess,
    RepositoryState,
)
from fanout.plan.pull_requests.branch_enforcement import requires_status
from fanout.plan.pull_requests.other_requests import (
    build_other_status,
    find_changed_packages,
)
from fanout.plan.pull_requests.request_plan import format_status, status_context
from fanout.plan.records.policy_status import RequestLine
from fanout.ports import (
    BranchReader,
    ChangedPathReader,
    Forge,
    ForgeDirectory,
    GitStore,
    RequestPoll,
    RequestSearch,
    StatusStore,
)
from fanout.reconcile.observation.repository_access import build_remote
from fanout.reconcile.pass_scope import PassScope
from fanout.reconcile.pull_requests.forge_reading import (
    ForgeReader,
    HostedRepository,
    may_change_unseen,
)
from fanout.reconcile.pull_requests.request_memo import (
    LONG_AGO,
    RACY_PERIOD,
    BranchMemo,
    HostMemo,
    OtherRequestMemo,
    RequestMemos,
    digest_listing,
)
from fanout.selection.ref_names import drafts_prefix
from fanout.telemetry.error_isolation import BARRIER, run_isolated
from fanout.values import Value, replace

_RULES_AGE = timedelta(hours=1)  # no search shows that the rules of a branch changed
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

    def retain(self, remotes: Iterable[Remote]) -> None:
        """Forget the states of all repositories but these."""
        present = {it.access for it in remotes}
        pairs = self._attached.items()
        self._attached = {key: it for key, it in pairs if it[0].remote.access in present}

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
        attached: dict[int, RepositoryState] = {}
        for key, forge_state in self._read_forges(hosted_states.values(), scope, names).items():
            state = hosted_states[key]
            former_state, former = self._attached.get(state.key, (None, None))
            if former is None or former_state is not state or former.forge != forge_state:
                former = replace(state, forge=forge_state)
                # What is declared is wrong. As with a repository that cannot be listed, nothing is
                # written there until it is corrected.
                if isinstance(forge_state.failure, InvalidInput) and state.failure is None:
                    former = RepositoryState(
                        remote=state.remote,
                        branch=state.branch,
                        refs=state.refs,
                        forge=forge_state,
                        failure=forge_state.failure,
                    )
                self._attached[state.key] = state, former
            attached[key] = former
        return {key: attached.get(id(state), state) for key, state in states.items()}

    def digest_known(self, urls: Iterable[str]) -> str:
        """Return a digest of what is known of the requests on these hosts. Raises FanoutError."""
        digests = {it.account_digest for it, _ in map(self.forges.forge_of, urls)}
        return " ".join(self.memos.host(it).digest_requests() for it in sorted(digests))

    def digest_unchanged(self, urls: Sequence[str]) -> str:
        """Search the hosts; return the digest of what is known, or "" if it is to be read again.

        Raises FanoutError.
        """
        located = [self.forges.forge_of(url) for url in urls]
        instants: dict[str, datetime] = {}
        names: dict[str, list[RepositoryName]] = {}
        forges: dict[str, Forge] = {}
        for forge, name in located:
            names.setdefault(forge.account_digest, []).append(name)
            forges[forge.account_digest] = forge
        for account_digest, forge in list(forges.items()):
            memo = self.memos.host(account_digest)
            if memo.searched is None:
                return ""
            forges[account_digest], instants[account_digest] = _search(
                forge, memo, names[account_digest]
            )
            heads = (it for known in memo.repositories.values() for it in known.heads.values())
            if not memo.is_settled() or any(may_change_unseen(it, forge) for it in heads):
                return ""

        def is_same(forge: Forge, name: RepositoryName) -> bool:
            memo = self.memos.host(forge.account_digest).repository(name)
            readings = [it.read for it in (memo.settings, memo.rules) if it is not None]
            if readings and instants[forge.account_digest] - max(readings) >= _RULES_AGE:
                return False
            known, seen = memo.listing_digest, forges[forge.account_digest]
            return known is None or digest_listing(seen.open_requests(name)) == known

        with ThreadPoolExecutor(_CALLS_AT_ONCE) as threads:
            if not all(threads.map(is_same, *zip(*located, strict=True))):
                return ""
        return self.digest_known(urls)

    def _read_forges(
        self,
        states: Iterable[RepositoryState],
        scope: PassScope,
        names: Mapping[RepositoryAccess, str],
    ) -> Mapping[int, ForgeState]:
        """Return the forges' states by the id of the repository's state; `names`: by access."""
        # Of all policies, by repository and full ref of the head.
        recorded: dict[str, dict[str, RequestLine]] = {}
        for policy_state in scope.policy_states.values():
            for (place, head_ref), line in policy_state.status.requests.items():
                recorded.setdefault(place, {})[head_ref] = line
        granted_heads, subjects = _find_released(scope, self.install)
        # The paths of what was published or released, and of what was left behind there; None if
        # some records cannot be read.
        recorded_paths: dict[str, set[str]] | None = None
        policy_states = scope.policy_states.values()
        if all(it.failure is None and it.rewound is None for it in policy_states):
            recorded_paths = {}
            for places in scope.path_ownership.recorded_paths.all_paths_by_owner.values():
                for place, path in places:
                    recorded_paths.setdefault(place, set()).add(path)
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
            owned_paths = None
            if recorded_paths is not None:
                # The records do not name drafts, nor publications that a crash kept from them.
                owned_paths = frozenset(recorded_paths.get(state.identity, ()))
                owned_paths |= {draft.path for draft in state.drafts}
                owned_paths |= state.published_renderings.keys()
            repository = HostedRepository(
                state=state,
                recorded=recorded.get(state.identity, {}),
                granted_heads=frozenset(granted_heads.get(state.identity, ())),
                status_subjects=subjects.get(state.identity, ()),
                owned_paths=owned_paths,
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
        forge = repositories[0].forge
        memo = self.memos.host(forge.account_digest)
        names = [it.name for it in repositories]
        searched = run_isolated(partial(_search, forge, memo, names))
        account = forge.identify(memo.login)
        if isinstance(searched, FanoutError):
            failed = ForgeState(host=forge.host, account=account, failure=searched)
            return {id(it.state): failed for it in repositories}
        seen, instant = searched

        def read(repository: HostedRepository) -> ForgeState:
            reader = ForgeReader(
                git=self.git,
                install=self.install,
                memo=memo,
                instant=instant,
                repository=replace(repository, forge=seen),
            )
            try:
                with BARRIER:
                    # First the own requests: reading them may tell the rules of the branch.
                    state = reader.read_state()
                    others = OtherRequestReader(reader).read_requests()
                    return replace(state, other_requests=others)
            except FanoutError as error:
                return ForgeState(host=forge.host, account=account, failure=error)

        with ThreadPoolExecutor(min(_CALLS_AT_ONCE, len(repositories))) as threads:
            states = threads.map(read, repositories)
            host_states = {id(it.state): of for it, of in zip(repositories, states, strict=True)}
        self.memos.store(forge.account_digest)
        return host_states


def _search(
    forge: Forge, memo: HostMemo, repositories: Sequence[RepositoryName]
) -> tuple[Forge, datetime]:
    """Mark what changed on the host in its memo; return the forge to read the repositories with.

    With it the host's time before all readings. Of a host that can neither be searched nor polled,
    or does not say its time, all is read in each pass.
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
    elif isinstance(forge, RequestPoll):
        forge, polled, instant = forge.poll_requests(repositories)
        memo.mark_polled(repositories, polled, forge.identify(memo.login))
        memo.searched = instant
    if instant is None:
        memo.repositories.clear()
    return forge, instant or LONG_AGO


def _find_released(
    scope: PassScope, install: str
) -> tuple[Mapping[str, Set[str]], Mapping[str, Sequence[StatusSubject]]]:
    """Return the full refs of drafts of released variants, and variants that wait for statuses."""
    heads: dict[str, set[str]] = {}
    subjects: dict[str, list[StatusSubject]] = {}
    for resolved_policy in scope.evaluated:
        policy = resolved_policy.upstream_policy
        stages = (it for it in policy.spec.stages if has_status_checks(it)) if policy else ()
        stage_by_name = {stage.name: stage for stage in stages}
        lines = scope.policy_states[resolved_policy.records_key].status.variants
        is_shared = resolved_policy.shares_drafts(has_forge=True)
        for spec in resolved_policy.variants:
            line, stage = lines.get(spec.name), stage_by_name.get(spec.stage)
            place = resolved_policy.place_by_variant[spec.name]
            if line is not None and line.grant is not None:
                ref = draft_branch(spec, install, is_shared=is_shared)
                heads.setdefault(place, set()).add(ref)
            if stage is not None:
                subject = StatusSubject(spec=spec, stage=stage, status_line=line)
                subjects.setdefault(place, []).append(subject)
    return heads, subjects


class OtherRequestReader(Value):
    """Reader of other people's requests to a branch that requires the status of fanout.

    The search of a host by author does not show them, so each such repository costs one listing in
    each pass. What a request changes is read once for each head, and again when the branch moves.
    """

    reader: ForgeReader

    def read_requests(self) -> tuple[OtherRequest, ...]:
        """Return the open requests of other people, by number, with what they change.

        Without any where the branch does not require the status of fanout, and where not all
        records can be read. Raises FanoutError where they cannot be listed.
        """
        repository, memo = self.reader.repository, self.reader.repository_memo
        if repository.owned_paths is None:
            return ()
        rules, context = self._read_rules(), status_context(self.reader.install)
        prefix = drafts_prefix(self.reader.install)
        # A commit has one status of a context, which at the head of a draft says what its own
        # request waits for.
        refs = repository.state.refs.items()
        draft_heads = {commit for ref, commit in refs if ref.startswith(prefix)}
        others: dict[int, OtherRequestMemo] = {}
        requests: list[OtherRequest] = []
        listing_digest = None
        account = self.reader.account
        if rules is not None and requires_status(rules.required_statuses, context, account):
            listed = repository.forge.open_requests(repository.name)
            wanted = [
                it
                for it in listed
                if it.base_branch == repository.base_branch
                and it.head_commit not in draft_heads
                and not (
                    f"refs/heads/{it.head_branch}".startswith(prefix)
                    and it.is_from(repository.name)
                )
            ]
            for request in wanted:
                outcome = run_isolated(partial(self._read_request, request))
                if isinstance(outcome, OtherRequestMemo):
                    others[request.number] = outcome
                    requests.append(self._build_request(request, outcome))
                elif outcome is not None:
                    requests.append(
                        OtherRequest(
                            number=request.number,
                            head_commit=request.head_commit,
                            problem=str(outcome),
                        )
                    )
            listing_digest = digest_listing(listed) if len(others) == len(wanted) else ""
        if (memo.others, memo.listing_digest) != (others, listing_digest):
            memo.others, memo.listing_digest = others, listing_digest
            self.reader.memo.has_changed = True
        return tuple(sorted(requests, key=lambda it: it.number))

    def _read_rules(self) -> BranchFacts | None:
        """Return the rules of the branch as they were within the last hour."""
        repository, memo = self.reader.repository, self.reader.repository_memo
        if not isinstance(repository.forge, BranchReader):
            return None
        candidates: tuple[BranchMemo | None, ...] = (memo.settings, memo.rules)
        branch_memos = [
            it
            for it in candidates
            if it is not None
            and it.base_branch == repository.base_branch
            and self.reader.instant - it.read < _RULES_AGE
        ]
        if branch_memos:
            return max(branch_memos, key=lambda it: it.read).branch
        memo.rules = BranchMemo(
            branch=repository.forge.branch(repository.name, repository.base_branch),
            base_branch=repository.base_branch,
            read=self.reader.instant,
        )
        self.reader.memo.has_changed = True
        return memo.rules.branch

    def _read_request(self, request: ObservedRequest) -> OtherRequestMemo | None:
        """Read a request, unless it is known; None while the host is not done with a push."""
        repository = self.reader.repository
        forge, name, base_commit = repository.forge, repository.name, repository.state.head
        if not isinstance(forge, ChangedPathReader) or not isinstance(forge, StatusStore):
            return None
        memo = self.reader.repository_memo.others.get(request.number)
        if memo is not None and memo.head_commit != request.head_commit:
            memo = None
        if memo is None or memo.base_commit != base_commit:
            changed = forge.changed_paths(name, request.number)
            if changed.head_commit != request.head_commit:
                return None
            memo = OtherRequestMemo(
                head_commit=request.head_commit,
                base_commit=base_commit,
                changed_paths=changed.paths,
                status=memo.status if memo is not None else "",
            )
        # One that was set by the pass before is not known yet.
        built = self._build_request(request, memo)
        wanted = build_other_status(built.changed_packages, self.reader.install)
        if memo.status != format_status(wanted):
            statuses = forge.statuses(name, request.head_commit)
            present = (
                f"{it.state}: {it.description}" for it in statuses if it.context == wanted.context
            )
            memo = replace(memo, status=next(present, ""))
        return memo

    def _build_request(self, request: ObservedRequest, memo: OtherRequestMemo) -> OtherRequest:
        owned_paths = self.reader.repository.owned_paths
        assert owned_paths is not None, "all records were read"
        return OtherRequest(
            number=request.number,
            head_commit=memo.head_commit,
            changed_packages=find_changed_packages(memo.changed_paths, owned_paths),
            status=memo.status,
        )

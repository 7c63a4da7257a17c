"""Reading of one repository on its forge: requests, reviews, statuses, rules of its branch."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from itertools import islice

from fanout.errors import InvalidInput, Unavailable
from fanout.plan.evidence.due_checks import StatusSubject, find_awaited_commits
from fanout.plan.evidence.review_approvals import find_rejections
from fanout.plan.observation.forge_state import ForgeState, RequestFacts
from fanout.plan.observation.observed_request import (
    CommitStatus,
    ObservedRequest,
    RepositoryName,
    RequestState,
    ReviewVerdict,
)
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.records.policy_status import RequestLine
from fanout.ports import (
    BranchReader,
    ClosingReader,
    Forge,
    GitStore,
    ObjectReader,
    ReviewReader,
    StatusStore,
)
from fanout.reconcile.observation.set_reader import is_statement_for, read_packages
from fanout.reconcile.pull_requests.request_memo import (
    HeadMemo,
    HostMemo,
    RepositoryMemo,
    SettingsMemo,
)
from fanout.selection.ref_names import drafts_prefix
from fanout.values import Value, replace

_BRANCH = "refs/heads/"
_OVER = (RequestState.CLOSED, RequestState.MERGED)
# Closed requests that are looked through for heads that are not on record, beside one a head.
_MOST_RECENT = 50
_MAX_EDIT_COMMITS = 64  # commits by people on top of a draft


class HostedRepository(Value, kw_only=True):
    """A repository with a forge: its state in Git, and what records say about it."""

    state: RepositoryState
    recorded: Mapping[str, RequestLine]  # requests by full ref of the head
    granted_heads: frozenset[str]  # full refs of the drafts of released variants
    status_subjects: Sequence[StatusSubject]
    owned_paths: frozenset[str] | None  # of its packages; None: not all records can be read
    forge: Forge
    name: RepositoryName

    @property
    def base_branch(self) -> str:
        """Return the name of the branch that requests are merged to."""
        return self.state.branch.removeprefix(_BRANCH)


@dataclass(slots=True)
class ForgeReader:
    """Reader of the repositories of one host in one pass; all its threads share it.

    `instant` is the host's time before all readings.
    """

    _: KW_ONLY
    git: GitStore
    install: str
    memo: HostMemo
    instant: datetime

    def read_state(self, repository: HostedRepository) -> ForgeState:
        """Return the repository as its forge shows it. Raises FanoutError."""
        memo = self.memo.repository(repository.name)
        heads = self._find_heads(repository)
        is_read = self._read_heads(repository, memo, heads)
        requests = {
            ref: self._with_trees(repository.state, ref, it.facts)
            for ref in sorted(heads)
            if (it := heads[ref]) is not None and it.facts is not None
        }
        open_heads = {
            ref: it.request.head_commit
            for ref, it in requests.items()
            if it.request.state is RequestState.OPEN
        }
        settings = self._read_settings(repository, memo, is_read=is_read) if open_heads else None
        is_recent = settings is not None and settings.is_recent(
            repository.base_branch, self.instant
        )
        return ForgeState(
            host=repository.forge.host,
            login=self.memo.login,
            repository=settings.repository if settings and is_recent else None,
            branch=settings.branch if settings else None,
            requests=requests,
            foreign_requests={
                ref: it.foreign_requests
                for ref in sorted(heads)
                if (it := heads[ref]) is not None and it.foreign_requests
            },
            statuses=_read_statuses(repository, open_heads, self.install),
        )

    def _find_heads(self, repository: HostedRepository) -> dict[str, HeadMemo | None]:
        """Return the heads to ask about, by full ref, with what is known of them.

        These are the branches of drafts, and heads whose branches may be gone: of requests that
        are not over, and of releases without a request on record. A pass that ended before its
        records may have opened one.
        """
        refs, recorded = repository.state.refs, repository.recorded
        prefix = drafts_prefix(self.install)
        heads: dict[str, HeadMemo | None] = {}
        head_memos = self.memo.repository(repository.name).heads
        pending = (ref for ref, it in recorded.items() if it.state not in _OVER)
        unrecorded = {
            ref
            for ref in repository.granted_heads
            if ref not in recorded or recorded[ref].state == RequestState.CLOSED
        }
        for ref in {*(it for it in refs if it.startswith(prefix)), *pending, *unrecorded}:
            memo, number = head_memos.get(ref), _recorded_number(repository, ref)
            is_current = memo is not None and memo.is_current(
                listed_commit=refs.get(ref, ""),
                base_commit=repository.state.head,
                base_branch=repository.base_branch,
                number=number,
            )
            heads[ref] = memo if is_current else None
        return heads

    def _read_heads(
        self,
        repository: HostedRepository,
        memo: RepositoryMemo,
        heads: dict[str, HeadMemo | None],
    ) -> bool:
        """Read the heads of which nothing is known; return whether there was any."""
        # Those on record are found by their head, or over.
        if memo.unread_numbers - {it.number for it in repository.recorded.values()}:
            for ref, it in heads.items():
                heads[ref] = it if it is not None and it.facts is not None else None
        missing = [ref for ref in sorted(heads) if heads[ref] is None]
        # After one that a person closed, there may be another for a newer revision.
        unrecorded = {
            ref
            for ref in missing
            if ref not in repository.recorded or repository.recorded[ref].state in _OVER
        }
        opened: Sequence[ObservedRequest] = ()
        if unrecorded or any(ref in repository.state.refs for ref in missing):
            listed = repository.forge.open_requests(repository.name)
            opened = [it for it in listed if it.is_from(repository.name)]
        base = repository.base_branch
        own_heads = {f"{_BRANCH}{it.head_branch}" for it in opened if it.base_branch == base}
        closed = self._find_closed(repository, unrecorded - own_heads)
        for ref in missing:
            heads[ref] = self._read_head(repository, ref, opened, closed.get(ref))
        if missing or memo.unread_numbers or memo.heads.keys() != heads.keys():
            self.memo.has_changed = True
            memo.unread_numbers.clear()
            memo.heads = {ref: it for ref, it in heads.items() if it is not None}
        return bool(missing)

    def _read_head(
        self,
        repository: HostedRepository,
        ref: str,
        opened: Iterable[ObservedRequest],
        closed_number: int | None,
    ) -> HeadMemo:
        """Read what there is about a head, given the open requests of the repository.

        Of all from one head the open one to the Repository's branch is fanout's; else the one on
        record, or another that fanout opened, whose branch a person changed; else the closed one of
        `closed_number`.
        """
        forge, name, base = repository.forge, repository.name, repository.base_branch
        of_head = [it for it in opened if it.head_branch == ref.removeprefix(_BRANCH)]
        own = next((it for it in of_head if it.base_branch == base), None)
        number = closed_number or _recorded_number(repository, ref)
        moved = [it for it in of_head if own is None and it.author == self.memo.login]
        if moved:
            own = next((it for it in moved if it.number == number), moved[0])
        elif own is None and number is not None:
            own = forge.request(name, number)
        if own is not None and own.base_branch != base:
            # Merged to another branch it has published nothing. Where the branch itself is missing,
            # as after a renaming, nothing can be set back.
            is_lost = own.state is RequestState.MERGED or not repository.state.head
            own = None if is_lost else own
        return HeadMemo(
            facts=self._read_facts(repository, ref, own) if own is not None else None,
            foreign_requests=tuple(
                it for it in of_head if it.base_branch != base and it not in moved
            ),
            listed_commit=repository.state.refs.get(ref, ""),
            base_commit=repository.state.head,
            read=self.instant,
        )

    def _find_closed(
        self, repository: HostedRepository, unrecorded: Collection[str]
    ) -> Mapping[str, int]:
        """Return the numbers of closed and merged requests of heads that are not on record.

        Only those of the very commit that Git lists. Where the branch is gone, the newest one if
        nobody merged it: that it was merged, Git shows.
        """
        if not unrecorded:
            return {}
        newest: dict[str, ObservedRequest] = {}
        requests = repository.forge.closed_requests(repository.name, self.memo.login)
        for request in islice(requests, len(unrecorded) + _MOST_RECENT):
            ref = f"{_BRANCH}{request.head_branch}"
            if (
                ref in unrecorded
                and request.base_branch == repository.base_branch
                and repository.state.refs.get(ref, request.head_commit) == request.head_commit
                and (ref not in newest or newest[ref].number < request.number)
            ):
                newest[ref] = request
        return {
            ref: it.number
            for ref, it in newest.items()
            if ref in repository.state.refs or it.state is RequestState.CLOSED
        }

    def _read_facts(
        self, repository: HostedRepository, ref: str, request: ObservedRequest
    ) -> RequestFacts:
        """Return the request with what belongs to it, which is read again only if it changed."""
        forge, name = repository.forge, repository.name
        head_memo = self.memo.repository(name).heads.get(ref)
        facts = head_memo.find_facts(request) if head_memo is not None else None
        if facts is not None:
            return facts
        if request.state is RequestState.CLOSED:
            closed_by = forge.closed_by(name, request) if isinstance(forge, ClosingReader) else ""
            return RequestFacts(request=request, closed_by=closed_by)
        if not isinstance(forge, ReviewReader):
            return RequestFacts(request=request)
        # A closed request that another one replaces leaves requests for changes unanswered.
        earlier = _list_earlier(repository.recorded.get(ref), request.number)
        rejections = (
            it for number in earlier for it in find_rejections(forge.reviews(name, number))
        )
        reviews = (*rejections, *forge.reviews(name, request.number))
        return RequestFacts(request=request, reviews=reviews)

    def _read_settings(
        self, repository: HostedRepository, memo: RepositoryMemo, *, is_read: bool
    ) -> SettingsMemo:
        """Return the settings of the repository, read anew only where requests changed.

        Old ones still tell the rules of the branch, but not what the host forbids: it refuses
        that itself.
        """
        former = memo.settings
        forge, name, base = repository.forge, repository.name, repository.base_branch
        if former is not None and (not is_read or former.is_recent(base, self.instant)):
            return former
        facts = forge.repository(name)
        if facts.is_archived:
            raise Unavailable(
                f"repository {name!s} is archived on {forge.host}",
                reason="ForgeUnavailable",
                remedy="unarchive the repository, or remove the Repository",
            )
        memo.settings = SettingsMemo(
            repository=facts,
            branch=forge.branch(name, base) if isinstance(forge, BranchReader) else None,
            base_branch=base,
            read=self.instant,
        )
        self.memo.has_changed = True
        return memo.settings

    def _with_trees(self, state: RepositoryState, ref: str, facts: RequestFacts) -> RequestFacts:
        """Return the facts with the package trees, and refused revisions, of reviewed commits."""
        commits = {it.commit for it in facts.reviews} - {""}
        if not commits:
            return facts
        # The branch of a merged request may be gone; then all paths of the repository are read.
        paths = sorted({it.path for it in state.drafts if it.ref == ref} or state.path_states)
        refused = {
            it.commit for it in facts.reviews if it.verdict is ReviewVerdict.CHANGES_REQUESTED
        }
        trees: dict[str, Mapping[str, str]] = {}
        revisions: dict[str, Mapping[str, str]] = {}
        with self.git.reader(state.remote) as reader:
            for commit in filter(reader.has, sorted(commits)):
                path_states = reader.paths(commit, paths)
                trees[commit] = {
                    path: it.tree for path, it in path_states.items() if it.tree is not None
                }
                if commit in refused:
                    revisions[commit] = self._read_revisions(reader, ref, commit)
        # Of a commit that names no revision, the release tells it.
        refused_revisions = {commit: it for commit, it in revisions.items() if it}
        return replace(facts, reviewed_trees=trees, refused_revisions=refused_revisions)

    def _read_revisions(self, reader: ObjectReader, ref: str, commit: str) -> Mapping[str, str]:
        """Return the revisions that a draft has at a commit, by variant; {} if nothing tells."""
        try:
            packages = read_packages(reader, commit, lambda it: is_statement_for(ref, it))
        except InvalidInput:  # a commit of people that cannot be read tells nothing
            return {}
        return {it.variant: it.revision for it in packages.values()}


def _list_earlier(line: RequestLine | None, number: int) -> tuple[int, ...]:
    """Return the numbers of the closed requests in place of which this one was opened."""
    if line is None or line.number == number:
        return line.earlier if line is not None else ()
    return (*line.earlier, line.number) if line.state == RequestState.CLOSED else ()


def _recorded_number(repository: HostedRepository, ref: str) -> int | None:
    """Return the number of the request on record from a head; a merged one is history."""
    line = repository.recorded.get(ref)
    return line.number if line is not None and line.state != RequestState.MERGED else None


def _read_statuses(
    repository: HostedRepository, open_heads: Mapping[str, str], install: str
) -> Mapping[str, tuple[CommitStatus, ...]]:
    """Return the statuses of the commits at which checks wait for one; no search shows them."""
    forge = repository.forge
    if not isinstance(forge, StatusStore):
        return {}
    commits = find_awaited_commits(
        repository.status_subjects, repository.state, open_heads, install
    )
    return {commit: tuple(forge.statuses(repository.name, commit)) for commit in sorted(commits)}

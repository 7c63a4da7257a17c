"""Reading of one repository on its forge: requests, reviews, statuses, rules of its branch."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from itertools import islice

from fanout.errors import InvalidInput, Unavailable
from fanout.plan.commit_statement import CommitStatement
from fanout.plan.evidence.due_checks import StatusSubject, find_awaited_commits
from fanout.plan.evidence.review_approvals import find_rejections
from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.plan.observation.observed_request import (
    CommitStatus,
    ForgeState,
    ObservedRequest,
    RepositoryName,
    RequestFacts,
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
    RequestMerger,
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


def checks_when_merging(forge: Forge) -> bool:
    """Return whether an attempt to merge tells what the forge does not know before."""
    return not isinstance(forge, RequestMerger) or forge.checks_when_merging


def may_change_unseen(head: HeadMemo, forge: Forge) -> bool:
    """Return whether the forge may show the request otherwise although no search shows a change.

    What it holds back is asked in each pass, or nobody would see that it does not any more.
    """
    return head.facts is not None and head.facts.request.may_change_unseen(
        checks_when_merging=checks_when_merging(forge)
    )


@dataclass(slots=True)
class ForgeReader:
    """Reader of one repository in one pass. `instant` is the host's time before all readings."""

    _: KW_ONLY
    git: GitStore
    install: str
    memo: HostMemo
    instant: datetime
    repository: HostedRepository

    @property
    def repository_memo(self) -> RepositoryMemo:
        """Return what was read of the repository before."""
        return self.memo.repository(self.repository.name)

    @property
    def account(self) -> ForgeIdentity:
        """Return the account of fanout on the host."""
        return self.repository.forge.identify(self.memo.login)

    def read_state(self) -> ForgeState:
        """Return the repository as its forge shows it. Raises FanoutError."""
        repository, forge = self.repository, self.repository.forge
        heads, is_read = self._read_heads()
        requests = {
            ref: self._with_trees(ref, it.facts)
            for ref, it in sorted(heads.items())
            if it.facts is not None
        }
        open_heads = {
            ref: it.request.head_commit
            for ref, it in requests.items()
            if it.request.state is RequestState.OPEN
        }
        settings = self._read_settings(is_read=is_read) if open_heads else None
        is_recent = settings is not None and settings.is_recent(
            repository.base_branch, self.instant
        )
        statuses: Mapping[str, tuple[CommitStatus, ...]] = {}
        if isinstance(forge, StatusStore):
            # Of the commits at which checks wait for one; no search shows them.
            commits = find_awaited_commits(
                repository.status_subjects, repository.state, open_heads, self.install
            )
            statuses = {it: tuple(forge.statuses(repository.name, it)) for it in sorted(commits)}
        return ForgeState(
            host=forge.host,
            account=self.account,
            checks_when_merging=checks_when_merging(forge),
            repository=settings.repository if settings and is_recent else None,
            branch=settings.branch if settings else None,
            requests=requests,
            foreign_requests={
                ref: it.foreign_requests for ref, it in sorted(heads.items()) if it.foreign_requests
            },
            statuses=statuses,
        )

    def _read_heads(self) -> tuple[Mapping[str, HeadMemo], bool]:
        """Return the heads to ask about by full ref, as they are, and whether any was read.

        These are the branches of drafts, and heads whose branches may be gone: of requests that
        are not over, and of releases without a request on record. A pass that ended before its
        records may have opened one.
        """
        repository, memo = self.repository, self.repository_memo
        refs, recorded, base = repository.state.refs, repository.recorded, repository.base_branch
        prefix = drafts_prefix(self.install)
        pending = (ref for ref, it in recorded.items() if it.state not in _OVER)
        unrecorded = {
            ref
            for ref in repository.granted_heads
            if ref not in recorded or recorded[ref].state == RequestState.CLOSED
        }
        # Those on record are found by their head, or over.
        has_unread = bool(memo.unread_numbers - {it.number for it in recorded.values()})
        heads: dict[str, HeadMemo] = {}
        missing: list[str] = []
        for ref in sorted({*(it for it in refs if it.startswith(prefix)), *pending, *unrecorded}):
            head, number = memo.heads.get(ref), self._recorded_number(ref)
            if (
                head is not None
                and head.is_current(
                    listed_commit=refs.get(ref, ""),
                    base_commit=repository.state.head,
                    base_branch=base,
                    number=number,
                    earlier=self._list_earlier(ref, number),
                )
                and not (has_unread and head.facts is None)
                and not may_change_unseen(head, repository.forge)
                # No host is known to update a request when it accepts the merge.
                and not (ref in recorded and recorded[ref].accepted is not None)
            ):
                heads[ref] = head
            else:
                missing.append(ref)
        # After one that a person closed, there may be another for a newer revision.
        unrecorded = {ref for ref in missing if ref not in recorded or recorded[ref].state in _OVER}
        opened: Sequence[ObservedRequest] = ()
        if unrecorded or any(ref in refs for ref in missing):
            listed = repository.forge.open_requests(repository.name)
            opened = [it for it in listed if it.is_from(repository.name)]
        own_heads = {f"{_BRANCH}{it.head_branch}" for it in opened if it.base_branch == base}
        unrecorded -= own_heads
        newest: dict[str, ObservedRequest] = {}
        if unrecorded:
            requests = repository.forge.closed_requests(repository.name, self.memo.login)
            for request in islice(requests, len(unrecorded) + _MOST_RECENT):
                ref = f"{_BRANCH}{request.head_branch}"
                # Only those of the very commit that Git lists.
                if (
                    ref in unrecorded
                    and request.base_branch == base
                    and refs.get(ref, request.head_commit) == request.head_commit
                    and (ref not in newest or newest[ref].number < request.number)
                ):
                    newest[ref] = request
        # Where the branch is gone, the newest one if nobody merged it: that it was merged, Git
        # shows.
        closed = {
            ref: it.number
            for ref, it in newest.items()
            if ref in refs or it.state is RequestState.CLOSED
        }
        for ref in missing:
            heads[ref] = self._read_head(ref, opened, closed.get(ref))
        if missing or memo.unread_numbers or memo.heads.keys() != heads.keys():
            self.memo.has_changed = True
            memo.unread_numbers.clear()
            memo.heads = dict(heads)
        return heads, bool(missing)

    def _recorded_number(self, ref: str) -> int | None:
        """Return the number of the request on record from a head; a merged one is history."""
        line = self.repository.recorded.get(ref)
        return (line.number or None) if line and line.state != RequestState.MERGED else None

    def _list_earlier(self, ref: str, number: int | None) -> tuple[int, ...]:
        """Return the numbers of the closed requests in place of which this one is, or is to be."""
        line = self.repository.recorded.get(ref)
        if line is None or line.number in (0, number):
            return line.earlier if line is not None else ()
        return (*line.earlier, line.number) if line.state == RequestState.CLOSED else ()

    def _read_head(
        self, ref: str, opened: Iterable[ObservedRequest], closed_number: int | None
    ) -> HeadMemo:
        """Read what there is about a head, given the open requests of the repository.

        Of all from one head the open one to the Repository's branch is fanout's; else the one on
        record, or another that fanout opened, whose branch a person changed; else the closed one of
        `closed_number`.
        """
        repository, base = self.repository, self.repository.base_branch
        of_head = [it for it in opened if it.head_branch == ref.removeprefix(_BRANCH)]
        own = next((it for it in of_head if it.base_branch == base), None)
        number = closed_number or self._recorded_number(ref)
        moved = [it for it in of_head if own is None and self.account.is_named(it.author)]
        if moved:
            own = next((it for it in moved if it.number == number), moved[0])
        elif own is None and number is not None:
            own = repository.forge.request(repository.name, number)
        if own is not None and own.base_branch != base:
            # Merged to another branch it has published nothing. Where the branch itself is missing,
            # as after a renaming, nothing can be set back.
            is_lost = own.state is RequestState.MERGED or not repository.state.head
            own = None if is_lost else own
        return HeadMemo(
            facts=self._read_facts(ref, own) if own is not None else None,
            foreign_requests=tuple(
                it for it in of_head if it.base_branch != base and it not in moved
            ),
            listed_commit=repository.state.refs.get(ref, ""),
            base_commit=repository.state.head,
            read=self.instant,
        )

    def _read_facts(self, ref: str, request: ObservedRequest) -> RequestFacts:
        forge, name = self.repository.forge, self.repository.name
        head_memo = self.repository_memo.heads.get(ref)
        earlier = self._list_earlier(ref, request.number)
        facts = head_memo.find_facts(request, earlier) if head_memo is not None else None
        if facts is not None:  # what belongs to a request is read again only if it changed
            return facts
        if request.state is RequestState.CLOSED:
            closed_by = forge.closed_by(name, request) if isinstance(forge, ClosingReader) else ""
            return RequestFacts(request=request, closed_by=closed_by)
        if not isinstance(forge, ReviewReader):
            return RequestFacts(request=request, earlier=earlier)
        # A closed request that another one replaces leaves requests for changes unanswered.
        rejections = (
            it for number in earlier for it in find_rejections(forge.reviews(name, number))
        )
        reviews = (*rejections, *forge.reviews(name, request.number))
        return RequestFacts(request=request, reviews=reviews, earlier=earlier)

    def _read_settings(self, *, is_read: bool) -> SettingsMemo:
        """Return the settings of the repository, read anew only where requests changed.

        Old ones still tell the rules of the branch, but not what the host forbids: it refuses
        that itself.
        """
        memo, base = self.repository_memo, self.repository.base_branch
        forge, name, former = self.repository.forge, self.repository.name, memo.settings
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

    def _with_trees(self, ref: str, facts: RequestFacts) -> RequestFacts:
        """Return the facts with the package trees, and refused revisions, of reviewed commits."""
        state, commits = self.repository.state, {it.commit for it in facts.reviews} - {""}
        if not commits:
            return facts
        # The branch of a merged request may be gone; then all paths of the repository are read.
        paths = sorted({it.path for it in state.drafts if it.ref == ref} or state.path_states)
        refused = {
            it.commit for it in facts.reviews if it.verdict is ReviewVerdict.CHANGES_REQUESTED
        }
        # Such a commit may be of a branch where the packages were before.
        draft = state.sets.get(ref)

        def counts(stated: CommitStatement) -> bool:
            is_of_policy = draft is not None and draft.policy == stated.policy
            return is_statement_for(stated.ref if is_of_policy else ref, stated)

        trees: dict[str, Mapping[str, str]] = {}
        revisions: dict[str, Mapping[str, str]] = {}
        with self.git.reader(state.remote) as reader:
            for commit in filter(reader.has, sorted(commits)):
                path_states = reader.paths(commit, paths)
                trees[commit] = {
                    path: it.tree for path, it in path_states.items() if it.tree is not None
                }
                # Of a commit that names no revision, the release tells it, and also of one of
                # people that cannot be read.
                with suppress(InvalidInput):
                    packages = read_packages(reader, commit, counts) if commit in refused else {}
                    if packages:
                        revisions[commit] = {it.variant: it.revision for it in packages.values()}
        return replace(facts, reviewed_trees=trees, refused_revisions=revisions)

"""Memo of what a host showed of fanout's pull requests: in memory, and on disk between processes.

One search of a host says which requests changed since the last one; all others are as they were
read. Instants of the host are whole seconds, so that what changed within the second of a reading
looks the same afterwards. A request is therefore read again as long as its last change lies less
than two seconds before its reading. All instants here are of the host's own clock.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fanout.disk_cache import read_cache_value, write_cache_file
from fanout.plan.observation.branch_rules import BranchFacts
from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.plan.observation.observed_request import (
    ObservedRequest,
    PolledRepository,
    RepositoryFacts,
    RepositoryName,
    RequestFacts,
    RequestMatch,
    RequestState,
)
from fanout.values import Value, replace, write_json

RACY_PERIOD = timedelta(seconds=2)
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)  # before every change of a request
_SETTINGS_AGE = timedelta(minutes=10)  # no search shows that settings of a repository changed


class HeadMemo(Value, kw_only=True):
    """Request of fanout from one head branch, and other people's, as they were read.

    `facts` is None if there was no request, and has no reviewed trees. `listed_commit` and
    `base_commit` are what Git listed then for the head and for the Repository's branch; "": the
    branch was deleted.
    """

    facts: RequestFacts | None
    foreign_requests: tuple[ObservedRequest, ...] = ()
    listed_commit: str
    base_commit: str
    read: datetime

    @property
    def version(self) -> object:
        """Return what identifies a state of the requests from the head."""
        request = self.facts.request if self.facts is not None else None
        own = request and (
            request.number,
            request.updated,
            request.head_commit,
            request.base_branch,
        )
        foreign = [(it.number, it.updated) for it in self.foreign_requests]
        return self.listed_commit, self.base_commit, own, foreign

    def is_current(
        self,
        *,
        listed_commit: str,
        base_commit: str,
        base_branch: str,
        number: int | None,
        earlier: tuple[int, ...],
    ) -> bool:
        """Return whether it is as it was read, given what Git lists now.

        `number` is that of the request on record, if any, and `earlier` are those before it.
        """
        # No search shows that a branch was renamed: that of a request follows it, and another
        # branch may get the old name.
        if (self.listed_commit, self.base_commit) != (listed_commit, base_commit):
            return False
        if self.foreign_requests:
            return False  # no search by author shows what becomes of other people's requests
        if self.facts is None:
            return number is None
        request = self.facts.request
        # Hosts notice some time after a push, and never tell, that the head is another one.
        is_head_shown = request.head_commit == listed_commit
        return (
            number in (None, request.number)
            and (request.state is not RequestState.OPEN or self.facts.earlier == earlier)
            and request.base_branch == base_branch
            and not self._is_racy(request)
            and (is_head_shown or not listed_commit or request.state is not RequestState.OPEN)
        )

    def is_unsettled(self) -> bool:
        """Return whether it is read again although Git lists the same."""
        if self.foreign_requests:
            return True
        return self.facts is not None and not self.is_current(
            listed_commit=self.listed_commit,
            base_commit=self.base_commit,
            base_branch=self.facts.request.base_branch,
            number=None,
            earlier=self.facts.earlier,
        )

    def find_facts(self, request: ObservedRequest, earlier: tuple[int, ...]) -> RequestFacts | None:
        """Return the facts with this request if nothing else can have changed, else None."""
        if self.facts is None or self._is_racy(self.facts.request):
            return None
        former = self.facts.request
        is_same = (former.number, former.updated) == (request.number, request.updated)
        if request.state is RequestState.OPEN and self.facts.earlier != earlier:
            return None
        return replace(self.facts, request=request) if is_same else None

    def _is_racy(self, request: ObservedRequest) -> bool:
        return request.updated >= self.read - RACY_PERIOD


class BranchMemo(Value, kw_only=True):
    """Rules of the Repository's branch."""

    branch: BranchFacts | None
    base_branch: str
    read: datetime


class SettingsMemo(BranchMemo, kw_only=True):
    """Settings of a repository and the rules of its branch."""

    repository: RepositoryFacts

    def is_recent(self, base_branch: str, instant: datetime) -> bool:
        """Return whether the settings were read a short time ago, and for this branch."""
        return self.base_branch == base_branch and instant - self.read < _SETTINGS_AGE


class OtherRequestMemo(Value, kw_only=True):
    """Open pull request of somebody else, as it was read.

    `base_commit` is what Git listed then for the Repository's branch.
    """

    head_commit: str
    base_commit: str
    changed_paths: frozenset[str]
    status: str  # state and description of fanout's newest status at the head; "": none


@dataclass(slots=True)
class RepositoryMemo:
    """Requests and settings of one repository, as they were read.

    `unread_numbers` are requests of fanout that a search showed and that no head is known of.
    """

    heads: dict[str, HeadMemo] = field(default_factory=dict)  # by full ref
    unread_numbers: set[int] = field(default_factory=set)
    settings: SettingsMemo | None = None
    rules: BranchMemo | None = None  # where the settings do not tell them, or long ago
    others: dict[int, OtherRequestMemo] = field(default_factory=dict)  # by number
    # Digest of all open requests where those of other people count; "": some were not read.
    listing_digest: str | None = None


@dataclass(slots=True)
class HostMemo:
    """Facts that were read from one host for one account."""

    login: str = ""
    searched: datetime | None = None  # instant of the last search
    repositories: dict[str, RepositoryMemo] = field(default_factory=dict)
    has_changed: bool = False  # since it was stored

    def repository(self, name: RepositoryName) -> RepositoryMemo:
        """Return the memo of a repository; names that differ in case are the same one."""
        return self.repositories.setdefault(str(name).lower(), RepositoryMemo())

    def is_settled(self) -> bool:
        """Return whether nothing is to be read again while Git lists the same."""
        return not any(
            it.unread_numbers or any(head.is_unsettled() for head in it.heads.values())
            for it in self.repositories.values()
        )

    def digest_requests(self) -> str:
        """Return a digest that changes with each request that is read anew and had changed."""
        rows = [
            (name, ref, str(head.version))
            for name, it in sorted(self.repositories.items())
            for ref, head in sorted(it.heads.items())
        ]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    def mark_changed(self, matches: Sequence[RequestMatch]) -> None:
        """Mark what a search shows to have changed, so that it is read again."""
        self.has_changed |= bool(matches)
        for match in matches:
            memo = self.repositories.get(str(match.repository).lower())
            if memo is None:
                continue  # nothing is known of this repository, so all of it will be read
            for ref, head in memo.heads.items():
                if head.facts is not None and head.facts.request.number == match.number:
                    if head.facts.request.updated != match.updated:
                        memo.heads[ref] = replace(head, read=LONG_AGO)
                    break
            else:
                memo.unread_numbers.add(match.number)

    def mark_polled(
        self,
        repositories: Iterable[RepositoryName],
        polled: Mapping[RepositoryName, PolledRepository],
        account: ForgeIdentity,
    ) -> None:
        """Mark what a poll of these repositories shows to have changed, so that it is read again.

        What a poll did not show is read anew. Other than a search, it also shows what makes no
        update of a request. `account` is fanout's own.
        """
        for name in repositories:
            memo, shown = self.repositories.get(str(name).lower()), polled.get(name)
            if memo is None or shown is None:
                self.repositories.pop(str(name).lower(), None)
                continue
            requests = {it.number: it for it in shown.requests}
            for ref, head in memo.heads.items():
                if head.facts is None:
                    continue
                former = head.facts.request
                request = requests.pop(former.number, None)
                if request is None and former.state is not RequestState.OPEN:
                    continue  # it is still over
                reviews = shown.reviews.get(former.number, ())
                if request != former or not set(reviews) <= set(head.facts.reviews):
                    memo.heads[ref] = replace(head, read=LONG_AGO)
            foreign = {it.number for head in memo.heads.values() for it in head.foreign_requests}
            memo.unread_numbers |= {
                it.number
                for it in requests.values()
                if account.is_named(it.author) and it.number not in foreign
            }


@dataclass(slots=True)
class RequestMemos:
    """Memos of all hosts; with a directory, also between processes.

    The directory may be deleted at any time. `version`: program version, and all that decides
    what is read.
    """

    directory: Path | None = None
    version: str = ""
    _memos: dict[str, HostMemo] = field(default_factory=dict)  # by digest of the account

    def host(self, account_digest: str) -> HostMemo:
        """Return the memo of an account of a host, read from disk when first asked for."""
        if account_digest not in self._memos:
            memo = None
            if self.directory is not None:
                memo = read_cache_value(self._path(account_digest), self.version, HostMemo)
            self._memos[account_digest] = memo or HostMemo()
        return self._memos[account_digest]

    def store(self, account_digest: str) -> None:
        """Write the memo of a host to disk if it has changed.

        The instant of a search that showed nothing is no change: an older one does as well.
        """
        memo = self._memos[account_digest]
        has_changed, memo.has_changed = memo.has_changed, False
        if self.directory is not None and has_changed:
            content = write_json(memo)
            write_cache_file(self._path(account_digest), content, self.version)

    def _path(self, account_digest: str) -> Path:
        assert self.directory is not None, "the memos are kept on disk"
        name = hashlib.sha256(account_digest.encode()).hexdigest()[:32]
        return self.directory / f"{name}.json"


def digest_listing(requests: Iterable[ObservedRequest]) -> str:
    """Return a digest that changes with the heads and target branches of open requests."""
    rows = sorted((it.number, it.head_commit, it.base_branch) for it in requests)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
